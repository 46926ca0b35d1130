//! A file to sign, as a server or a file from another computer shows it: checked, shown, and signed.

use std::{collections::BTreeSet, path::Path};

use countersign_api::{requests, requests::SignaturesBody};
use countersign_core::documents::{layout, signatures::FormatTexts, signatures::OtherFormatsFile};
use countersign_core::proof::to_sign::{FormatsToSign, SigningRequest, Subject, ToSign};
use countersign_core::values::{
    key::PublicKey, other_format::OtherFormat, path::RepoPath, shown::plural, time::Timestamp,
};
use countersign_explain::describe::{Description, describe};
use serde_json::{Value, json};

use crate::client::{
    ServerClient, session::Session, state::Shown, state::due_text, submission::Submitted, targets::Target,
};
use crate::evidence::carried::{SignedFile, check_output, mark_done, read, submit_all};
use crate::evidence::{comparison, comparison::Comparison, proof, proof::Network, review::Review};
use crate::words::{error::CliError, error::shown_path, output, output::Several, table::when_text};
use crate::{args::SignArgs, keys::SigningKey, settings::config_dir::write, settings::trust::TrustFile};

pub(super) fn state_text(is_complete: bool, waits_until: Option<Timestamp>) -> String {
    match waits_until {
        Some(until) => format!("all signatures are there; it {}", due_text(until)),
        None if is_complete => "complete".to_owned(),
        None => "more signatures are needed".to_owned(),
    }
}

pub(super) fn say_signed(path: &RepoPath, at: Timestamp, state: &str) -> String {
    format!("You signed {path} on {}: {state}", when_text(at))
}

/// What a server shows of a file to sign.
pub(crate) struct Gathered {
    pub(crate) request: SigningRequest,
    /// A complete release asks for no signature. Its request holds those that it has.
    pub(super) is_complete: bool,
}

impl Gathered {
    pub(super) fn open(&self) -> Result<&SigningRequest, CliError> {
        if self.is_complete {
            return Err(CliError::other(
                format!("{} is complete already", self.request.path),
                "nothing is left to sign; `countersign status NAME` shows who has signed",
            ));
        }
        Ok(&self.request)
    }
}

/// When this key signed what a request asks for. A signature that does not verify is none.
pub(super) fn find_signed(request: &SigningRequest, key: &PublicKey) -> Option<Timestamp> {
    let text = request.files.get(&request.path)?;
    let set = request.collected.keep_verifying(text.as_bytes());
    set.entries.get(key).map(|collected| collected.collected_at)
}

/// The person who signs, and how they want to be asked.
pub(super) struct Signing<'a> {
    pub(super) session: &'a Session,
    pub(super) args: &'a SignArgs,
    pub(super) key: &'a SigningKey,
    /// What the server shows besides. Without a network nothing is known of it.
    pub(super) shown: Option<&'a Shown>,
}

/// The only way to a signature: read as what it must be (D34), shown, compared, asked. `None` if the answer is no.
pub(super) fn review_and_sign(
    signing: &Signing<'_>,
    request: &SigningRequest,
    network: Network,
) -> Result<Option<(SignaturesBody, Option<Comparison>)>, CliError> {
    let Signing { session, args, key, shown } = *signing;
    let to_sign = check(request)?;
    check_trust(&to_sign, network)?;
    let you = key.public_key();
    check_asked(&to_sign, &you)?;
    let comparison = compare(args, &to_sign.subject)?;
    let description = describe_request(request, &to_sign, shown)?;
    let formats = FormatChoice::of(session, args, &to_sign)?;
    let review = Review {
        to_sign: &to_sign,
        description: &description,
        drops: &shown.map(Shown::drops).unwrap_or_default(),
        comparison: comparison.as_ref(),
        you,
        formats: &formats.formats,
    };
    let text = review.text(session.output);
    match comparison.as_ref().filter(|comparison| !comparison.is_match()) {
        None => session.output.show_question(&text, session.confirmation()),
        // --files asked for this, so that --quiet does not silence it.
        Some(mismatch) => {
            session.output.show(&text);
            if args.require_match {
                return Err(CliError::unverified(
                    format!("not signed: the files of {} are not all the same as yours", request.path),
                    "find out why they differ before you sign",
                )
                .with_detail("comparison", mismatch.json()));
            }
        }
    }
    if !output::ask(session.confirmation(), &review.question())? {
        return Ok(None);
    }
    let mut submission = to_sign.sign(you, |digest| key.sign(digest))?;
    submission.other_formats = formats.sign(key)?;
    Ok(Some((submission, comparison)))
}

pub(super) fn check_asked(to_sign: &ToSign, you: &PublicKey) -> Result<(), CliError> {
    if to_sign.accepted_signers().contains(you) {
        return Ok(());
    }
    Err(CliError::other(
        format!("{you} is not asked to sign {}", to_sign.path()),
        "check --key; `countersign status NAME` shows who is",
    ))
}

pub(super) fn check(request: &SigningRequest) -> Result<ToSign, CliError> {
    request.check().map_err(|error| not_signed(request, error))
}

/// How far it has come: what is signed comes from the request alone.
fn describe_request(
    request: &SigningRequest,
    to_sign: &ToSign,
    shown: Option<&Shown>,
) -> Result<Description, CliError> {
    let beside = shown.map(|shown| shown.answer.state.files.clone()).unwrap_or_default();
    let files = request.to_files(to_sign.project(), &beside);
    let described = files.and_then(|files| describe(&files, &request.path));
    let described = described.map_err(|error| not_signed(request, error))?;
    described.ok_or_else(|| not_signed(request, "it is not shown"))
}

fn not_signed(
    request: &SigningRequest,
    reason: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> CliError {
    CliError::unverified(
        format!("{} is not signed", request.path),
        "what is shown is not what its path says: the server lies or is broken",
    )
    .because(reason)
}

/// A signer who has met the project before must be shown the same past.
pub(super) fn check_trust(to_sign: &ToSign, network: Network) -> Result<(), CliError> {
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
        // A copy from before the registration shows it like this, and so does someone who wants the project to begin anew.
        None if store.projects.contains_key(to_sign.project()) => Err(proof::behind(format!(
            "{} is shown as a new project, but this computer knows its signers already; nothing is signed",
            to_sign.project()
        ))),
        None => store.check_overlap(to_sign.project()).map_err(proof::untrusted),
    }
}

fn compare(args: &SignArgs, subject: &Subject) -> Result<Option<Comparison>, CliError> {
    match (&args.files, subject) {
        (Some(dir), Subject::Release { index, .. }) => comparison::compare(index, dir).map(Some),
        (Some(_) | None, Subject::Release { .. } | Subject::Proposal { .. }) => Ok(None),
    }
}

// Signatures for other programs, made in the same act (D100–D102).

/// The formats of one release, and what is signed in them.
pub(super) struct FormatChoice<'a> {
    pub(super) formats: BTreeSet<OtherFormat>,
    to_sign: Option<FormatsToSign<'a>>,
}

impl<'a> FormatChoice<'a> {
    /// What the signers file in force asks for, and what --also names. Signers files are signed in no other format.
    pub(super) fn of(session: &Session, args: &SignArgs, to_sign: &'a ToSign) -> Result<Self, CliError> {
        let none = Self { formats: BTreeSet::new(), to_sign: None };
        if args.no_formats || matches!(to_sign.subject, Subject::Proposal { .. }) {
            return Ok(none);
        }
        let formats: BTreeSet<OtherFormat> =
            to_sign.asked_formats().iter().chain(&args.also).copied().collect();
        if formats.is_empty() {
            return Ok(none);
        }
        match to_sign.formats() {
            Ok(found) => Ok(Self { formats, to_sign: Some(found) }),
            Err(error) if !args.also.is_empty() => Err(CliError::other(
                format!("{} cannot be signed in other formats", to_sign.path()),
                "leave out --also",
            )
            .because(error)),
            // The server does not require what the signers file asks for.
            Err(error) => {
                session.output.note(&format!("Signing in no other format: {error}."));
                Ok(none)
            }
        }
    }

    pub(super) fn sign(&self, key: &SigningKey) -> Result<FormatTexts, CliError> {
        let Some(to_sign) = &self.to_sign else { return Ok(FormatTexts::new()) };
        let you = key.public_key();
        let sign = |format: &OtherFormat| {
            Ok((*format, to_sign.sign(*format, &you, |message| key.sign_message(message))?))
        };
        self.formats.iter().map(sign).collect()
    }
}

/// The formats of this submission that the server has now. An older server ignores them, and the user is told.
pub(super) async fn check_stored(
    session: &Session,
    client: &ServerClient,
    body: &SignaturesBody,
) -> Vec<OtherFormat> {
    if body.other_formats.is_empty() {
        return Vec::new();
    }
    let path = layout::other_formats_of(&body.file_path);
    let stored = client.parsed(&path, OtherFormatsFile::parse).await.ok().flatten().unwrap_or_default();
    if stored.entries.get(&body.public_key) == Some(&body.other_formats) {
        return body.other_formats.keys().copied().collect();
    }
    session.output.show(&format!(
        "warning: the server {} does not show your signatures in other formats; your own signature counts all the same",
        client.address()
    ));
    Vec::new()
}

// Requests to sign on a computer without a network.

/// Writes requests to sign into a file. This needs no key.
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
    write(file, &requests::write_requests(&requests))?;
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
    let requests = read(file, requests::parse_requests, "countersign sign NAME --export FILE")?;
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
    let bytes = requests::write_signatures(&signed);
    SignedFile { command: "sign", by: you, paths, bytes }.hand_over(several, output)
}

pub(super) async fn submit(session: &Session, file: &Path) -> Result<(), CliError> {
    let bodies = read(file, requests::parse_signatures, "countersign sign --detached FILE -o SIGNATURES")?;
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
