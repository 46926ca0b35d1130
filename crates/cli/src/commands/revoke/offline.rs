//! Revoking with a key on a computer without a network.

use std::path::Path;

use countersign_api::{offline, requests::RevokeBody};
use countersign_core::{
    proof::to_revoke::ToRevoke,
    values::{key::PublicKey, path::RepoPath},
};
use serde_json::{Value, json};

use super::{
    document::{
        check, choose_document, describe, describe_progress, find_pending, read_index, request_for, say_done,
    },
    waiting::wait,
};
use crate::{
    args::RevokeArgs,
    carried::{SignedFile, check_output, mark_done, read, submit_all},
    client::{state::Shown, submission::Submitted},
    error::CliError,
    files::write,
    paths::shown_path,
    prompt,
    session::Session,
    several::Several,
};

/// Needs no key, so that a new document names no initiator.
pub(super) fn export(
    session: &Session,
    state: &Shown,
    path: &RepoPath,
    args: &RevokeArgs,
    file: &Path,
) -> Result<(), CliError> {
    let shown = read_index(state, path)?;
    let pending = find_pending(state, path, &shown)?;
    let revocation = choose_document(args, shown.digest, pending.as_ref(), None)?;
    let request = request_for(state, path, shown, pending.as_ref(), revocation)?;
    // What would be refused offline is refused here already.
    check(&request)?;
    write(file, &offline::write_revocation_requests(&[request]))?;
    let (name, shown) = (session.name_of(path, None), shown_path(file));
    let text = format!(
        "Wrote a revocation of {name} to {shown}\nWhere the key is: countersign revoke --detached {shown} -o revocation.json"
    );
    let value = json!({"export": file.display().to_string(), "file_paths": [path.as_str()]});
    session.output.result(&text, &value)
}

pub(super) fn sign(session: &Session, file: &Path, output: &Path) -> Result<(), CliError> {
    check_output(file, output)?;
    let requests = read(
        file,
        offline::parse_revocation_requests,
        "countersign revoke NAME --reason TEXT --export FILE",
    )?;
    let mut several = Several::new(session.output);
    let checked = requests.iter().filter_map(|request| several.keep(request.path.as_str(), check(request)));
    let to_revoke: Vec<ToRevoke> = checked.collect();
    if to_revoke.is_empty() {
        return several.finish("", json!({}));
    }
    let listed: Vec<PublicKey> = to_revoke.iter().flat_map(ToRevoke::accepted_signers).collect();
    let key = session.key(to_revoke.first().map(ToRevoke::path), &listed)?;
    let you = key.public_key();
    let sign_one = |to_revoke: &ToRevoke| {
        let path = to_revoke.path();
        if !to_revoke.accepted_signers().contains(&you) {
            return Err(CliError::other(
                format!("{you} may not revoke {path}"),
                "check --key; `countersign signers check` on the project's signers file shows who may",
            ));
        }
        let name = session.name_of(path, Some(&to_revoke.index.project_id));
        let mut lines = describe(&name, to_revoke);
        lines.push(describe_progress(to_revoke, Some(you)));
        session.output.show_question(&lines.join("\n"), session.confirmation());
        match prompt::ask(session.confirmation(), "Sign the revocation of this release, for good?")? {
            true => to_revoke.sign(you, |digest| key.sign(digest)).map(Some),
            false => Ok(None),
        }
    };
    let signed = to_revoke
        .iter()
        .filter_map(|to_revoke| several.keep_later(to_revoke.path().as_str(), sign_one(to_revoke)).flatten());
    let signed: Vec<RevokeBody> = signed.collect();
    let paths = signed.iter().map(|body| &body.file_path).collect();
    let bytes = offline::write_revocations(&signed);
    SignedFile { command: "revoke", by: you, paths, bytes }.hand_over(several, output)
}

pub(super) async fn submit(session: &Session, file: &Path, args: &RevokeArgs) -> Result<(), CliError> {
    let bodies = read(file, offline::parse_revocations, "countersign revoke --detached FILE -o SIGNATURES")?;
    let (mut several, done) = submit_all(
        session,
        &bodies,
        |body| &body.file_path,
        async |client, key, body: &RevokeBody| {
            let submitted = client.submit_revocation(key, body).await?;
            session.output.line(&say_submitted(&session.name_of(&body.file_path, None), submitted));
            Ok(submitted)
        },
    )
    .await;
    // Only now: the next ones need not wait for the witnesses of the first.
    let mut revocations = Vec::new();
    for (body, client, submitted) in &done {
        let path = &body.file_path;
        let mut log = Value::Null;
        if submitted.answer
            && let Some(mut aftermath) =
                several.keep_later(path.as_str(), wait(session, client, path, args).await)
        {
            session.output.line(&aftermath.text);
            log = aftermath.value["log"].take();
        }
        let value = json!({
            "file_path": path.as_str(),
            "public_key": body.public_key.to_string(),
            "revoked": submitted.answer,
            "log": log,
        });
        revocations.push(mark_done(value, submitted.was_done));
    }
    several.finish("", json!({"revocations": revocations}))
}

fn say_submitted(name: &str, Submitted { answer, was_done }: Submitted<bool>) -> String {
    match (was_done, answer) {
        (false, is_revoked) => say_done(name, is_revoked),
        (true, true) => format!("{name} is revoked already"),
        (true, false) => {
            format!("The server has this signature on the revocation of {name}: more are needed")
        }
    }
}
