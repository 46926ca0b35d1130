//! Signing where the key is on a computer without a network.

use std::path::Path;

use countersign_api::{offline, requests::SignaturesBody};
use countersign_core::proof::to_sign::SigningRequest;
use countersign_core::values::{key::PublicKey, shown::plural};
use serde_json::{Value, json};

use super::formats::check_stored;
use super::request::{Gathered, Signing, check, find_signed, review_and_sign, say_signed, state_text};
use crate::carried::{SignedFile, check_output, mark_done, read, submit_all};
use crate::client::{ServerClient, submission::Submitted};
use crate::{args::SignArgs, error::CliError, files::write, keys::SigningKey, paths::shown_path};
use crate::{proof::Network, session::Session, several::Several, targets::Target};

/// Needs no key.
pub(super) fn export(
    gathered: &[(Target, Gathered)],
    mut several: Several,
    file: &Path,
) -> Result<(), CliError> {
    // What would be refused offline is refused here already.
    let open = |gathered: &Gathered| {
        let request = gathered.open()?;
        check(request).map(|_| request.clone())
    };
    let requests = gathered
        .iter()
        .filter_map(|(target, gathered)| several.keep_later(target.path.as_str(), open(gathered)));
    let requests: Vec<SigningRequest> = requests.collect();
    if requests.is_empty() {
        return several.finish("", json!({}));
    }
    write(file, &offline::write_requests(&requests))?;
    let shown = shown_path(file);
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    let text = format!(
        "Wrote {} file{} to sign to {shown}\nWhere the key is: countersign sign --detached {shown} -o signatures.json",
        paths.len(),
        plural(paths.len())
    );
    several.finish(&text, json!({"export": file.display().to_string(), "file_paths": paths}))
}

pub(super) fn sign(session: &Session, args: &SignArgs, file: &Path, output: &Path) -> Result<(), CliError> {
    check_output(file, output)?;
    let requests = read(file, offline::parse_requests, "countersign sign NAME --export FILE")?;
    let listed: Vec<PublicKey> = requests
        .iter()
        .filter_map(|request| request.check().ok())
        .flat_map(|to_sign| to_sign.accepted_signers())
        .collect();
    let first = requests.first().map(|request| &request.path);
    let you = session.public_key_of(first, &listed)?;
    let mut open = Vec::new();
    for request in &requests {
        match find_signed(request, &you) {
            Some(at) => session.output.line(&say_signed(&request.path, at, &state_text(false, None))),
            None => open.push(request),
        }
    }
    if open.is_empty() && !requests.is_empty() {
        return session.output.result("", &json!({"public_key": you.to_string(), "file_paths": []}));
    }
    let key = session.key(first, &listed)?;
    let mut several = Several::new(session.output);
    let mut signed = Vec::new();
    for request in open {
        let signing = Signing { session, args, key: &key, shown: None };
        let body = review_and_sign(&signing, request, Network::Offline);
        signed.extend(several.keep(request.path.as_str(), body).flatten().map(|(body, _)| body));
    }
    let paths = signed.iter().map(|body| &body.file_path).collect();
    let bytes = offline::write_signatures(&signed);
    SignedFile { command: "sign", by: you, paths, bytes }.hand_over(several, output)
}

pub(super) async fn submit(session: &Session, file: &Path) -> Result<(), CliError> {
    let bodies = read(file, offline::parse_signatures, "countersign sign --detached FILE -o SIGNATURES")?;
    let submit = async |client: &ServerClient, key: &SigningKey, body: &SignaturesBody| {
        let Submitted { answer, was_done } = client.submit_signatures(key, body).await?;
        let state = state_text(answer.is_complete, answer.waits_until);
        let (who, path) = (body.public_key, &body.file_path);
        if was_done {
            session.output.line(&format!("Nothing is left to submit of {who} on {path}: {state}"));
        } else {
            check_stored(session, client, body).await;
            session.output.line(&format!("Submitted the signature of {who} on {path}: {state}"));
        }
        Ok((answer.is_complete, was_done))
    };
    let (several, done) = submit_all(session, &bodies, |body| &body.file_path, submit).await;
    let signed = done.iter().map(|(body, _, (is_complete, was_done))| {
        let value = json!({
            "file_path": body.file_path.as_str(),
            "public_key": body.public_key.to_string(),
            "is_complete": is_complete,
        });
        mark_done(value, *was_done)
    });
    let signed: Vec<Value> = signed.collect();
    several.finish("", json!({"signed": signed}))
}
