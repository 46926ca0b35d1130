//! The state of one release or one project, as of one commit (D232): what the server writes, and a client reads.

use std::collections::BTreeMap;

use countersign_core::documents::{fields::parse_by_any_path, history::History, layout};
use countersign_core::json_fields;
use countersign_core::log::tree::{Hash, parse_hash, write_hash};
use countersign_core::proof::{bundle::Bundle, bundle::Staple, state::State, state::StateSubject};
use countersign_core::rules::{snapshot::ReadError, snapshot::Snapshot, stored};
use countersign_core::values::json::{Field, FromField as _, Json, ParseError};
use countersign_core::values::verifier_key::VerifierKey;
use countersign_core::values::{bounds::LIST_ENTRIES, digest::Sha512, path::RepoPath, time::Timestamp};
use serde::{Serialize, Serializer};

use crate::catalogue::ListedRelease;

const VERSION: u64 = 1;

/// The state of one release or one project, as of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateResponse {
    pub commit: String,
    pub committed_at: Timestamp,
    pub state: State,
    /// What the log proves of a complete or revoked release. It is in the bundle.
    pub staple: Option<Staple>,
    pub log: LogAnswer,
    /// The signers file behind whose entry the history begins, if the client had the entries up to it.
    pub history_after: Option<Sha512>,
    /// Collecting releases of a project that have signatures, which proposed signers would drop (D16).
    pub drops: DroppedReleases,
    /// Higher versions that are revoked, or whose revocation was begun, if the newest release was asked for.
    pub skipped: Vec<ListedRelease>,
}

/// What the server says of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct LogAnswer {
    /// The log's verifier key, by the server's word; `null` if the server keeps no log.
    #[schema(value_type = Option<String>)]
    pub key: Option<VerifierKey>,
    /// Why a release has no staple; `null` if it has one, or needs none.
    pub no_staple: Option<String>,
    /// Whether the next checkpoint can have a staple.
    pub is_soon: bool,
    /// A proof that the log of the staple and the log that the client has seen are one, if `log_size` was asked for;
    /// else `null`.
    pub consistency: Option<LogConsistency>,
}

/// A proof that a log of one size begins with the log of a smaller one (RFC 9162, 2.1.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct LogConsistency {
    /// The smaller size.
    pub from: u64,
    pub to: u64,
    /// The hashes in base64.
    #[schema(value_type = Vec<String>)]
    #[serde(serialize_with = "write_hashes")]
    pub hashes: Vec<Hash>,
}

/// Releases whose signatures proposed signers would drop, as many as one answer has room for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct DroppedReleases {
    /// The paths of their indexes.
    #[schema(value_type = Vec<String>)]
    pub releases: Vec<RepoPath>,
    /// Whether there are more.
    pub more: bool,
}

/// How many collecting releases are looked at for signatures. A project can have ten times as many.
const MOST_LOOKED_AT: usize = 1_000;

impl DroppedReleases {
    /// Lists the collecting releases of a project that have signatures. Signers that are proposed would drop these
    /// signatures (D16); if none are proposed, the list is empty.
    pub fn of(snapshot: &impl Snapshot, project: &RepoPath) -> Result<Self, ReadError> {
        let mut dropped = Self::default();
        if !snapshot.contains(&layout::pending_signers(project)) {
            return Ok(dropped);
        }
        for (looked_at, index) in snapshot.collecting_indexes(project).into_iter().enumerate() {
            if dropped.releases.len() == LIST_ENTRIES || looked_at == MOST_LOOKED_AT {
                dropped.more = true;
                break;
            }
            if !stored::collected_signatures(snapshot, &index)?.entries.is_empty() {
                dropped.releases.push(index);
            }
        }
        Ok(dropped)
    }
}

/// The fields of the answer as its schema lists them. The bundle is the last of them.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = StateResponse)]
pub struct StateDocument<'a> {
    /// The version of the format, 1.
    pub version: u64,
    /// The commit that all of this is of.
    pub commit: &'a str,
    /// The time of the commit, as the server says.
    pub committed_at: Timestamp,
    /// The kind of the answer, `release` or `project`.
    pub kind: &'static str,
    /// What the answer is about: the path of an index, or of a project.
    #[schema(value_type = String)]
    pub path: &'a RepoPath,
    #[schema(value_type = String)]
    pub project_id: &'a RepoPath,
    pub log: &'a LogAnswer,
    /// The digest of the signers file that `history_after` asked for, if the history has an entry of it. The history,
    /// here or in the bundle, then begins with the entry behind it. Else `null`.
    pub history_after: Option<String>,
    /// The history of the project's signers; `null` where the bundle has it.
    pub signers_history: &'a Option<History>,
    /// Every other stored file about the release, or about proposed and vetoed signers: its exact text, by its path.
    #[schema(value_type = BTreeMap<String, String>)]
    pub files: &'a BTreeMap<RepoPath, String>,
    pub drops: &'a DroppedReleases,
    /// Higher versions that are revoked, or whose revocation was begun, if the newest release was asked for.
    pub skipped: &'a [ListedRelease],
    /// The bundle of a complete or revoked release, byte for byte what `countersign bundle` writes (docs/bundle.md); else
    /// `null`.
    #[schema(value_type = Option<Object>)]
    #[serde(skip)]
    pub bundle: (),
}

impl StateResponse {
    /// What proves a complete or revoked release, as one document.
    pub fn bundle(&self) -> Option<Bundle> {
        let (evidence, staple) = (self.state.evidence.clone()?, self.staple.clone());
        Some(Bundle { bundled_at: self.committed_at, evidence, staple })
    }

    pub fn write(&self) -> Vec<u8> {
        let State { subject, project, history, files, evidence: _ } = &self.state;
        let document = StateDocument {
            version: VERSION,
            commit: &self.commit,
            committed_at: self.committed_at,
            kind: match subject {
                StateSubject::Release(_) => "release",
                StateSubject::Project(_) => "project",
            },
            path: subject.path(),
            project_id: project,
            log: &self.log,
            history_after: self.history_after.map(Sha512::to_prefixed),
            signers_history: history,
            files,
            drops: &self.drops,
            skipped: &self.skipped,
            bundle: (),
        };
        let mut bytes = serde_json::to_vec(&document).expect("text by text is always JSON");
        // The bundle is put in as it is, so that it can be cut out again byte for byte.
        bytes.pop();
        bytes.extend(b",\"bundle\":");
        match self.bundle() {
            Some(bundle) => bytes.extend(bundle.write()),
            None => bytes.extend(b"null"),
        }
        bytes.extend(b"}\n");
        bytes
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        object.require_version(VERSION)?;
        let project: RepoPath = object.get("project_id")?;
        let subject_of = object.text("kind", |kind| match kind {
            "release" => Ok(StateSubject::Release as fn(RepoPath) -> _),
            "project" => Ok(StateSubject::Project as fn(RepoPath) -> _),
            _ => Err("must be release or project"),
        })?;
        let subject = subject_of(object.get("path")?);
        let is_of_project = match &subject {
            StateSubject::Release(index) => index.is_inside(&project),
            StateSubject::Project(path) => *path == project,
        };
        if !is_of_project {
            return Err(object
                .required("path")?
                .error(format!("it is not in {project}, which `project_id` names")));
        }
        let files = object.with("files", |files| parse_by_any_path(files, String::parse_field))?;
        let (evidence, staple) = match object.get("bundle")? {
            Some(Bundle { evidence, staple, .. }) if evidence.path == *subject.path() => {
                (Some(evidence), staple)
            }
            Some(_) => return Err(object.required("bundle")?.error("it is about another release")),
            None => (None, None),
        };
        Ok(Self {
            commit: object.get("commit")?,
            committed_at: object.get("committed_at")?,
            log: object.get("log")?,
            history_after: object.get("history_after")?,
            drops: object.get("drops")?,
            skipped: object.get("skipped")?,
            state: State { subject, project, evidence, history: object.get("signers_history")?, files },
            staple,
        })
    }
}

json_fields!(part LogAnswer { key: with(parse_log_key), no_staple, is_soon, consistency });
json_fields!(part LogConsistency { from, to, hashes: with(parse_hashes) });
json_fields!(part DroppedReleases { releases, more });

/// Whether a document is the saved answer of a server, and not a bundle alone.
pub fn is_answer(bytes: &[u8]) -> Result<bool, ParseError> {
    Ok(Json::parse(bytes)?.root().open_object()?.optional("bundle").is_some())
}

fn parse_log_key(field: &Field<'_>) -> Result<Option<VerifierKey>, ParseError> {
    field.nullable(|key| key.parsed(VerifierKey::parse_log))
}

fn parse_hashes(list: &Field<'_>) -> Result<Vec<Hash>, ParseError> {
    list.list(|hash| hash.parsed(|text| parse_hash(text).ok_or("must be a hash in base64")))
}

fn write_hashes<S: Serializer>(hashes: &[Hash], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(hashes.iter().map(write_hash))
}
