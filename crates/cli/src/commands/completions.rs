//! `countersign completions`

use clap::CommandFactory as _;
use serde_json::json;

use crate::args::{Arguments, CompletionsArgs};
use crate::{error::CliError, output::Output};

pub(crate) fn run(args: &CompletionsArgs, output: Output) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "countersign", &mut script);
    let script = String::from_utf8_lossy(&script);
    output.answer(&script, &json!({"shell": args.shell.to_string(), "script": script}))
}
