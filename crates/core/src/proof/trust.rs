//! What a user has accepted of each project, and what was seen since (the file is described in docs/cli.md).
//!
//! A chain proves that each signers file follows from the one before; which one to begin with, it cannot prove. So the
//! first acceptance is remembered, and from then on the past may only grow.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use crate::documents::history::{History, HistoryEntry};
use crate::proof::{log_pin::LogPin, verify::RevokedArtifact, verify::VerifiedArtifact};
use crate::values::json::{Field, FromField, ParseError};
use crate::values::{
    digest::Sha512, path::RepoPath, shown::shown_text, time::Timestamp, verifier_key::VerifierKey,
};
use crate::{json_fields, log::note::Note, rules::chain::VerifiedChain, rules::chain::VerifiedLink};

const VERSION: u64 = 1;

/// All pins, by project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TrustStore {
    pub projects: BTreeMap<RepoPath, Pin>,
    /// Pins by the verifier key of the log. Two logs can claim one origin, and each is held to its own word.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub logs: BTreeMap<String, LogPin>,
}

/// What is remembered of one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pin {
    pub accepted_at: Timestamp,
    pub root: Root,
    /// The links of the longest history seen, in order.
    pub history: Vec<PinnedLink>,
    /// Seen revocations by the path of the index.
    pub revocations: BTreeMap<RepoPath, SeenRevocation>,
    /// The log that has shown the state of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<VerifierKey>,
}

/// The reason why the first acceptance was right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Root {
    /// The signers file was read from the project's own forge or file server.
    #[serde(rename = "origin_url")]
    Origin(String),
    /// The user had a signers file's digest from elsewhere.
    #[serde(rename = "signers_digest")]
    Digest(Sha512),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PinnedLink {
    pub signers_file_digest: Sha512,
    pub metadata_digest: Sha512,
    pub activated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenRevocation {
    pub index_digest: Sha512,
    pub reason: String,
    /// The time in the document; for a revocation that only a log showed, when witnesses had seen it.
    pub revoked_at: Timestamp,
}

/// Whether what is shown must be the newest: a bundle may be older than what was seen since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    Now,
    Earlier,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrustError {
    #[error(
        "{} is shown as a project, but this computer has accepted {}: projects do not nest",
        shown_text(.shown.as_str()), shown_text(.accepted.as_str())
    )]
    Overlaps { accepted: RepoPath, shown: RepoPath },
    #[error(
        "the past of {} has changed: entry {entry} of its signers history was {accepted} when this computer saw it, and \
         is now shown as {shown}", shown_text(.project.as_str())
    )]
    ChangedPast { project: RepoPath, entry: usize, accepted: String, shown: String },
    #[error(
        "it shows an older history of {} than this computer has seen: {shown} instead of {accepted} entries, \
         without {missing}", shown_text(.project.as_str())
    )]
    OlderHistory { project: RepoPath, accepted: usize, shown: usize, missing: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the state of {} was shown by the log {accepted}, and is now shown by the log {shown}",
    shown_text(.project.as_str())
)]
pub struct OtherLog {
    pub project: RepoPath,
    pub accepted: Box<VerifierKey>,
    pub shown: Box<VerifierKey>,
}

impl TrustStore {
    /// The pin of the chain's project, if there is one and the chain continues it.
    pub fn check(&self, chain: &VerifiedChain, shown: AsOf) -> Result<Option<&Pin>, TrustError> {
        self.check_overlap(&chain.project)?;
        let Some(pin) = self.projects.get(&chain.project) else { return Ok(None) };
        let project = || chain.project.clone();
        for (entry, (link, accepted)) in chain.links.iter().zip(&pin.history).enumerate() {
            let now = PinnedLink::of(link);
            if !accepted.is_same_file(&now) {
                let (accepted, shown) = (accepted.describe(), now.describe());
                return Err(TrustError::ChangedPast { project: project(), entry, accepted, shown });
            }
        }
        match pin.history.get(chain.links.len()) {
            Some(missing) if shown == AsOf::Now => Err(TrustError::OlderHistory {
                project: project(),
                accepted: pin.history.len(),
                shown: chain.links.len(),
                missing: missing.describe(),
            }),
            Some(_) | None => Ok(Some(pin)),
        }
    }

    /// A project that lies inside an accepted one, or around it, or is it in other letter case (D35).
    pub fn check_overlap(&self, project: &RepoPath) -> Result<(), TrustError> {
        let lower = |path: &RepoPath| format!("{}/", path.as_str().to_ascii_lowercase());
        let shown = lower(project);
        let other = self.projects.keys().find(|accepted| {
            let accepted_text = lower(accepted);
            *accepted != project && (shown.starts_with(&accepted_text) || accepted_text.starts_with(&shown))
        });
        match other {
            Some(accepted) => {
                Err(TrustError::Overlaps { accepted: accepted.clone(), shown: project.clone() })
            }
            None => Ok(()),
        }
    }

    /// Whether the release was seen to be revoked, as the project's signers have shown this computer.
    pub fn seen_revocation(&self, artifact: &VerifiedArtifact) -> Option<&SeenRevocation> {
        let pin = self.projects.get(&artifact.chain.project)?;
        pin.revocation_of(&artifact.path, &artifact.index_digest)
    }

    /// Remembers a chain, if it continues what is known now: the store may have learned more since someone else checked
    /// the chain (D207). `root` counts only where the project is new. Returns the pin.
    pub fn accept(
        &mut self,
        chain: &VerifiedChain,
        shown: AsOf,
        root: Root,
        now: Timestamp,
    ) -> Result<&Pin, TrustError> {
        self.check(chain, shown)?;
        let pin = self.projects.entry(chain.project.clone()).or_insert_with(|| Pin {
            accepted_at: now.to_whole_seconds(),
            root,
            history: Vec::new(),
            revocations: BTreeMap::new(),
            log: None,
        });
        let known = pin.history.len();
        pin.history.extend(chain.links.iter().skip(known).map(PinnedLink::of));
        Ok(pin)
    }

    /// A log that the server names must be the one that it was: of the project, and of its origin. What a policy names
    /// needs no check, because the policy decides.
    pub fn check_log(&self, project: &RepoPath, shown: &VerifierKey) -> Result<(), OtherLog> {
        let of_project = self.projects.get(project).and_then(|pin| pin.log.clone());
        let of_origin = || self.logs.keys().filter_map(|key| VerifierKey::parse(key).ok());
        let accepted = of_project.or_else(|| {
            let mut same_origin = of_origin().filter(|key| key.name() == shown.name());
            same_origin.find(|key| key != shown)
        });
        match accepted {
            Some(accepted) if accepted != *shown => Err(OtherLog {
                project: project.clone(),
                accepted: Box::new(accepted),
                shown: Box::new(shown.clone()),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// The pin of a log: what was seen of it.
    pub fn log_pin(&self, key: &VerifierKey) -> Option<&LogPin> {
        self.logs.get(&key.to_string())
    }

    /// Remembers the log of a project, and its checkpoint if it is the largest.
    pub fn remember_log(&mut self, project: &RepoPath, key: &VerifierKey, note: &Note, now: Timestamp) {
        if let Some(pin) = self.projects.get_mut(project) {
            pin.log = Some(key.clone());
        }
        let shown = LogPin::of(note, now);
        let size = |pin: &LogPin| pin.head().map_or(0, |checkpoint| checkpoint.size);
        let known = self.logs.entry(key.to_string()).or_insert_with(|| shown.clone());
        if size(&shown) > size(known) {
            *known = shown;
        }
    }

    /// Forgets the logs of this origin. Returns whether any was known.
    pub fn forget_log(&mut self, origin: &str) -> bool {
        let is_of_origin = |key: &VerifierKey| key.name() == origin;
        let before = self.clone();
        self.logs.retain(|key, _| !VerifierKey::parse(key).is_ok_and(|key| is_of_origin(&key)));
        for pin in self.projects.values_mut() {
            pin.log = pin.log.take().filter(|key| !is_of_origin(key));
        }
        *self != before
    }

    /// Remembers a revocation in the pin of its project.
    pub fn remember_revocation(&mut self, RevokedArtifact { artifact, revocation }: &RevokedArtifact) {
        let (index_digest, document) = (artifact.index_digest, &revocation.document);
        let (reason, revoked_at) = (document.reason.clone(), document.timestamp);
        if let Some(seen) = self.revocations_beside(artifact) {
            seen.insert(artifact.path.clone(), SeenRevocation { index_digest, reason, revoked_at });
        }
    }

    /// Remembers a revocation that witnesses of a log have proven, of which the document was not shown.
    pub fn remember_logged_revocation(
        &mut self,
        artifact: &VerifiedArtifact,
        reason: &str,
        as_of: Timestamp,
    ) {
        let (index_digest, reason, revoked_at) = (artifact.index_digest, reason.to_owned(), as_of);
        if let Some(seen) = self.revocations_beside(artifact) {
            let seen = seen.entry(artifact.path.clone());
            seen.or_insert(SeenRevocation { index_digest, reason, revoked_at });
        }
    }

    /// What was seen revoked of the release's project. Without a pin there is nothing to remember it in, and what is shown
    /// under another past than the pin's proves nothing.
    fn revocations_beside(
        &mut self,
        artifact: &VerifiedArtifact,
    ) -> Option<&mut BTreeMap<RepoPath, SeenRevocation>> {
        self.check(&artifact.chain, AsOf::Earlier).ok()?;
        self.projects.get_mut(&artifact.chain.project).map(|pin| &mut pin.revocations)
    }
}

impl Pin {
    /// Whether these are exactly the entries that were seen.
    pub fn has(&self, history: &History) -> bool {
        let is_same = |(seen, entry): (&PinnedLink, &HistoryEntry)| {
            seen.signers_file_digest == Sha512::of(entry.signers_config.as_bytes())
                && seen.metadata_digest == Sha512::of(entry.metadata.as_bytes())
        };
        self.history.len() == history.entries.len() && self.history.iter().zip(&history.entries).all(is_same)
    }

    /// A revocation of this index that was seen once, by its path or its content: a revoked file is never unrevoked.
    pub fn revocation_of(&self, index: &RepoPath, digest: &Sha512) -> Option<&SeenRevocation> {
        let by_path = self.revocations.get(index);
        by_path.or_else(|| self.revocations.values().find(|seen| seen.index_digest == *digest))
    }
}

impl PinnedLink {
    fn of(link: &VerifiedLink) -> Self {
        Self {
            signers_file_digest: link.digest,
            metadata_digest: link.metadata_digest,
            activated_at: link.activated_at,
        }
    }

    /// The time of activation is the server's word alone, so only what was signed is compared.
    fn is_same_file(&self, other: &Self) -> bool {
        self.signers_file_digest == other.signers_file_digest && self.metadata_digest == other.metadata_digest
    }

    fn describe(&self) -> String {
        let (signers, metadata) = (self.signers_file_digest.short(), self.metadata_digest.short());
        format!(
            "sha512:{signers}… (metadata sha512:{metadata}…, by its server active since {})",
            self.activated_at
        )
    }
}

json_fields!(document TrustStore version VERSION { projects, logs: or_default_with(parse_logs) });
json_fields!(object Pin {
    history: with(parse_history), accepted_at, root, revocations, log: maybe_text(VerifierKey::parse_log),
});
json_fields!(object PinnedLink { signers_file_digest, metadata_digest, activated_at });
json_fields!(object SeenRevocation { index_digest, reason, revoked_at });

fn parse_history(list: &Field<'_>) -> Result<Vec<PinnedLink>, ParseError> {
    let links = Vec::parse_field(list)?;
    if links.is_empty() { Err(list.error("must have at least one entry")) } else { Ok(links) }
}

fn parse_logs(field: &Field<'_>) -> Result<BTreeMap<String, LogPin>, ParseError> {
    let parse = |(key, pin): (&str, Field<'_>)| {
        VerifierKey::parse_log(key).map_err(|error| pin.error(error))?;
        Ok((key.to_owned(), LogPin::parse_field(&pin)?))
    };
    let logs: BTreeMap<String, LogPin> = field.entries()?.map(parse).collect::<Result<_, ParseError>>()?;
    if logs.is_empty() { Err(field.error("must have at least one log, or be left out")) } else { Ok(logs) }
}

impl FromField for Root {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.object(&["origin_url", "signers_digest"])?;
        match (object.maybe("origin_url")?, object.maybe("signers_digest")?) {
            (Some(url), None) => Ok(Self::Origin(url)),
            (None, Some(digest)) => Ok(Self::Digest(digest)),
            (Some(_), Some(_)) | (None, None) => Err(field.error("must have origin_url or signers_digest")),
        }
    }
}
