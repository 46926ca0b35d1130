//! `countersign pending`

use countersign_core::{answer, path::RepoPath};
use serde_json::json;

use crate::{client::Route, error::CliError, session::Session};

pub(crate) async fn run(session: &Session) -> Result<(), CliError> {
    let key = session.key()?;
    let paths = session.client.ask(&key, Route::Pending, answer::parse_pending).await?;
    let paths: Vec<&str> = paths.iter().map(RepoPath::as_str).collect();
    let text = match paths.as_slice() {
        [] => format!("Nothing waits for {}.", key.public_key()),
        paths => paths.join("\n"),
    };
    let value = json!({"public_key": key.public_key().to_string(), "file_paths": paths});
    session.output.answer(&text, &value)
}
