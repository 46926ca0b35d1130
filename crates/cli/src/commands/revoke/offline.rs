//! Revoking with a key on a computer without a network.

use std::path::Path;

use countersign_api::offline;
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
    carried::{SignedFile, check_output, read},
    client::ServerClient,
    error::CliError,
    files::write,
    paths::shown_path,
    prompt,
    session::Session,
};

/// Needs no key, so that a new document names no initiator.
pub(super) async fn export(
    session: &Session,
    client: &ServerClient,
    path: &RepoPath,
    args: &RevokeArgs,
    file: &Path,
) -> Result<(), CliError> {
    let shown = read_index(client, path).await?;
    let pending = find_pending(client, path, &shown).await?;
    let revocation = choose_document(args, shown.digest, pending.as_ref(), None)?;
    let request = request_for(client, path, shown, pending.as_ref(), revocation).await?;
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
    let to_revoke: Vec<ToRevoke> = requests.iter().map(check).collect::<Result<_, _>>()?;
    let listed: Vec<PublicKey> = to_revoke.iter().flat_map(ToRevoke::accepted_signers).collect();
    let key = session.key(to_revoke.first().map(ToRevoke::path), &listed)?;
    let you = key.public_key();
    let mut signed = Vec::new();
    for to_revoke in &to_revoke {
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
        if prompt::ask(session.confirmation(), "Sign the revocation of this release, for good?")? {
            signed.push(to_revoke.sign(you, |digest| key.sign(digest))?);
        }
    }
    let paths = signed.iter().map(|body| &body.file_path).collect();
    let bytes = offline::write_revocations(&signed);
    SignedFile { command: "revoke", by: you, paths, bytes }.hand_over(session, output)
}

pub(super) async fn submit(session: &Session, file: &Path, args: &RevokeArgs) -> Result<(), CliError> {
    let bodies = read(file, offline::parse_revocations, "countersign revoke --detached FILE -o SIGNATURES")?;
    let mut revoked = Vec::new();
    for body in &bodies {
        let client = session.client_for(&body.file_path)?;
        let key = session.key_at(&client, Some(&body.file_path)).await?;
        let done = client.submit_revocation(&key, body).await;
        let is_revoked = done.map_err(|error| error.after(&revoked))?;
        session.output.line(&say_done(&session.name_of(&body.file_path, None), is_revoked));
        revoked.push((&body.file_path, (client, body.public_key, is_revoked)));
    }
    // Only now: the next ones need not wait for the witnesses of the first.
    let mut log = Value::Null;
    for (path, (client, _, _)) in revoked.iter().filter(|(_, (_, _, is_revoked))| *is_revoked) {
        let aftermath = wait(session, client, path, args).await?;
        session.output.line(&aftermath.text);
        log = aftermath.value["log"].clone();
    }
    let revoked = revoked.iter().map(|(path, (_, key, is_revoked))| {
        let log = if *is_revoked { &log } else { &Value::Null };
        json!({"file_path": path.as_str(), "public_key": key.to_string(), "revoked": is_revoked, "log": log})
    });
    session.output.result("", &json!({"revocations": revoked.collect::<Vec<_>>()}))
}
