//! A file to sign, as a server or a file from another computer shows it: checked, shown, and signed.

use std::{collections::BTreeSet, path::Path};

use countersign_api::{requests, requests::SignaturesBody};
use countersign_core::documents::{
    layout, layout::Signable, signatures::FormatTexts, signatures::OtherFormatsFile,
};
use countersign_core::proof::to_sign::{SigningRequest, Subject, ToSign, ToSignError};
use countersign_core::values::{
    bounds::OPENPGP_FILES, key::KeyFormat, key::PublicKey, other_format::OtherFormat, path::RepoPath,
    shown::plural, time::Timestamp,
};
use countersign_explain::{describe::Description, describe::describe, reproduction::different_text};
use serde_json::{Value, json};

use crate::client::{ServerClient, session::KeyRing, session::Session, state::Shown, state::due_text};
use crate::client::{submission::Submitted, targets::Target};
use crate::evidence::carried::{SignedFile, check_output, mark_done, read, submit_all};
use crate::evidence::review::{Review, describe_comparison};
use crate::evidence::{comparison, comparison::Comparison, comparison::ForOpenpgp, proof, proof::Network};
use crate::words::output::Several;
use crate::words::{error::CliError, error::shown_path, table::when_text};
use crate::{args::SignArgs, keys::PublicHalf, keys::SigningKey};
use crate::{settings::config_dir::write, settings::trust::TrustFile};

pub(super) fn state_text(is_complete: bool, waits_until: Option<Timestamp>) -> String {
    match waits_until {
        Some(until) => format!("all signatures are there; it {}", due_text(until)),
        None if is_complete => "complete".to_owned(),
        None => "more signatures are needed".to_owned(),
    }
}

/// What a server shows of a file to sign.
pub(crate) struct Gathered {
    pub(crate) request: SigningRequest,
    /// A complete release asks for no signature. Its request holds those that it has.
    pub(super) is_complete: bool,
}

impl Gathered {
    pub(super) fn open(&self) -> Result<&SigningRequest, CliError> {
        let path = &self.request.path;
        if self.is_complete {
            return Err(CliError::other(
                format!("{path} is complete already"),
                format!("nothing is left to sign; `countersign status {path}` shows who has signed"),
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
    pub(super) you: PublicKey,
    /// What your key file or agent says of the key.
    pub(super) format: Option<KeyFormat>,
    /// What the server shows besides. Without a network nothing is known of it.
    pub(super) shown: Option<&'a Shown>,
}

impl Signing<'_> {
    /// Reads a request as what it must be (D34), shows it, compares and asks. `None` if the answer is no. No key is
    /// unlocked for this (D244).
    pub(super) fn review(
        &self,
        request: &SigningRequest,
        network: Network,
    ) -> Result<Option<Reviewed>, CliError> {
        let Self { session, you, shown, .. } = *self;
        let to_sign = check_trusted(request, network)?;
        check_asked(&to_sign, &you)?;
        let format = self.format_of(&to_sign);
        let (formats, openpgp_files) = self.choose_formats(&to_sign, format)?;
        let for_openpgp = if openpgp_files == 0 { ForOpenpgp::No } else { ForOpenpgp::Yes };
        let comparison = self.compare(&to_sign.subject, for_openpgp)?;
        let description = describe_request(request, &to_sign, shown)?;
        let review = Review {
            to_sign: &to_sign,
            description: &description,
            drops: &shown.map(Shown::drops).unwrap_or_default(),
            comparison: comparison.as_ref(),
            you,
            format,
            formats: &formats,
            openpgp_files,
        };
        let text = review.text(session.output);
        if let Some(mismatch) = comparison.as_ref().filter(|comparison| !comparison.is_match()) {
            // --files asked for this, so that --quiet does not silence it.
            session.output.show(&text);
            return Err(CliError::unverified(
                format!("not signed: the files of {} are not all the same as yours", request.path),
                "find out why they differ. --files DIR must hold every file of the release, byte for byte",
            )
            .with_detail("comparison", mismatch.json()));
        }
        self.check_different(request, &description, &text)?;
        session.output.show_question(&text);
        let is_wanted = session.output.ask(&review.question())?;
        Ok(is_wanted.then_some(Reviewed { to_sign, you, formats, comparison }))
    }

    /// Refuses to sign without a question what a builder did not get from the source (D262).
    fn check_different(
        &self,
        request: &SigningRequest,
        description: &Description,
        text: &str,
    ) -> Result<(), CliError> {
        let Description::Release(release) = description else { return Ok(()) };
        let different = release.reproduction.as_ref().and_then(different_text);
        let is_asked = !self.session.output.has_yes() || self.args.despite_rebuilds;
        let Some(different) = different.filter(|_| !is_asked) else { return Ok(()) };
        self.session.output.show(text);
        Err(CliError::unverified(
            format!("not signed: of {}, {different}", request.path),
            "find out why. Without --yes you are asked; --yes --despite-rebuilds signs it",
        ))
    }

    /// Compares the files of a release with those that --files names.
    fn compare(&self, subject: &Subject, for_openpgp: ForOpenpgp) -> Result<Option<Comparison>, CliError> {
        match (&self.args.files, subject) {
            (Some(dir), Subject::Release { index, .. }) => {
                comparison::compare(index, dir, for_openpgp).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The format of your key: what the signers file says, if you do not know it.
    fn format_of(&self, to_sign: &ToSign) -> KeyFormat {
        let listed = || to_sign.chain().map(|chain| chain.last().signers.named_signer(self.you).format);
        self.format.or_else(listed).unwrap_or(KeyFormat::Ed25519)
    }

    /// Compares a file that no longer asks for your signature, where --files asks for it (D244).
    pub(super) fn compare_again(&self, request: &SigningRequest) -> Result<Option<Comparison>, CliError> {
        let (session, path, to_sign) = (self.session, &request.path, check(request)?);
        let Some(compared) = self.compare(&to_sign.subject, ForOpenpgp::No)? else { return Ok(None) };
        if compared.is_match() {
            return Ok(Some(compared));
        }
        session.output.show(&describe_comparison(&compared, session.output).join("\n"));
        let name = session.name_of(path, Some(to_sign.project()));
        let signed =
            find_signed(request, &self.you).map(|at| format!("You signed it on {}. ", when_text(at)));
        Err(CliError::unverified(
            format!("the files of {path} are not all the same as yours"),
            format!(
                "{}Find out why they differ; `countersign object {name} --reason TEXT` tells the other signers",
                signed.unwrap_or_default()
            ),
        )
        .with_detail("comparison", compared.json()))
    }

    /// Refuses --also for a release that asks for no signature of yours, as `why` says: one for another program is made
    /// in the same act as your own (D102). `stored`: those that you made before, if a server says which there are.
    pub(super) fn check_formats(
        &self,
        why: &str,
        path: &RepoPath,
        stored: Option<&FormatTexts>,
        is_complete: bool,
    ) -> Result<(), CliError> {
        let also = self.args.also.iter().filter(|_| layout::signable(path) == Some(Signable::Index));
        let is_missing = |format: &&OtherFormat| !stored.is_some_and(|stored| stored.contains_key(*format));
        let missing: Vec<&str> = also.filter(is_missing).map(|format| format.name()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let who = match is_complete {
            true => "Pass --also when you sign the next release",
            false => "A signer who has not signed yet can pass --also",
        };
        Err(CliError::other(
            format!("{why}, and --also adds no signature for {} to it", missing.join(", ")),
            format!("a signature for another program is made in the same act as your own. {who}"),
        ))
    }

    /// Says that you signed a file before, and what a repeated `sign` finds out about it. `stored`: your signatures for
    /// other programs, if a server says which there are.
    pub(super) fn look_again(
        &self,
        request: &SigningRequest,
        at: Timestamp,
        state: &str,
        stored: Option<&FormatTexts>,
        is_complete: bool,
    ) -> Result<Option<Comparison>, CliError> {
        let (output, path) = (self.session.output, &request.path);
        let comparison = self.compare_again(request)?;
        self.check_formats(&format!("you signed {path} before"), path, stored, is_complete)?;
        output.line(&format!("You signed {path} on {}: {state}", when_text(at)));
        if let Some(comparison) = &comparison {
            output.line(&describe_comparison(comparison, output).join("\n"));
        }
        if !self.args.also.is_empty() {
            output.line("  also       your signatures for other programs are there");
        }
        Ok(comparison)
    }
}

/// A file that the signer has seen and wants to sign. It is the only way to a signature.
pub(super) struct Reviewed {
    to_sign: ToSign,
    you: PublicKey,
    formats: BTreeSet<OtherFormat>,
    pub(super) comparison: Option<Comparison>,
}

impl Reviewed {
    pub(super) fn sign(&self, key: &SigningKey) -> Result<SignaturesBody, CliError> {
        let Self { to_sign, you, formats, comparison } = self;
        let mut submission = to_sign.sign(*you, |digest| key.sign(digest))?;
        if !formats.is_empty() {
            let texts = to_sign.formats().map_err(|error| no_formats(to_sign).because(error))?;
            let files = comparison.as_ref().map_or(&[][..], |comparison| &comparison.openpgp);
            let sign = |format: &OtherFormat| {
                Ok((*format, texts.sign(*format, you, files, |message| key.sign_message(message))?))
            };
            submission.other_formats = formats.iter().map(sign).collect::<Result<_, CliError>>()?;
        }
        Ok(submission)
    }
}

pub(super) fn check_asked(to_sign: &ToSign, you: &PublicKey) -> Result<(), CliError> {
    if to_sign.accepted_signers().contains(you) {
        return Ok(());
    }
    let path = to_sign.path();
    Err(CliError::other(
        format!("{you} is not asked to sign {path}"),
        format!("check --key; `countersign status {path}` shows who is"),
    ))
}

pub(super) fn check(request: &SigningRequest) -> Result<ToSign, CliError> {
    request.check().map_err(|error| match error {
        ToSignError::BeforeRebuilds { .. } => CliError::other(
            format!("{} is not signed", request.path),
            "register the release again with `countersign release`: its index then has the time of today",
        )
        .because(error),
        error => not_signed(request).because(error),
    })
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
    let described = described.map_err(|error| not_signed(request).because(error))?;
    described.ok_or_else(|| not_signed(request).because("it is not shown"))
}

fn not_signed(request: &SigningRequest) -> CliError {
    CliError::unverified(
        format!("{} is not signed", request.path),
        "what is shown is not what its path says: the server lies or is broken",
    )
}

/// A request that was read as what it must be, and continues what this computer has accepted.
pub(crate) fn check_trusted(request: &SigningRequest, network: Network) -> Result<ToSign, CliError> {
    let to_sign = check(request)?;
    check_trust(&to_sign, network)?;
    Ok(to_sign)
}

/// A signer who has met the project before must be shown the same past.
fn check_trust(to_sign: &ToSign, network: Network) -> Result<(), CliError> {
    let store = TrustFile::locate()?.read()?;
    match to_sign.chain() {
        Some(chain) => {
            let pin = proof::check_pin(&store, chain, network)?;
            match pin.and_then(|pin| pin.revocation_of(to_sign.path(), to_sign.digest())) {
                Some(seen) => {
                    let (path, project) = (to_sign.path(), to_sign.project());
                    let note = ", as this computer has seen before";
                    Err(proof::revoked_error(path, project, &seen.reason, seen.revoked_at, note))
                }
                None => Ok(()),
            }
        }
        // A copy from before the registration shows it like this, and so does someone who wants the project to begin
        // anew.
        None if store.projects.contains_key(to_sign.project()) => Err(proof::behind(format!(
            "{} is shown as a new project, but this computer knows its signers already; nothing is signed",
            to_sign.project()
        ))),
        None => store.check_overlap(to_sign.project()).map_err(proof::untrusted),
    }
}

// Signatures for other programs, made in the same act (D100–D102).

impl Signing<'_> {
    /// The formats to sign a release in: what the signers file in force asks for, and what --also names. Signers files
    /// are signed in no other format, and a FIDO key signs in few. The number says how many of the signer's own files
    /// OpenPGP signs by themselves: all of them, or none if there are too many (D254).
    fn choose_formats(
        &self,
        to_sign: &ToSign,
        key: KeyFormat,
    ) -> Result<(BTreeSet<OtherFormat>, usize), CliError> {
        let Self { args, session: Session { output, .. }, .. } = *self;
        let names = |formats: &[OtherFormat]| formats.iter().map(|format| format.name()).collect::<Vec<_>>();
        if args.no_formats || matches!(to_sign.subject, Subject::Proposal { .. }) {
            if let asked @ [first, ..] = to_sign.asked_formats() {
                output.warn(&format!(
                    "The signers file asks for signatures for {}. Without yours, only those of others count in \
                     `countersign export --for {first}`, and none can be added once the release is complete.",
                    names(asked).join(", "),
                ));
            }
            return Ok((BTreeSet::new(), 0));
        }
        if let Some(unfit) = args.also.iter().find(|format| !format.is_for(key)) {
            return Err(CliError::usage(
                format!("your key is a FIDO key, which cannot sign for {unfit}"),
                "leave out --also; a signer with another key can pass it",
            ));
        }
        let (asked, unfit): (Vec<_>, Vec<_>) =
            to_sign.asked_formats().iter().partition(|format| format.is_for(key));
        if !unfit.is_empty() {
            let names = names(&unfit).join(" and ");
            output.note(&format!("Your key is a FIDO key, which cannot sign for {names}."));
        }
        let formats: BTreeSet<OtherFormat> = asked.into_iter().chain(args.also.iter().copied()).collect();
        if formats.is_empty() {
            return Ok((formats, 0));
        }
        let texts = match to_sign.formats() {
            Ok(texts) => texts,
            Err(error) if !args.also.is_empty() => return Err(no_formats(to_sign).because(error)),
            // The server does not require what the signers file asks for.
            Err(error) => {
                output.note(&format!("Signing in no other format: {error}."));
                return Ok((BTreeSet::new(), 0));
            }
        };
        if args.files.is_none() || !formats.contains(&OtherFormat::Openpgp) {
            return Ok((formats, 0));
        }
        let count = texts.openpgp_count();
        if count.is_none() {
            output.note(&format!(
                "The release has more than {OPENPGP_FILES} files: for OpenPGP you sign SHA256SUMS, and no file by itself."
            ));
        }
        Ok((formats, count.unwrap_or_default()))
    }
}

fn no_formats(to_sign: &ToSign) -> CliError {
    CliError::other(format!("{} cannot be signed in other formats", to_sign.path()), "leave out --also")
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
    let keep = |(target, gathered): &(Target, _)| several.keep_later(target.path.as_str(), open(gathered));
    let requests: Vec<SigningRequest> = gathered.iter().filter_map(keep).collect();
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
    let Some(first) = requests.first().map(|request| &request.path) else {
        return Err(CliError::other("nothing is in the file to sign", "export it again"));
    };
    let PublicHalf { key: you, format } = session.public_half_of(Some(first), &listed)?;
    let signing = Signing { session, args, you, format, shown: None };
    let mut several = Several::new(session.output);
    let mut open = Vec::new();
    for request in &requests {
        let Some(at) = find_signed(request, &you) else {
            open.push(request);
            continue;
        };
        let looked = signing.look_again(request, at, &state_text(false, None), None, false);
        several.keep(request.path.as_str(), looked);
    }
    if open.is_empty() {
        return several.finish("", json!({"public_key": you.to_string(), "file_paths": []}));
    }
    let mut keys = KeyRing::new(session);
    let mut signed = Vec::new();
    for request in open {
        let reviewed = keys.check(&you).and_then(|()| signing.review(request, Network::Offline));
        let body = reviewed.and_then(|reviewed| {
            let sign = |reviewed: Reviewed| reviewed.sign(keys.unlock(first, &listed, request.is_first())?);
            reviewed.map(sign).transpose()
        });
        signed.extend(several.keep(request.path.as_str(), body).flatten());
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
        let (who, path, server) = (body.public_key, &body.file_path, client.address());
        if was_done {
            session
                .output
                .line(&format!("Nothing is left to submit of {who} on {path} to {server}: {state}"));
        } else {
            check_stored(session, client, body).await;
            session.output.line(&format!("Submitted the signature of {who} on {path} to {server}: {state}"));
        }
        Ok((answer.is_complete, was_done))
    };
    let (several, done) = submit_all(session, &bodies, |body| &body.file_path, submit).await;
    let json = |(body, _, (is_complete, was_done)): &(&SignaturesBody, _, _)| {
        let SignaturesBody { file_path, public_key, .. } = body;
        let value = json!({"file_path": file_path, "public_key": public_key, "is_complete": is_complete});
        mark_done(value, *was_done)
    };
    let signed: Vec<Value> = done.iter().map(json).collect();
    several.finish("", json!({"signed": signed}))
}
