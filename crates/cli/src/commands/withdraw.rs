//! `countersign withdraw`

use countersign_api::{error_code::ErrorCode, requests::WithdrawBody};
use countersign_core::documents::{layout, signatures::SignatureSet};
use countersign_core::values::path::RepoPath;
use countersign_core::values::shown::{marked_name, plural, quoted, shown_text};
use serde_json::json;

use crate::client::{session::Session, state::Shown, targets::Target};
use crate::evidence::release::{ShownRelease, find_release, find_withdrawal, no_release, say_withdrawn};
use crate::{args::WithdrawArgs, words::error::CliError};

pub(crate) async fn run(session: &Session, args: &WithdrawArgs) -> Result<(), CliError> {
    let hint = "name a release; a proposed signers file is replaced with `countersign update`";
    let found = session.find_release(&args.names, "withdrawn", hint).await?;
    let Target { client, path, shown: state } = found;
    let Some(shown) = find_release(&state, &path)? else {
        let Some(before) = find_withdrawal(&state, &path)? else { return Err(no_release(&path)) };
        let name = session.name_of(&path, None);
        let said = say_withdrawn(&state, &before);
        return finish(session, &path, &format!("{name} is withdrawn already: {said}"));
    };
    let name = session.name_of(&path, Some(&shown.index.project_id));
    let key = session.key(Some(&path), &state.listed_keys()?)?;
    let text = describe(&state, &path, &name, &shown, &args.reason)?;
    session.confirm(&text, "Withdraw this release? Its signatures will be dropped.")?;
    let body = WithdrawBody {
        file_path: path.clone(),
        reason: args.reason.clone(),
        subject_digest: Some(shown.digest),
    };
    client.submit_withdrawal(&key, &body).await.map_err(explain)?;
    finish(session, &path, &format!("Withdrew {name}. Another release can be registered there"))
}

fn explain(error: CliError) -> CliError {
    match error.code() {
        Some(ErrorCode::AlreadyComplete) => {
            error.with_hint("it is complete: `countersign revoke NAME --reason TEXT` revokes it")
        }
        _ => error,
    }
}

fn finish(session: &Session, path: &RepoPath, text: &str) -> Result<(), CliError> {
    session.output.result(text, &json!({"file_path": path.as_str(), "withdrawn": true}))
}

fn describe(
    state: &Shown,
    path: &RepoPath,
    name: &str,
    ShownRelease { index, digest, .. }: &ShownRelease,
    reason: &str,
) -> Result<String, CliError> {
    let set = state.parsed(&layout::pending_signatures_of(path), SignatureSet::parse)?;
    let signed = set.unwrap_or_default().entries.len();
    let files: Vec<&str> = index.published_files.iter().map(|file| file.file_name.as_str()).collect();
    let lines = [
        format!("Withdrawal of {name}"),
        format!("  project  {}", marked_name(index.project_id.as_str())),
        format!("  files    {}", shown_text(&files.join(", "))),
        format!("  signed   {signed} signature{}", plural(signed)),
        format!("  reason   {}", quoted(reason)),
        format!("  digest   {}", digest.to_prefixed()),
    ];
    Ok(lines.join("\n"))
}
