//! Events: what happened, as the message of a commit tells it. They prove nothing.

use std::collections::BTreeSet;

use countersign_core::{
    documents::layout,
    values::{
        json::{Json, ParseError},
        key::{KeyError, PublicKey},
        path::RepoPath,
        time::Timestamp,
    },
};
use serde::{Serialize, Serializer};

use crate::claim::Claim;

/// The kinds of events, in the order of a project's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// A project was registered and collects its first signatures.
    Registration,
    /// Other signers were proposed for a project, or proposed ones replaced.
    Proposal,
    /// A signature was collected.
    Signature,
    /// The signatures on a release are enough.
    Complete,
    /// Proposed signers have all consent, and wait until they take effect.
    Agreed,
    /// One of several signatures that a veto needs was recorded.
    Veto,
    /// The masters vetoed proposed signers.
    Vetoed,
    /// Proposed signers are those in force now.
    Activated,
    /// A release was registered, or corrected while it collected signatures.
    Release,
    /// A release that collected signatures was taken back.
    Withdrawn,
    /// A signer objected to a release.
    Objection,
    /// A signer took an objection back.
    ObjectionWithdrawn,
    /// One of several signatures that a revocation needs was recorded.
    Revocation,
    /// A release was revoked.
    Revoked,
    /// The operator dropped a pending registration or proposal.
    Dropped,
}

/// One thing that happened to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    pub path: RepoPath,
    /// The key whose request it was, if the commit says so.
    pub key: Option<PublicKey>,
    /// The time at which agreed signers take effect.
    pub due: Option<Timestamp>,
}

/// Which events a listener wants: those that pass every condition that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Wants events at this path, or below it.
    pub prefix: Option<RepoPath>,
    pub kinds: Option<BTreeSet<EventKind>>,
    /// Wants events on what waits for this key's signature.
    pub key: Option<PublicKey>,
}

impl EventFilter {
    /// A key to filter by. Bytes that are no valid key are fine: nothing waits for them.
    pub fn parse_key(text: &str) -> Result<PublicKey, KeyError> {
        PublicKey::parse(text).or_else(|error| PublicKey::parse_recorded(text).map_err(|_| error))
    }

    /// Whether an event passes, as far as it alone can tell.
    pub fn matches(&self, event: &Event) -> bool {
        let is_there = |prefix: &RepoPath| event.path == *prefix || event.path.is_inside(prefix);
        self.prefix.as_ref().is_none_or(is_there)
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.kind))
    }
}

impl Event {
    /// Whether it is about one of these files, which are sorted. Signers that take effect are about all that
    /// collects signatures under them.
    pub fn concerns(&self, waiting: &[RepoPath]) -> bool {
        match layout::project_of_active_signers(&self.path) {
            Some(project) => waiting.iter().any(|file| file.is_inside(&project)),
            None => waiting.binary_search(&self.path).is_ok(),
        }
    }
}

impl EventKind {
    pub const ALL: [Self; 15] = [
        Self::Registration,
        Self::Proposal,
        Self::Signature,
        Self::Complete,
        Self::Agreed,
        Self::Veto,
        Self::Vetoed,
        Self::Activated,
        Self::Release,
        Self::Withdrawn,
        Self::Objection,
        Self::ObjectionWithdrawn,
        Self::Revocation,
        Self::Revoked,
        Self::Dropped,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Registration => "registration",
            Self::Proposal => "proposal",
            Self::Signature => "signature",
            Self::Complete => "complete",
            Self::Agreed => "agreed",
            Self::Veto => "veto",
            Self::Vetoed => "vetoed",
            Self::Activated => "activated",
            Self::Release => "release",
            Self::Withdrawn => "withdrawn",
            Self::Objection => "objection",
            Self::ObjectionWithdrawn => "objection-withdrawn",
            Self::Revocation => "revocation",
            Self::Revoked => "revoked",
            Self::Dropped => "dropped",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Serialize for EventKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What a commit with this message made happen, in order: a signature may also complete what it signs. Nothing for the
/// first commit, nor for one that is not ours.
pub fn events_of(message: &str) -> Vec<Event> {
    let event = |kind, path, key| Event { kind, path, key, due: None };
    let agreed = |project: &RepoPath, key, due| Event {
        due: Some(due),
        ..event(EventKind::Agreed, layout::pending_signers(project), Some(key))
    };
    match Claim::parse(message) {
        None | Some(Claim::Create) => Vec::new(),
        Some(Claim::Register { project, submitter }) => {
            vec![event(EventKind::Registration, layout::pending_signers(&project), submitter)]
        }
        Some(Claim::Update { project, submitter, url: _, due }) => {
            let proposed = event(EventKind::Proposal, layout::pending_signers(&project), Some(submitter));
            let waits = due.map(|due| agreed(&project, submitter, due));
            [proposed].into_iter().chain(waits).collect()
        }
        Some(Claim::Agree { project, signer, due }) => {
            let signed = event(EventKind::Signature, layout::pending_signers(&project), Some(signer));
            vec![signed, agreed(&project, signer, due)]
        }
        Some(Claim::Activate { project }) => {
            vec![event(EventKind::Activated, layout::active_signers(&project), None)]
        }
        Some(Claim::Veto { project, master, completes }) => {
            let kind = if completes { EventKind::Vetoed } else { EventKind::Veto };
            vec![event(kind, layout::pending_signers(&project), Some(master))]
        }
        Some(Claim::Sign { file, signer, completes }) => {
            let completed = completes.then(|| match layout::project_with_signers_at(&file) {
                Some(project) => event(EventKind::Activated, layout::active_signers(&project), Some(signer)),
                None => event(EventKind::Complete, file.clone(), Some(signer)),
            });
            let signed = event(EventKind::Signature, file, Some(signer));
            [signed].into_iter().chain(completed).collect()
        }
        Some(Claim::Assets { index, caller }) => {
            vec![event(EventKind::Release, index, Some(caller))]
        }
        Some(Claim::Withdraw { index, caller }) => {
            vec![event(EventKind::Withdrawn, index, Some(caller))]
        }
        Some(Claim::Object { index, objector, stands }) => {
            let kind = if stands { EventKind::Objection } else { EventKind::ObjectionWithdrawn };
            vec![event(kind, index, Some(objector))]
        }
        Some(Claim::Revoke { file, revoker, completes }) => {
            let kind = if completes { EventKind::Revoked } else { EventKind::Revocation };
            vec![event(kind, file, Some(revoker))]
        }
        Some(Claim::Drop { project }) => {
            vec![event(EventKind::Dropped, layout::pending_signers(&project), None)]
        }
    }
}

/// One event with its commit, as the stream and webhooks tell it. It proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EventBody {
    #[schema(value_type = String)]
    #[serde(rename = "type")]
    pub kind: EventKind,
    #[schema(value_type = String)]
    pub path: RepoPath,
    /// The key whose request it was, if the commit says so.
    #[schema(value_type = Option<String>, required)]
    pub key: Option<PublicKey>,
    #[schema(value_type = String)]
    pub time: Timestamp,
    pub commit: String,
    /// The time at which agreed signers take effect, unless they are vetoed.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

impl EventBody {
    /// An event of a commit. `commit` is its id, in hexadecimal digits.
    pub fn new(event: &Event, time: Timestamp, commit: String) -> Self {
        Self { kind: event.kind, path: event.path.clone(), key: event.key, time, commit, due: event.due }
    }

    /// Reads an event; `None` if it is of a kind that only a newer server knows.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let Some(kind) = EventKind::parse(object.required("type")?.string()?) else { return Ok(None) };
        let commit = object.required("commit")?;
        if !is_commit_id(commit.string()?) {
            return Err(commit.error("must be the id of a commit"));
        }
        let key = object.optional("key").filter(|key| !key.is_null());
        Ok(Some(Self {
            kind,
            path: object.required("path")?.parsed(RepoPath::parse)?,
            key: key.map(|key| key.parsed(PublicKey::parse)).transpose()?,
            time: object.required("time")?.parsed(Timestamp::parse)?,
            commit: commit.string()?.to_owned(),
            due: object.optional("due").map(|due| due.parsed(Timestamp::parse)).transpose()?,
        }))
    }

    /// Writes the event on one line, without its end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("our documents have string keys only")
    }
}

/// Whether a text is the id of a commit, as events have it.
pub fn is_commit_id(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
