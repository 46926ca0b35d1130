//! `countersign man` and `countersign completions`

use std::fs;

use clap::CommandFactory as _;
use clap_mangen::{Man, generate_to};
use serde_json::json;

use crate::args::{Arguments, CompletionsArgs, ManArgs};
use crate::words::{error::CliError, error::shown_path, output::Output};

/// A page for the program and one for each command, as in `countersign-signers-new.1`.
pub(crate) fn run(args: &ManArgs, output: Output) -> Result<(), CliError> {
    let root = Arguments::command().disable_help_subcommand(true);
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        Man::new(root).render(&mut page).map_err(|error| {
            CliError::other("the manual page could not be made", "report this").because(error)
        })?;
        let page = String::from_utf8_lossy(&page);
        return output.answer(&page, &json!({"page": page}));
    };
    let written = fs::create_dir_all(dir).and_then(|()| generate_to(root, dir));
    written.map_err(|error| CliError::file("written to", dir, error))?;
    let text = format!("Wrote the manual pages to {}", shown_path(dir));
    output.result(&text, &json!({"dir": dir.display().to_string()}))
}

// The command `countersign completions`.

pub(crate) fn run_completions(args: &CompletionsArgs, output: Output) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "countersign", &mut script);
    let script = String::from_utf8_lossy(&script);
    output.answer(&script, &json!({"shell": args.shell.to_string(), "script": script}))
}
