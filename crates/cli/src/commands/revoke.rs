//! `countersign revoke`

mod document;
mod offline;
mod waiting;

use countersign_core::{
    documents::{layout, revocation::Revocation},
    values::{path::RepoPath, shown::quoted},
};
use serde_json::json;

use self::document::{
    check, choose_document, describe, describe_progress, find_pending, read_index, request_for, say_done,
};
use crate::{
    args::RevokeArgs,
    client::ServerClient,
    error::CliError,
    people::when_text,
    prompt,
    release_names::ReleaseName,
    session::{Reader, Session},
    targets::Target,
};

pub(crate) async fn run(session: &Session, args: &RevokeArgs) -> Result<(), CliError> {
    if let Some(file) = &args.carried.submit {
        return offline::submit(session, file, args).await;
    }
    if let (Some(file), Some(output)) = (&args.carried.detached, &args.carried.output) {
        return offline::sign(session, file, output);
    }
    let name = ReleaseName::parse_one(&args.names)?;
    let Target { client, path, shown: state } = session.find_signable(&name, Reader::Signer).await?;
    if let Some(file) = &args.carried.export {
        return offline::export(session, &state, &path, args, file);
    }
    let shown = read_index(&state, &path)?;
    let name = session.name_of(&path, Some(&shown.index.project_id));
    if let Some(revoked) = state.parsed(&layout::revocation_of(&path), Revocation::parse)? {
        let text = format!("{name} is revoked already, for the reason {}", quoted(&revoked.reason));
        return finish(session, &client, &path, args, text).await;
    }
    let pending = find_pending(&state, &path, &shown)?;
    if let Some(pending) = &pending {
        let you = session.public_key_of(Some(&path), &state.listed_keys()?)?;
        if let Some(at) = pending.signed_at(&you).filter(|_| pending.is_meant_by(args)) {
            let text = format!(
                "You signed the revocation of {name} on {}: more signatures are needed",
                when_text(at)
            );
            return session.output.result(&text, &json!({"file_path": path.as_str(), "revoked": false}));
        }
    }
    let key = session.key(Some(&path), &state.listed_keys()?)?;
    let document = choose_document(args, shown.digest, pending.as_ref(), Some(key.public_key()))?;
    let to_revoke = check(&request_for(&state, &path, shown, pending.as_ref(), document)?)?;
    let mut lines = describe(&name, &to_revoke);
    if !to_revoke.signed.is_empty() {
        lines.push(describe_progress(&to_revoke, Some(key.public_key())));
    }
    session.output.show_question(&lines.join("\n"), session.confirmation());
    prompt::confirm(session.confirmation(), "Revoke this release, for good?")?;
    let body = to_revoke.sign(key.public_key(), |digest| key.sign(digest))?;
    // The server takes another one only if no key that can revoke stands behind the pending one.
    let submitted = client.submit_revocation(&key, &body).await.map_err(|error| match &pending {
        Some(pending) if args.reason.is_some() => error.with_hint(format!(
            "a revocation is pending for the reason {}; leave --reason out to join it",
            quoted(&pending.to_revoke.document.reason)
        )),
        Some(_) | None => error,
    })?;
    let is_revoked = submitted.answer;
    let text = say_done(&name, is_revoked);
    if is_revoked {
        return finish(session, &client, &path, args, text).await;
    }
    session.output.result(&text, &json!({"file_path": path.as_str(), "revoked": false}))
}

/// It is revoked. What is left is to know since when no one can be shown anything else.
async fn finish(
    session: &Session,
    client: &ServerClient,
    path: &RepoPath,
    args: &RevokeArgs,
    text: String,
) -> Result<(), CliError> {
    session.output.line(&text);
    let waiting::Aftermath { text, mut value } = waiting::wait(session, client, path, args).await?;
    value["file_path"] = json!(path.as_str());
    value["revoked"] = json!(true);
    session.output.result(&text, &value)
}
