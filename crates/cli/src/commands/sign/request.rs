//! A file to sign, as a server or a file from another computer shows it: checked, shown, and signed.

use countersign_api::requests::SignaturesBody;
use countersign_core::proof::to_sign::{SigningRequest, Subject, ToSign};
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_explain::describe::{Description, describe};

use super::formats::FormatChoice;
use crate::comparison::{self, Comparison};
use crate::proof::{self, Network};
use crate::{args::SignArgs, client::state::Shown, error::CliError, keys::SigningKey, people::when_text};
use crate::{prompt, review::Review, session::Session, trust::TrustFile, waiting::due_text};

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
pub(super) struct Gathered {
    pub(super) request: SigningRequest,
    /// A complete release asks for no signature. Its request holds those that it has.
    pub(super) is_complete: bool,
}

impl Gathered {
    /// When this key signed it, if it did.
    pub(super) fn signed_at(&self, key: &PublicKey) -> Option<Timestamp> {
        find_signed(&self.request, key)
    }

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

/// Who signs, and how they want to be asked.
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
    if !prompt::ask(session.confirmation(), &review.question())? {
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
