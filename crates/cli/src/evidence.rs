//! Gathers what a server shows for a download. Whether it holds, core says.

use countersign_api::state::StateResponse;
use countersign_core::documents::index::{AssetName, ReleaseIndex};
use countersign_core::documents::{layout, signatures::SignatureSet, signers::SignersFile};
use countersign_core::proof::{bundle::Bundle, verify::Evidence};
use countersign_core::rules::tally::Tally;
use countersign_core::values::shown::{marked_name, plural};
use countersign_forge::download_url::{CandidateKind, DownloadPlace};

use crate::client::{ServerClient, state::Shown};
use crate::error::CliError;
use crate::shown_release::{find_withdrawal, say_withdrawn};

const ASK_PROJECT: &str = "ask the project whether it signs its releases, and on which server; see --server";

/// A release that is complete or revoked, as a server shows it.
#[derive(Debug)]
pub(crate) struct ShownEvidence {
    pub(crate) shown: Shown,
    pub(crate) evidence: Evidence,
}

impl ShownEvidence {
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
            return Ok((require_evidence(client, shown)?, candidate.file_name.clone()));
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
pub(crate) fn require_evidence(client: &ServerClient, shown: Shown) -> Result<ShownEvidence, CliError> {
    if let Some(evidence) = shown.answer.state.evidence.clone() {
        return Ok(ShownEvidence { shown, evidence });
    }
    let path = shown.subject().path();
    if let Some(withdrawal) = find_withdrawal(&shown, path)? {
        return Err(CliError::unverified(
            format!("{path} was withdrawn {}", say_withdrawn(&shown, &withdrawal)),
            "its signers took it back before it was complete: look for another release",
        ));
    }
    if !shown.contains(path) {
        let message = format!("the server {} has no {path}", client.address());
        return Err(CliError::unverified(message, ASK_PROJECT));
    }
    let set = shown.parsed(&layout::pending_signatures_of(path), SignatureSet::parse)?;
    let collected = set.unwrap_or_default().signers();
    let so_far = match shown.parsed(&layout::signers_copy_of(path), SignersFile::parse)? {
        Some(signers) => Tally::of(signers.artifact_groups(), &collected).to_string(),
        None => format!("{} signature{} so far", collected.len(), plural(collected.len())),
    };
    Err(CliError::unverified(
        format!("{path} is not signed by enough people yet: {so_far}"),
        "wait until the project has signed it; `countersign status NAME` shows who is missing",
    ))
}

/// The name of a file as it may be shown.
pub(crate) fn shown_name(name: &AssetName) -> String {
    marked_name(name.as_str())
}
