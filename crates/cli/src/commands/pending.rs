//! `countersign pending`

use countersign_api::answers::PendingResponse;
use countersign_core::values::{key::PublicKey, path::RepoPath};
use serde_json::json;

use crate::{client::ServerCall, error::CliError, keys::SigningKey, session::Session};

pub(crate) async fn run(session: &Session) -> Result<(), CliError> {
    let key = session.key()?;
    let PendingResponse { file_paths, left_out } = list(session, &key).await?;
    let paths: Vec<&str> = file_paths.iter().map(RepoPath::as_str).collect();
    let text = match paths.as_slice() {
        [] => say_nothing(&key.public_key()),
        paths => paths.join("\n"),
    };
    let value = json!({
        "public_key": key.public_key().to_string(),
        "file_paths": paths,
        "left_out": left_out,
    });
    session.output.answer(&text, &value)
}

/// What waits for a key. Says so where there is more than the server lists.
pub(super) async fn list(session: &Session, key: &SigningKey) -> Result<PendingResponse, CliError> {
    let waiting = session.client.ask(key, ServerCall::Pending, PendingResponse::parse).await?;
    if waiting.left_out > 0 {
        session.output.note(&format!(
            "{} more registrations name this key, and are not listed: sign those that you know of by their paths",
            waiting.left_out
        ));
    }
    Ok(waiting)
}

pub(super) fn say_nothing(key: &PublicKey) -> String {
    format!("Nothing waits for {key}.")
}
