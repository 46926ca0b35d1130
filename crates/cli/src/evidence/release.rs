//! A release as a server shows it: its evidence for a download, and what signers said against it. Core says whether it
//! holds.

use countersign_api::state::StateResponse;
use countersign_core::documents::index::{AssetName, ReleaseIndex};
use countersign_core::documents::{layout, signed_request::Withdrawal};
use countersign_core::proof::{bundle::Bundle, verify::Evidence};
use countersign_core::rules::{place::check_place, reproduction::Reproduction, stored};
use countersign_core::values::shown::{marked_name, plural, quoted, shown_text, shown_within};
use countersign_core::values::{digest::Sha512, key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_explain::describe::{describe, release::ObjectionDescription};
use countersign_explain::reproduction::different_lines;
use countersign_explain::{progress::Names, words::shown_signer};
use countersign_forge::download_url::{CandidateKind, DownloadPlace};
use serde_json::{Value, json};

use crate::client::{ServerClient, state::Shown};
use crate::words::{error::CliError, output::Output, output::quote, table::People, table::when_text};

const ASK_PROJECT: &str = "ask the project whether it signs its releases, and on which server; see --server";

/// A release that is complete or revoked, as a server shows it.
#[derive(Debug)]
pub(crate) struct ShownEvidence {
    pub(crate) shown: Shown,
    pub(crate) evidence: Evidence,
}

impl ShownEvidence {
    /// Writes what proves the release without a network: its bundle, or the whole answer if signers speak against the
    /// release, so that readers of the file learn of it (D258).
    pub(crate) fn write(&self, has_doubts: bool) -> Vec<u8> {
        if has_doubts { self.shown.answer.write() } else { self.bundle().write() }
    }

    /// The bundle of the release, as the server has it.
    pub(crate) fn bundle(&self) -> Bundle {
        let StateResponse { committed_at, staple, .. } = &self.shown.answer;
        Bundle { bundled_at: *committed_at, evidence: self.evidence.clone(), staple: staple.clone() }
    }
}

/// Finds the index that lists the file at a URL, and everything that belongs to it.
pub(crate) async fn gather(
    client: &ServerClient,
    place: &DownloadPlace,
) -> Result<(ShownEvidence, AssetName), CliError> {
    let mut exists = None;
    for candidate in &place.candidates {
        let shown = client.state_at(&candidate.index).await?;
        let Some(text) = shown.document(&candidate.index) else { continue };
        let index = ReleaseIndex::parse(text.as_bytes()).map_err(|error| {
            CliError::unverified(
                format!("what the server shows as {} is not an index", candidate.index),
                "do not use the file: the server lies or is broken",
            )
            .because(error)
        })?;
        if index.published_files.iter().any(|file| file.file_name == candidate.file_name) {
            return Ok((require_evidence(shown)?, candidate.file_name.clone()));
        }
        exists = exists.or(Some(&candidate.index));
        if candidate.kind == CandidateKind::Release {
            break;
        }
    }
    let url = &place.url;
    Err(match exists {
        Some(index) => CliError::unverified(
            format!("{url} is not signed: {index} does not list it"),
            "it may have been added to the release after the release was signed: ask the project",
        ),
        None => CliError::unverified(
            format!("{url} is not signed: the server {} has no index that could list it", client.address()),
            ASK_PROJECT,
        ),
    })
}

/// The evidence for a release, which is there if the release was complete at any time.
pub(crate) fn require_evidence(shown: Shown) -> Result<ShownEvidence, CliError> {
    if let Some(evidence) = shown.answer.state.evidence.clone() {
        return Ok(ShownEvidence { shown, evidence });
    }
    let path = shown.subject().path();
    if let Some(withdrawal) = shown.read(|files| stored::withdrawal(files, path))? {
        return Err(CliError::unverified(
            format!("{path} was withdrawn {}", say_withdrawn(&shown, &withdrawal)),
            "its signers took it back before it was complete: look for another release",
        ));
    }
    if !shown.contains(path) {
        let message = format!("the server {} has no {path}", shown.client.address());
        return Err(CliError::unverified(message, ASK_PROJECT));
    }
    let described = describe(&shown.files, path).ok().flatten();
    let so_far = described.map(|description| format!(": it {}", description.progress())).unwrap_or_default();
    Err(CliError::unverified(
        format!("{path} is not signed by enough people yet{so_far}"),
        format!("wait until the project has signed it; `countersign status {path}` shows who is missing"),
    ))
}

/// The name of a file as it may be shown.
pub(crate) fn shown_name(name: &AssetName) -> String {
    marked_name(name.as_str())
}

// A release as a server shows it, with what signers said against it. The client believes only what it verifies.

pub(crate) struct ShownRelease {
    pub(crate) index: ReleaseIndex,
    pub(crate) text: String,
    pub(crate) digest: Sha512,
}

/// Reads a release that a server shows, or `None` if there is no such release.
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

/// Reads a release that must be there. The error says so if it was withdrawn.
pub(crate) fn require_release(shown: &Shown, path: &RepoPath) -> Result<ShownRelease, CliError> {
    match find_release(shown, path)? {
        Some(release) => Ok(release),
        None => Err(match shown.read(|files| stored::withdrawal(files, path))? {
            Some(withdrawal) => withdrawn(shown, &withdrawal),
            None => no_release(path),
        }),
    }
}

pub(crate) fn withdrawn(shown: &Shown, withdrawal: &Withdrawal) -> CliError {
    CliError::other(
        format!("{} was withdrawn {}", withdrawal.body.file_path, say_withdrawn(shown, withdrawal)),
        release_again(shown.project(), &withdrawal.body.file_path),
    )
}

/// The next step after a withdrawal.
pub(crate) fn release_again(project: &RepoPath, index: &RepoPath) -> String {
    let tag = layout::release_name(index, project);
    format!("`countersign release {} {}` registers another one there", quote(project.as_str()), quote(&tag))
}

/// Says who withdrew the release, when and why.
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
        "check the name; `countersign pending` lists what waits for you",
    )
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

/// Lines about builders who got something else, to be shown before everything else (D262); none if no one did.
pub(crate) fn describe_different(
    reproduction: Option<&Reproduction>,
    names: &Names,
    output: Output,
) -> Vec<String> {
    let lines = reproduction.map(|reproduction| different_lines(reproduction, names)).unwrap_or_default();
    lines.iter().map(|line| format!("{} {line}", output.bad("DIFFERENT"))).collect()
}

/// How far builders have reproduced a release, for programs; null if no one is asked.
pub(crate) fn reproduction_json(reproduction: Option<&Reproduction>) -> Value {
    let Some(reproduction) = reproduction else { return Value::Null };
    let different = reproduction.different.iter().map(|(key, files)| {
        json!({
            "public_key": key.to_string(),
            "files": files.iter().map(AssetName::as_str).collect::<Vec<_>>(),
            "source_commit": reproduction.commits.get(key),
        })
    });
    let files = reproduction
        .files
        .iter()
        .map(|(name, agreed)| json!({"file_name": name.as_str(), "reproduced_by": agreed}));
    json!({
        "is_required": reproduction.is_required,
        "is_reproduced": reproduction.is_reproduced(),
        "collected": reproduction.tally.collected,
        "needed": reproduction.tally.needed,
        "source_commits": reproduction.sources(),
        "files": files.collect::<Vec<_>>(),
        "different": different.collect::<Vec<_>>(),
        "missing": reproduction.missing(),
    })
}

fn list_under(title: String, said: &[ObjectionDescription], you: Option<PublicKey>) -> Vec<String> {
    if said.is_empty() {
        return Vec::new();
    }
    let lines = said.iter().map(|objection| format!("  {}", say_objection(objection, you)));
    std::iter::once(title).chain(lines).collect()
}

/// Says who objects, when, and what they say.
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

/// The earlier objections, each with the digest of the content that it is about.
pub(crate) fn earlier_objections_json(earlier: &[ObjectionDescription]) -> Value {
    let entry = |objection: &ObjectionDescription| {
        let mut value = objection_json(objection);
        value["subject_digest"] = json!(objection.subject_digest.to_prefixed());
        value
    };
    earlier.iter().map(entry).collect()
}
