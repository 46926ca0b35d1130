//! What the server knows, and what it answers.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::documents::signatures::FormatTexts;
use serde_json::Value;

use crate::model::{
    cast::Person, request::MINUTE, request::Proof, request::SECOND, rulebook::signers::Config,
};

/// All that the server knows, within the part that a run uses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spec {
    /// Nanoseconds since 1970.
    pub(crate) now: i128,
    pub(crate) projects: BTreeMap<String, Project>,
    /// Indexes by directory.
    pub(crate) indexes: BTreeMap<String, ModelIndex>,
    /// The requests that withdrew releases, by the paths of their indexes.
    pub(crate) withdrawn: BTreeMap<String, String>,
    /// Objections that stood when the content that they are about went, by the path of the index (D224).
    pub(crate) earlier_objections: BTreeMap<String, Vec<(Person, ModelObjection)>>,
    /// Used nonces, with the times of their requests.
    pub(crate) nonces: Vec<(String, i128)>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Project {
    pub(crate) active: Option<Config>,
    pub(crate) pending: Option<ModelProposal>,
    /// Replaced proposals by the text of the signers file.
    pub(crate) superseded: BTreeMap<String, ModelProposal>,
    /// Vetoes by the text of the signers file (D136).
    pub(crate) vetoed: BTreeMap<String, ModelVeto>,
    pub(crate) history: Vec<Activated>,
}

/// A signers file that collects signatures.
#[derive(Debug, Clone)]
pub(crate) struct ModelProposal {
    pub(crate) config: Config,
    pub(crate) metadata: String,
    pub(crate) registration: String,
    pub(crate) proposer: Person,
    pub(crate) retrieved_at: i128,
    pub(crate) signatures: Signatures,
    pub(crate) metadata_signatures: Signatures,
    /// The agreement with which it waits (D131).
    pub(crate) agreement: Option<ModelAgreement>,
    /// A veto that collects signatures.
    pub(crate) veto: Option<ModelVeto>,
}

/// The agreement of all, in seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelAgreement {
    pub(crate) agreed_at: i64,
    pub(crate) due_at: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelVeto {
    pub(crate) document: String,
    pub(crate) signatures: Signatures,
}

#[derive(Debug, Clone)]
pub(crate) struct Activated {
    pub(crate) proposal: ModelProposal,
    /// Seconds since 1970.
    pub(crate) at: i64,
    /// The time of the agreement, if it waited.
    pub(crate) agreed_at: Option<i64>,
}

/// Signatures by person, with the second in which the server collected each.
pub(crate) type Signatures = BTreeMap<Person, (String, i64)>;

#[derive(Debug, Clone)]
pub(crate) struct ModelIndex {
    pub(crate) text: String,
    /// The time that the text says, in seconds.
    pub(crate) mirrored_on: i64,
    pub(crate) published: Vec<Published>,
    /// Who registered it or corrected it last (D121).
    pub(crate) registrant: Person,
    pub(crate) objections: ModelObjections,
    pub(crate) rebuilds: BTreeMap<Person, ModelRebuild>,
    /// The governing copy (D16).
    pub(crate) governed_by: Config,
    pub(crate) signatures: Signatures,
    /// Signatures for other programs (D102).
    pub(crate) formats: BTreeMap<Person, FormatTexts>,
    pub(crate) state: ModelIndexState,
    pub(crate) revocation: Option<RevocationOf>,
}

impl ModelIndex {
    /// The `SHA256SUMS` of the release (D110), if each file has such a digest.
    pub(crate) fn sums(&self) -> Option<String> {
        let line = |file: &Published| Some(format!("{}  {}\n", file.digests.get("sha256")?, file.name));
        self.published.iter().map(line).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelIndexState {
    Collecting,
    Complete,
    Revoked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) name: String,
    pub(crate) source: String,
    /// Digests by the name of the algorithm, in hexadecimal.
    pub(crate) digests: BTreeMap<&'static str, String>,
}

#[derive(Debug, Clone)]
pub(crate) struct RevocationOf {
    pub(crate) document: String,
    pub(crate) signatures: Signatures,
    /// The request that names the file, if the document does not (D20).
    pub(crate) request: Option<String>,
    /// The signers file that allowed it, once it is in force.
    pub(crate) allowed_by: Option<Config>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExpectedAnswer {
    Json {
        status: u16,
        body: Value,
    },
    Bytes(Vec<u8>),
    /// An error with any of these statuses, if the specification leaves the order of checks open, and text that the
    /// message contains.
    Error {
        statuses: Vec<u16>,
        says: Option<String>,
    },
}

pub(crate) fn refuse(status: u16) -> ExpectedAnswer {
    ExpectedAnswer::Error { statuses: vec![status], says: None }
}

pub(crate) fn refuse_saying(status: u16, says: impl Into<String>) -> ExpectedAnswer {
    ExpectedAnswer::Error { statuses: vec![status], says: Some(says.into()) }
}

pub(crate) fn ok(body: Value) -> ExpectedAnswer {
    ExpectedAnswer::Json { status: 200, body }
}

impl Spec {
    pub(crate) fn seconds(&self) -> i64 {
        i64::try_from(self.now.div_euclid(SECOND)).expect("seconds fit")
    }

    /// Whether the sender of a request is proved (spec §5). Uses up its nonce.
    pub(crate) fn authenticate(&mut self, proof: Proof, nonce: &str) -> bool {
        let (is_sound, offset) = match proof {
            Proof::Right | Proof::UsedNonce | Proof::UsedNonceInCapitals => (true, 0),
            Proof::At(offset) => (-6 * MINUTE < offset && offset <= 10 * SECOND, offset),
            Proof::NotCanonical
            | Proof::WrongSignature
            | Proof::OtherBody
            | Proof::Without(_)
            | Proof::Twice(_)
            | Proof::NotRandom
            | Proof::OtherKey => (false, 0),
        };
        let is_used = self.nonces.iter().any(|(used, _)| used.eq_ignore_ascii_case(nonce));
        if is_sound && !is_used {
            self.nonces.push((nonce.to_owned(), self.now + offset));
        }
        is_sound && !is_used
    }

    /// The nearest active signers file above a directory.
    pub(crate) fn governing(&self, dir: &str) -> Option<(&str, &Config)> {
        let mut dir = dir;
        loop {
            if let Some((id, Project { active: Some(active), .. })) = self.projects.get_key_value(dir) {
                return Some((id, active));
            }
            dir = dir.rsplit_once('/')?.0;
        }
    }
}

pub(crate) fn signed_by(signatures: &Signatures) -> BTreeSet<Person> {
    signatures.keys().copied().collect()
}

/// The newest word of a builder about a release.
#[derive(Debug, Clone)]
pub(crate) struct ModelRebuild {
    pub(crate) document: String,
    pub(crate) signature: String,
    pub(crate) commit: String,
    /// The digests of each file by the name of the algorithm, in hexadecimal.
    pub(crate) files: BTreeMap<String, BTreeMap<&'static str, String>>,
    pub(crate) timestamp: i128,
    /// Seconds since 1970.
    pub(crate) at: i64,
}

pub(crate) type ModelObjections = BTreeMap<Person, ModelObjection>;

/// The newest word of a person about a release.
#[derive(Debug, Clone)]
pub(crate) struct ModelObjection {
    pub(crate) document: String,
    pub(crate) signature: String,
    pub(crate) text: Option<String>,
    pub(crate) timestamp: i128,
    /// Seconds since 1970.
    pub(crate) at: i64,
}
