//! A release as a server shows it, with what signers said against it. Nothing is believed that does not verify.

use countersign_core::documents::objections::{EarlierObjections, ObjectionsFile};
use countersign_core::documents::{index::ReleaseIndex, layout, withdrawal::Withdrawal};
use countersign_core::rules::place::check_place;
use countersign_core::values::shown::{plural, quoted, shown_text, shown_within};
use countersign_core::values::{digest::Sha512, key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_explain::{describe::release::ObjectionDescription, progress::Names, signers::shown_signer};
use serde_json::{Value, json};

use crate::people::{People, when_text};
use crate::{client::state::Shown, error::CliError, output::Output};

pub(crate) struct ShownRelease {
    pub(crate) index: ReleaseIndex,
    pub(crate) text: String,
    pub(crate) digest: Sha512,
}

/// `None` if there is no such release.
pub(crate) fn find_release(shown: &Shown, path: &RepoPath) -> Result<Option<ShownRelease>, CliError> {
    let Some(text) = shown.document(path) else { return Ok(None) };
    let wrong = |reason: String| {
        let message = format!("what the server shows as {path} is not the index of that release");
        CliError::unverified(message, "nothing was signed: the server lies or is broken").because(reason)
    };
    let index = ReleaseIndex::parse(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    check_place(&index, path).map_err(|error| wrong(error.to_string()))?;
    let digest = Sha512::of(text.as_bytes());
    Ok(Some(ShownRelease { index, text, digest }))
}

/// The same, where it must be there. One that was withdrawn is not just missing.
pub(crate) fn require_release(shown: &Shown, path: &RepoPath) -> Result<ShownRelease, CliError> {
    match find_release(shown, path)? {
        Some(release) => Ok(release),
        None => Err(match find_withdrawal(shown, path)? {
            Some(withdrawal) => withdrawn(shown, &withdrawal),
            None => no_release(path),
        }),
    }
}

pub(crate) fn withdrawn(shown: &Shown, withdrawal: &Withdrawal) -> CliError {
    CliError::other(
        format!("{} was withdrawn {}", withdrawal.body.file_path, say_withdrawn(shown, withdrawal)),
        "`countersign release` registers another one there",
    )
}

/// Who took it back, when and why.
pub(crate) fn say_withdrawn(shown: &Shown, Withdrawal { request, body }: &Withdrawal) -> String {
    let at = Timestamp::parse(&request.timestamp);
    let at = at.map_or_else(|_| shown_text(&request.timestamp), when_text);
    // The names of those in force; without them the key says it.
    let signers = shown.signers().ok().flatten();
    let names = Names::of(&signers);
    let who = People { names: &names, you: None }.name(request.public_key);
    format!("by {who}, {at}, for the reason {}", quoted(&body.reason))
}

pub(crate) fn no_release(path: &RepoPath) -> CliError {
    CliError::other(
        format!("the server has no {path}"),
        "check the name: `countersign status NAME` shows more",
    )
}

/// Who withdrew the release that was there, and why.
pub(crate) fn find_withdrawal(shown: &Shown, path: &RepoPath) -> Result<Option<Withdrawal>, CliError> {
    shown.parsed(&layout::withdrawal_of(path), Withdrawal::parse)
}

/// What signers said against a release.
pub(crate) fn find_objections(shown: &Shown, path: &RepoPath) -> Result<ObjectionsFile, CliError> {
    Ok(shown.parsed(&layout::objections_of(path), ObjectionsFile::parse)?.unwrap_or_default())
}

/// What signers said against contents that a release had before.
pub(crate) fn find_earlier_objections(shown: &Shown, path: &RepoPath) -> Result<EarlierObjections, CliError> {
    Ok(shown.parsed(&layout::earlier_objections_of(path), EarlierObjections::parse)?.unwrap_or_default())
}

/// Text from outside, whole: its length is bounded.
pub(crate) fn quoted_whole(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('"', r#"\""#);
    format!("\"{}\"", shown_within(&escaped, usize::MAX))
}

/// Lines to be shown before everything else; none if no objection stands.
pub(crate) fn describe_objections(
    standing: &[ObjectionDescription],
    you: Option<PublicKey>,
    output: Output,
) -> Vec<String> {
    let s = plural(standing.len()).to_uppercase();
    list_under(output.bad(&format!("{} OBJECTION{s}", standing.len())), standing, you)
}

/// Lines about what was said of contents that are gone: history, and no objection to what is there now.
pub(crate) fn describe_earlier_objections(
    earlier: &[ObjectionDescription],
    you: Option<PublicKey>,
) -> Vec<String> {
    let s = plural(earlier.len());
    list_under(format!("{} objection{s} to an earlier content of this release", earlier.len()), earlier, you)
}

fn list_under(title: String, said: &[ObjectionDescription], you: Option<PublicKey>) -> Vec<String> {
    if said.is_empty() {
        return Vec::new();
    }
    let lines = said.iter().map(|objection| format!("  {}", say_objection(objection, you)));
    std::iter::once(title).chain(lines).collect()
}

/// Who says it, when, and what.
pub(crate) fn say_objection(objection: &ObjectionDescription, you: Option<PublicKey>) -> String {
    let listed = if objection.is_listed { "" } else { ", who is no longer a signer" };
    let is_you = if you == Some(objection.signer.key) { " (you)" } else { "" };
    let (name, at) = (shown_signer(&objection.signer), when_text(objection.timestamp));
    format!("{name}{is_you}{listed}, {at}: {}", quoted_whole(&objection.text))
}

pub(crate) fn objections_json(standing: &[ObjectionDescription]) -> Value {
    standing.iter().map(objection_json).collect()
}

fn objection_json(objection: &ObjectionDescription) -> Value {
    json!({
        "public_key": objection.signer.key.to_string(),
        "objection": objection.text,
        "timestamp": objection.timestamp.to_string(),
    })
}

/// Each with the digest of the content that it is about.
pub(crate) fn earlier_objections_json(earlier: &[ObjectionDescription]) -> Value {
    let entry = |objection: &ObjectionDescription| {
        let mut value = objection_json(objection);
        value["subject_digest"] = json!(objection.subject_digest.to_prefixed());
        value
    };
    earlier.iter().map(entry).collect()
}
