//! `countersign admin log`: its key, and what only the operator can decide

use std::{fs, path::Path, path::absolute};

use countersign_core::log::note::Note;
use countersign_core::values::{bounds::NOTE_BYTES, verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_server::{operate::config::GivenSettings, serve::admin::AdminRequest};
use countersign_store::machine::disk;
use serde_json::{Value, json};

use crate::args::{AcceptLossArgs, LogCommand, LogInitArgs, TakeCheckpointArgs};
use crate::commands::admin::{socket, socket::find_data_dir, socket::refuse_other_user};
use crate::words::{error::CliError, error::shown_path, output, output::Confirmation, output::Output};
use crate::{keys, settings::config_dir::write_new};

/// The file of the log's key in the data directory, beside the checkpoints.
const KEY_FILE: &str = "log/key";

pub(super) fn run(command: LogCommand, output: Output, confirmation: Confirmation) -> Result<(), CliError> {
    match command {
        LogCommand::Init(args) => init(args, output),
        LogCommand::AcceptLoss(args) => accept_loss(args, output, confirmation),
        LogCommand::TakeCheckpoint(args) => take_checkpoint(args, output),
    }
}

fn init(args: LogInitArgs, output: Output) -> Result<(), CliError> {
    let file = GivenSettings::read(args.files.config.as_deref())?;
    let data_dir = args.files.data_dir.unwrap_or_else(|| file.data_dir());
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

fn accept_loss(args: AcceptLossArgs, output: Output, confirmation: Confirmation) -> Result<(), CliError> {
    let (_, path) = find_data_dir(args.files)?;
    let AcceptLossArgs { origin, size, .. } = args;
    output.show(&format!(
        "Witnesses have seen {size} commits of the log {origin}. It will sign others in their place, and so contradict \
         itself.\nWitnesses that have seen the lost commits never cosign it again. Clients that have seen them refuse it as \
         forked.\nThis cannot be undone. A log with a new origin contradicts nothing: see --help."
    ));
    output::confirm(confirmation, "Give up these commits?")?;
    let lost = ask(&path, &AdminRequest::AcceptLogLoss { origin: origin.clone(), size })?;
    let files = lost.iter().filter_map(|lost| lost["checkpoint"].as_str());
    let files: String =
        files.map(|file| format!("The checkpoint of the lost commits stays in {file}\n")).collect();
    let text = format!(
        "The log {origin} signs again, without the {size} commits that witnesses have seen.\n{files}"
    );
    output.result(&text, &json!({ "origin": origin, "size": size, "lost": lost }))
}

fn take_checkpoint(args: TakeCheckpointArgs, output: Output) -> Result<(), CliError> {
    let bytes = disk::read(&args.file, NOTE_BYTES as u64);
    let bytes = bytes.map_err(|error| CliError::file("read", &args.file, error))?;
    let shown = shown_path(&args.file);
    let not_one = |reason: String| {
        let message = format!("{shown} is not a checkpoint: {reason}");
        CliError::usage(message, "it is a file such as `curl https://sign.example.org/log/checkpoint` gives")
    };
    let note = Note::parse(&bytes.ok_or_else(|| not_one("there is no such file".to_owned()))?);
    let note = note.map_err(|error| not_one(error.to_string()))?;
    // The signature of the log is enough, and fits into a request.
    let origin = note.text().lines().next().unwrap_or_default();
    let mut own = Note::new(note.text().to_owned());
    note.signatures().iter().filter(|line| line.name() == origin).for_each(|line| own.add(line.clone()));
    let (_, path) = find_data_dir(args.files)?;
    let taken = ask(&path, &AdminRequest::TakeLogCheckpoint { note: own.to_string() })?;
    let size = taken.first().and_then(|taken| taken["size"].as_u64()).unwrap_or_default();
    let text = format!(
        "The log signs only what continues this checkpoint of {size} commits. `countersign admin stats` says whether it \
         does.\n"
    );
    output.result(&text, &json!({ "size": size }))
}

fn ask(data_dir: &Path, request: &AdminRequest) -> Result<Vec<Value>, CliError> {
    let answered = socket::ask(data_dir, request).map_err(|error| {
        error.with_hint("the server's log, /readyz and `countersign admin stats` say what the log waits for")
    })?;
    answered.ok_or_else(|| {
        let message = format!("no server runs with the data directory {}", data_dir.display());
        CliError::unreachable(message, "start it first: only a running log knows what it has")
    })
}
