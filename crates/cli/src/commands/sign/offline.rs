//! Signing where the key is on a computer without a network.

use std::path::Path;

use countersign_api::{answers::SignedResponse, offline};
use countersign_core::{
    proof::to_sign::SigningRequest,
    values::{key::PublicKey, shown::plural},
};
use serde_json::json;

use super::{
    formats::check_stored,
    request::{Gathered, Signing, check, find_signed, review_and_sign, say_signed, state_text},
};
use crate::{
    args::SignArgs,
    carried::{SignedFile, check_output, read},
    error::CliError,
    files::write,
    paths::shown_path,
    proof::Network,
    session::Session,
    waiting::Waiting,
};

/// Needs no key.
pub(super) fn export(session: &Session, gathered: &[Gathered], file: &Path) -> Result<(), CliError> {
    let requests = gathered.iter().map(|gathered| gathered.open().cloned());
    let requests: Vec<SigningRequest> = requests.collect::<Result<_, _>>()?;
    // What would be refused offline is refused here already.
    for request in &requests {
        check(request)?;
    }
    write(file, &offline::write_requests(&requests))?;
    let shown = shown_path(file);
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    let text = format!(
        "Wrote {} file{} to sign to {shown}\nWhere the key is: countersign sign --detached {shown} -o signatures.json",
        paths.len(),
        plural(paths.len())
    );
    session.output.result(&text, &json!({"export": file.display().to_string(), "file_paths": paths}))
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
    let mut signed = Vec::new();
    for request in open {
        let waiting = Waiting::default();
        let signing = Signing { session, args, key: &key, waiting: &waiting };
        let body = review_and_sign(&signing, request, Network::Offline)?;
        signed.extend(body.map(|(body, _)| body));
    }
    let paths = signed.iter().map(|body| &body.file_path).collect();
    let bytes = offline::write_signatures(&signed);
    SignedFile { command: "sign", by: you, paths, bytes }.hand_over(session, output)
}

pub(super) async fn submit(session: &Session, file: &Path) -> Result<(), CliError> {
    let bodies = read(file, offline::parse_signatures, "countersign sign --detached FILE -o SIGNATURES")?;
    let mut signed = Vec::new();
    for body in &bodies {
        let client = session.client_for(&body.file_path)?;
        let key = session.key_at(&client, Some(&body.file_path)).await?;
        let done = match client.submit_signatures(&key, body).await {
            // Submitted before: it counts once (D63).
            Err(error) if error.is_refusal() => client.find_submitted(body).await.ok().flatten().ok_or(error),
            done => done,
        };
        let SignedResponse { is_complete, waits_until } = done.map_err(|error| error.after(&signed))?;
        check_stored(session, &client, body).await;
        session.output.line(&format!(
            "Submitted the signature of {} on {}: {}",
            body.public_key,
            body.file_path,
            state_text(is_complete, waits_until)
        ));
        signed.push((&body.file_path, (body.public_key, is_complete)));
    }
    let signed = signed.iter().map(|(path, (key, is_complete))| {
        json!({"file_path": path.as_str(), "public_key": key.to_string(), "is_complete": is_complete})
    });
    session.output.result("", &json!({"signed": signed.collect::<Vec<_>>()}))
}
