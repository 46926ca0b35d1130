//! `countersign admin log init`

use std::{fs, path::absolute};

use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use serde_json::json;

use super::owner::refuse_other_user;
use crate::{args::LogInitArgs, error::CliError, files::write_new, keys, output::Output, setup};

/// In the data directory, beside the checkpoints.
const KEY_FILE: &str = "log/key";

pub(super) fn init(args: LogInitArgs, output: Output) -> Result<(), CliError> {
    let data_dir = setup::read_config(&args.files)?.data_dir(args.files.data_dir);
    refuse_other_user(&data_dir)?;
    let path = data_dir.join(KEY_FILE);
    let path = absolute(&path).map_err(|error| CliError::file("written", &path, error))?;
    let new = keys::generate(&args.origin, None)?;
    let key = VerifierKey::new(&args.origin, KeyKind::Log, new.public).map_err(|error| {
        CliError::usage(error.to_string(), "something like sign.example.org/log is usual")
    })?;
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(|error| CliError::file("written", dir, error))?;
    }
    write_new(&path, new.private.as_bytes(), 0o600)?;
    let shown = path.to_string_lossy();
    let table = format!(
        "[log]\norigin = {}\nkey_file = {}\n",
        toml_edit::Value::from(args.origin.as_str()).to_string().trim(),
        toml_edit::Value::from(shown.as_ref()).to_string().trim()
    );
    let text = format!(
        "Made the key {shown}. Keep a copy of it: a log cannot change its key.\n\n\
         Put this into the configuration file, and start the server again:\n\n{table}\n\
         Witnesses and signers files name the log by its verifier key:\n\n{}\n",
        output.strong(&key.to_string()),
    );
    output.result(
        &text,
        &json!({ "key_file": shown, "origin": args.origin, "log": key.to_string(), "table": table }),
    )
}
