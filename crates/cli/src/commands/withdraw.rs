//! `countersign withdraw`

use countersign_api::{error_code::ErrorCode, requests::WithdrawBody};
use countersign_core::documents::{layout, layout::Signable, signatures::SignatureSet};
use countersign_core::values::path::RepoPath;
use countersign_core::values::shown::{marked_name, plural, quoted, shown_text};
use serde_json::json;

use crate::client::{session::Reader, session::Session, state::Shown, targets::ReleaseName, targets::Target};
use crate::evidence::release::{ShownRelease, find_release, find_withdrawal, no_release, say_withdrawn};
use crate::{args::WithdrawArgs, words::error::CliError, words::output};

pub(crate) async fn run(session: &Session, args: &WithdrawArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_one(&args.names)?;
    let Target { client, path, shown: state } = session.find_signable(&name, Reader::Signer).await?;
    if layout::signable(&path) != Some(Signable::Index) {
        return Err(CliError::usage(
            format!("{path} cannot be withdrawn"),
            "name a release; a proposed signers file is replaced with `countersign update`",
        ));
    }
    let Some(shown) = find_release(&state, &path)? else {
        let Some(before) = find_withdrawal(&state, &path)? else { return Err(no_release(&path)) };
        let name = session.name_of(&path, None);
        let said = say_withdrawn(&state, &before);
        return finish(session, &path, &format!("{name} is withdrawn already: {said}"));
    };
    let name = session.name_of(&path, Some(&shown.index.project_id));
    let key = session.key(Some(&path), &state.listed_keys()?)?;
    let text = describe(&state, &path, &name, &shown, &args.reason)?;
    session.output.show_question(&text, session.confirmation());
    output::confirm(session.confirmation(), "Withdraw this release? Its signatures will be dropped.")?;
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
