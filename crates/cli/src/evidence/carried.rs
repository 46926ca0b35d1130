//! Files that travel between a computer with a key and one with a network.

use std::{fs, path::Path};

use countersign_core::values::{json::ParseError, key::PublicKey, path::RepoPath, shown::plural};
use serde_json::{Value, json};

use crate::client::{ServerClient, session::KeyRing, session::Session};
use crate::words::{error::CliError, error::shown_path, output::Several};
use crate::{keys::SigningKey, settings::config_dir::write};

/// Reads a carried file. `made_by` is the command that writes such a file.
pub(crate) fn read<T>(
    file: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    made_by: &str,
) -> Result<T, CliError> {
    let bytes = fs::read(file).map_err(|error| CliError::file("read", file, error))?;
    parse(&bytes).map_err(|error| {
        CliError::other(
            format!("{} cannot be used", shown_path(file)),
            format!("it must come from `{made_by}`"),
        )
        .because(error)
    })
}

/// What is signed must not be overwritten with its signatures.
pub(crate) fn check_output(file: &Path, output: &Path) -> Result<(), CliError> {
    let same = |a: &Path, b: &Path| a == b || fs::canonicalize(a).ok() == fs::canonicalize(b).ok();
    if fs::exists(output).unwrap_or(false) && same(file, output) {
        return Err(CliError::usage(
            "-o names the file that is to be signed", "choose another name for the signatures",
        ));
    }
    Ok(())
}

/// Hands in what was signed elsewhere: all of it, though some may fail. `submit` gives what became of one.
pub(crate) async fn submit_all<'b, B, T>(
    session: &Session,
    bodies: &'b [B],
    path_of: impl Fn(&B) -> &RepoPath,
    submit: impl AsyncFn(&ServerClient, &SigningKey, &B) -> Result<T, CliError>,
) -> (Several, Vec<(&'b B, ServerClient, T)>) {
    let mut several = Several::new(session.output);
    let mut keys = KeyRing::new(session);
    let mut done = Vec::new();
    for body in bodies {
        let path = path_of(body);
        let outcome = async {
            let client = session.client_of(Some(path))?;
            let listed = session.listed_keys(&client, Some(path)).await?;
            let key = keys.unlock(path, &listed, false)?;
            let answer = submit(&client, key, body).await?;
            Ok((body, client, answer))
        };
        done.extend(several.keep(path.as_str(), outcome.await));
    }
    (several, done)
}

/// Tells programs that the server had it before, or needs it no longer.
pub(crate) fn mark_done(mut value: Value, was_done: bool) -> Value {
    if was_done {
        value["was_done"] = json!(true);
    }
    value
}

/// What a key has signed on a computer without a network, on its way to one that has it.
pub(crate) struct SignedFile<'a> {
    /// The command of ours that signed it, and that submits it.
    pub(crate) command: &'static str,
    pub(crate) by: PublicKey,
    pub(crate) paths: Vec<&'a RepoPath>,
    pub(crate) bytes: Vec<u8>,
}

impl SignedFile<'_> {
    /// Writes it, and says what to do with it and what was not signed.
    pub(crate) fn hand_over(&self, several: Several, output: &Path) -> Result<(), CliError> {
        let Self { command, by, paths, bytes } = self;
        if paths.is_empty() && several.has_failed() {
            return several.finish("", json!({}));
        }
        if paths.is_empty() {
            return Err(CliError::other("nothing was signed", "answer a question with yes, or pass --yes"));
        }
        write(output, bytes)?;
        let shown = shown_path(output);
        let text = format!(
            "Wrote the signature{} of {by} to {shown}\nWhere there is a network: countersign {command} --submit {shown}",
            plural(paths.len())
        );
        let paths: Vec<&str> = paths.iter().map(|path| path.as_str()).collect();
        let value = json!({
            "signatures": output.display().to_string(),
            "public_key": by.to_string(),
            "file_paths": paths,
        });
        several.finish(&text, value)
    }
}
