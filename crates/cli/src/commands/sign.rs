//! `countersign sign`: shows what it is, asks, signs.

use std::{collections::BTreeMap, fs, path::Path};

use countersign_api::{answers::SignedResponse, catalogue::WaitingKind, offline, requests::SignaturesBody};
use countersign_core::{
    documents::{
        index::ReleaseIndex,
        layout::{self, Signable},
        revocation::Revocation,
        signatures::SignatureSet,
    },
    proof::to_sign::{SigningRequest, Subject, ToSign},
    values::{json::ParseError, key::PublicKey, path::RepoPath},
};
use serde_json::{Value, json};

use super::pending;
use crate::{
    args::SignArgs,
    client::{ServerCall, ServerClient},
    comparison::{self, Comparison},
    error::CliError,
    files::write,
    keys::SigningKey,
    paths::shown_path,
    prompt,
    proof::{self, Network},
    release_names::ReleaseName,
    review,
    session::Session,
    targets::{Reader, Target},
    trust::TrustFile,
};

pub(crate) async fn run(session: &Session, args: &SignArgs) -> Result<(), CliError> {
    if let Some(file) = &args.submit {
        return submit(session, file).await;
    }
    if let (Some(file), Some(output)) = (&args.detached, &args.output) {
        return sign_detached(session, args, file, output);
    }
    let targets = if args.all { list_pending(session).await? } else { find_named(session, args).await? };
    let mut requests = Vec::new();
    for target in &targets {
        requests.push((&target.client, gather(target).await?));
    }
    let Some(first) = targets.first() else {
        let key = session.public_key()?;
        return session.output.result(&pending::say_nothing(&key), &to_json(&key, &[]));
    };
    if let Some(file) = &args.export {
        let requests: Vec<SigningRequest> = requests.into_iter().map(|(_, request)| request).collect();
        return export(session, &requests, file);
    }
    let key = session.key_at(&first.client, Some(&first.path)).await?;
    let (mut signed, mut declined) = (Vec::new(), Vec::new());
    for (client, request) in &requests {
        let done = sign_one(&Signing { session, args, key: &key }, client, request).await;
        let Some(is_complete) = done.map_err(|error| error.after(&signed))? else {
            declined.push(request.path.as_str());
            continue;
        };
        session.output.line(&format!("Signed {}: {}", request.path, state_text(is_complete)));
        signed.push((&request.path, is_complete));
    }
    if !declined.is_empty() {
        let message = format!("not signed, because the answer was no: {}", declined.join(", "));
        return Err(CliError::other(message, "run it again to be asked again").after(&signed));
    }
    session.output.result("", &to_json(&key.public_key(), &signed))
}

/// Everything that waits for the user's key, on every server that they use.
async fn list_pending(session: &Session) -> Result<Vec<Target>, CliError> {
    let key = session.public_key()?;
    let mut targets = Vec::new();
    for client in session.clients()? {
        let waiting = pending::list(session, &client, &key).await?;
        let signable = waiting.pending.into_iter().filter(|file| file.kind != WaitingKind::Revocation);
        targets.extend(signable.map(|file| Target { client: client.clone(), path: file.file_path }));
    }
    Ok(targets)
}

async fn find_named(session: &Session, args: &SignArgs) -> Result<Vec<Target>, CliError> {
    let mut targets = Vec::new();
    for name in ReleaseName::parse_all(&args.paths)? {
        targets.push(session.find_signable(&name, Reader::Signer).await?);
    }
    Ok(targets)
}

async fn sign_one(
    signing: &Signing<'_>,
    client: &ServerClient,
    request: &SigningRequest,
) -> Result<Option<bool>, CliError> {
    let Some(body) = review_and_sign(signing, request, Network::Online)? else {
        return Ok(None);
    };
    let answer = client.ask(signing.key, ServerCall::Signatures(&body), SignedResponse::parse).await?;
    if let Ok(to_sign) = request.check() {
        signing.session.remember(to_sign.project(), client);
    }
    Ok(Some(answer.is_complete))
}

fn to_json(key: &PublicKey, signed: &[(&RepoPath, bool)]) -> Value {
    let signed = signed
        .iter()
        .map(|(path, is_complete)| json!({"file_path": path.as_str(), "is_complete": is_complete}));
    json!({"public_key": key.to_string(), "signed": signed.collect::<Vec<_>>()})
}

fn state_text(is_complete: bool) -> &'static str {
    if is_complete { "complete" } else { "more signatures are needed" }
}

/// What the server wants to have signed, and what is needed to understand it: all of it is public.
async fn gather(target: &Target) -> Result<SigningRequest, CliError> {
    let Target { client, path } = target;
    check_still_open(client, path).await?;
    let mut files = BTreeMap::new();
    for path in std::iter::once(path.clone()).chain(metadata_beside(path)) {
        let text = client.document(&path).await?.ok_or_else(|| {
            CliError::other(
                format!("the server {} has no {path}", client.address()),
                "check the name; `countersign pending` lists what waits for you",
            )
        })?;
        files.insert(path, text);
    }
    let project = match layout::signable(path) {
        Some(Signable::PendingSigners { project }) => Some(project),
        Some(Signable::Index) => {
            let index = files.get(path).map(|text| ReleaseIndex::parse(text.as_bytes()));
            index.and_then(Result::ok).map(|index| index.project_id)
        }
        None => None,
    };
    // Without a project it is nothing that can be signed; `check` says so.
    let history = match project {
        Some(project) => client.history(&project).await?,
        None => Default::default(),
    };
    let collected = client.parsed(&layout::pending_signatures_of(path), SignatureSet::parse).await?;
    Ok(SigningRequest { path: path.clone(), files, history, collected: collected.unwrap_or_default() })
}

/// A signers file is signed together with what is said about it.
fn metadata_beside(path: &RepoPath) -> Option<RepoPath> {
    match layout::signable(path) {
        Some(Signable::PendingSigners { .. }) => Some(layout::metadata_of(path)),
        Some(Signable::Index) | None => None,
    }
}

/// What is complete or revoked asks for no signature, and would not show who has signed.
async fn check_still_open(client: &ServerClient, path: &RepoPath) -> Result<(), CliError> {
    if layout::signable(path) != Some(Signable::Index) {
        return Ok(());
    }
    if let Some(document) = client.parsed(&layout::revocation_of(path), Revocation::parse).await? {
        return Err(proof::revoked_error(path, &document.reason, document.timestamp, ""));
    }
    match client.document(&layout::signatures_of(path)).await? {
        Some(_) => Err(CliError::other(
            format!("{path} is complete already"),
            "nothing is left to sign; `countersign status PATH` shows who has signed",
        )),
        None => Ok(()),
    }
}

/// Who signs, and how they want to be asked.
struct Signing<'a> {
    session: &'a Session,
    args: &'a SignArgs,
    key: &'a SigningKey,
}

/// The only way to a signature: read as what it must be (D34), shown, compared, asked. `None` if the answer is no.
fn review_and_sign(
    signing: &Signing<'_>,
    request: &SigningRequest,
    network: Network,
) -> Result<Option<SignaturesBody>, CliError> {
    let Signing { session, args, key } = *signing;
    let to_sign = check(request)?;
    check_trust(&to_sign, network)?;
    let public_key = key.public_key();
    if !to_sign.accepted_signers().contains(&public_key) {
        return Err(CliError::other(
            format!("{public_key} is not asked to sign {}", request.path),
            "check --key; `countersign status PATH` shows who is",
        ));
    }
    let comparison = compare(args, &to_sign.subject)?;
    session.output.show(&review::describe(&to_sign, comparison.as_ref(), session.output));
    if args.require_match && comparison.as_ref().is_some_and(|comparison| !comparison.is_match()) {
        return Err(CliError::unverified(
            format!("not signed: the files of {} are not all the same as yours", request.path),
            "find out why they differ before you sign",
        ));
    }
    if !prompt::ask(session.confirmation(), review::question(&to_sign, comparison.as_ref()))? {
        return Ok(None);
    }
    let submission = to_sign.sign(public_key, |digest| key.sign(digest))?;
    Ok(Some(submission.into()))
}

fn check(request: &SigningRequest) -> Result<ToSign, CliError> {
    request.check().map_err(|error| {
        CliError::unverified(
            format!("{} is not signed", request.path),
            "what is shown is not what its path says: the server lies or is broken",
        )
        .because(error)
    })
}

/// A signer who has met the project before must be shown the same past.
fn check_trust(to_sign: &ToSign, network: Network) -> Result<(), CliError> {
    let store = TrustFile::locate()?.read()?;
    match to_sign.chain() {
        Some(chain) => {
            let pin = proof::check_pin(&store, chain, network)?;
            match pin.and_then(|pin| pin.revocation_of(to_sign.path(), to_sign.digest())) {
                Some(seen) => {
                    let note = ", as this computer has seen before";
                    Err(proof::revoked_error(to_sign.path(), &seen.reason, seen.revoked_at, note))
                }
                None => Ok(()),
            }
        }
        None if store.projects.contains_key(to_sign.project()) => Err(CliError::unverified(
            format!(
                "{} is shown as a new project, but this computer knows its signers already",
                to_sign.project()
            ),
            "do not sign: somebody wants the project to begin anew. `countersign trust list` shows what is known",
        )),
        None => store.check_overlap(to_sign.project()).map_err(proof::untrusted),
    }
}

fn compare(args: &SignArgs, subject: &Subject) -> Result<Option<Comparison>, CliError> {
    match (&args.files, subject) {
        (Some(dir), Subject::Release { index, .. }) => comparison::compare(index, dir).map(Some),
        (Some(_) | None, Subject::Release { .. } | Subject::Proposal { .. }) => Ok(None),
    }
}

fn export(session: &Session, requests: &[SigningRequest], file: &Path) -> Result<(), CliError> {
    // What would be refused offline is refused here already.
    for request in requests {
        check(request)?;
    }
    write(file, &offline::write_requests(requests))?;
    let shown = shown_path(file);
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    let text = format!(
        "Wrote {} file(s) to sign to {shown}\nWhere the key is: countersign sign --detached {shown} -o signatures.json",
        paths.len()
    );
    session.output.result(&text, &json!({"export": file.display().to_string(), "file_paths": paths}))
}

fn sign_detached(session: &Session, args: &SignArgs, file: &Path, output: &Path) -> Result<(), CliError> {
    let same = |a: &Path, b: &Path| a == b || fs::canonicalize(a).ok() == fs::canonicalize(b).ok();
    if fs::exists(output).unwrap_or(false) && same(file, output) {
        return Err(CliError::usage(
            "-o names the file that is to be signed",
            "choose another name for the signatures",
        ));
    }
    let requests = read(file, offline::parse_requests, "countersign sign PATH --export FILE")?;
    let listed: Vec<PublicKey> = requests
        .iter()
        .filter_map(|request| request.check().ok())
        .flat_map(|to_sign| to_sign.accepted_signers())
        .collect();
    let key = session.key(requests.first().map(|request| &request.path), &listed)?;
    let mut signed = Vec::new();
    for request in &requests {
        signed.extend(review_and_sign(&Signing { session, args, key: &key }, request, Network::Offline)?);
    }
    if signed.is_empty() {
        return Err(CliError::other("nothing was signed", "answer a question with yes, or pass --yes"));
    }
    write(output, &offline::write_signatures(&signed))?;
    let shown = shown_path(output);
    let text = format!(
        "Wrote the signatures of {} to {shown}\nWhere there is a network: countersign sign --submit {shown}",
        key.public_key()
    );
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    session.output.result(
        &text,
        &json!({
            "signatures": output.display().to_string(),
            "public_key": key.public_key().to_string(),
            "file_paths": paths,
        }),
    )
}

async fn submit(session: &Session, file: &Path) -> Result<(), CliError> {
    let bodies = read(file, offline::parse_signatures, "countersign sign --detached FILE -o SIGNATURES")?;
    let mut signed = Vec::new();
    for body in &bodies {
        let client = session.client_for(&body.file_path)?;
        let key = session.key_at(&client, Some(&body.file_path)).await?;
        let done = client.ask(&key, ServerCall::Signatures(body), SignedResponse::parse).await;
        let is_complete = done.map_err(|error| error.after(&signed))?.is_complete;
        session.output.line(&format!(
            "Submitted the signature of {} on {}: {}",
            body.public_key,
            body.file_path,
            state_text(is_complete)
        ));
        signed.push((&body.file_path, (body.public_key, is_complete)));
    }
    let signed = signed.iter().map(|(path, (key, is_complete))| {
        json!({"file_path": path.as_str(), "public_key": key.to_string(), "is_complete": is_complete})
    });
    session.output.result("", &json!({"signed": signed.collect::<Vec<_>>()}))
}

fn read<T>(
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
