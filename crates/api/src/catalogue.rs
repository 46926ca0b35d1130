//! What is stored, by digest, project, name and key: the answers of the catalogue (D51, D52).

use std::cmp::Ordering;

use countersign_core::documents::said::{ObjectionsFile, StandingObjection};
use countersign_core::documents::{layout, signers::Role};
pub use countersign_core::rules::stored::ReleaseState;
use countersign_core::rules::{quorum::Tally, reproduction::Reproduction, snapshot::Snapshot, stored};
use countersign_core::values::{bounds::LIST_ENTRIES, key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_core::{json_fields, json_words};
use serde::Serialize;

// What waits for a key, and what is known of it.

/// What a file that waits for signatures is. In the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum WaitingKind {
    /// A revocation that was begun and needs more signatures.
    Revocation,
    /// A proposed signers file.
    Signers,
    /// The index of a release.
    Release,
    /// A release that a builder has not built anew yet.
    Rebuild,
}

json_words!(WaitingKind {
    Revocation = "revocation", Signers = "signers", Release = "release", Rebuild = "rebuild",
} "must be revocation, signers, release or rebuild");

/// Something that waits for a key's signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct WaitingFile {
    pub kind: WaitingKind,
    /// The index to sign, to rebuild or to revoke, or the proposed signers file.
    #[schema(value_type = String)]
    pub file_path: RepoPath,
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Signatures, or rebuilds, that count so far.
    pub collected: usize,
    pub needed: usize,
    /// The roles in which the key is asked: `artifact`, `admin`, `master`, `revocation` or `builder`.
    #[schema(value_type = Vec<String>)]
    pub roles: Vec<Role>,
    pub since: Timestamp,
    /// The key that registered the release, proposed the signers file or began the revocation. Absent if the server no
    /// longer knows.
    #[schema(value_type = Option<String>, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<PublicKey>,
    /// The reason of a revocation.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What signers object to in a release, the oldest first. Absent if nothing. Show it before anything else.
    #[schema(value_type = Option<Vec<ListedObjection>>, nullable = false)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<ListedObjection>,
    /// How far builders have reproduced a release. Absent if its signers file names no builders.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuilds: Option<ListedRebuilds>,
    /// The time at which a signers file that has all signatures takes effect, unless the masters veto it.
    #[schema(value_type = Option<String>, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// Whether this key's signature, or its rebuild, is all that is missing. Absent if not.
    #[schema(value_type = Option<bool>, nullable = false)]
    #[serde(skip_serializing_if = "is_false")]
    pub completes: bool,
}

json_fields!(part WaitingFile {
    kind, file_path, project_id, tag: maybe, collected, needed, roles, since, by: maybe, reason: maybe,
    objections: or_default, rebuilds: maybe, waits_until: maybe, completes: or_default,
});

impl WaitingFile {
    /// What waits, of which nothing more is known.
    pub fn new(
        kind: WaitingKind,
        file_path: RepoPath,
        project_id: RepoPath,
        tally: Tally,
        since: Timestamp,
    ) -> Self {
        let Tally { collected, needed } = tally;
        let (tag, by, reason, rebuilds, waits_until) = Default::default();
        let (roles, objections, completes) = Default::default();
        Self {
            kind,
            file_path,
            project_id,
            tag,
            collected,
            needed,
            roles,
            since,
            by,
            reason,
            objections,
            rebuilds,
            waits_until,
            completes,
        }
    }
}

/// What waits for a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeyPendingResponse {
    #[schema(value_type = String)]
    pub public_key: PublicKey,
    /// The files: begun revocations first, then signers files, then releases to sign, then those to rebuild; of each kind
    /// the oldest first.
    pub pending: Vec<WaitingFile>,
    /// Whether more waits than one answer lists. First registrations are left out before anything else.
    pub more: bool,
}

json_fields!(body KeyPendingResponse { public_key, pending, more });

/// A project whose signers file in force lists a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeyListing {
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    /// The roles as the signers file lists them: `artifact`, `admin`, `master`, `revocation` or `builder`.
    #[schema(value_type = Vec<String>)]
    pub roles: Vec<Role>,
    /// The name that this signers file gives the key.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the key can register new releases and has no role. Absent if not.
    #[schema(value_type = Option<bool>, nullable = false)]
    #[serde(skip_serializing_if = "is_false")]
    pub registrar: bool,
}

json_fields!(part KeyListing { project_id, roles, name: maybe, registrar: or_default });

/// A release that a key has signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct SignedRelease {
    #[schema(value_type = String)]
    pub index_path: RepoPath,
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    pub state: ReleaseState,
    pub signed_at: Timestamp,
    /// Whether it is or was complete, and without this signature it would not have been. Absent if not.
    #[schema(value_type = Option<bool>, nullable = false)]
    #[serde(skip_serializing_if = "is_false")]
    pub decisive: bool,
    /// How far builders have reproduced it. Absent if its signers file names no builders.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuilds: Option<ListedRebuilds>,
}

json_fields!(part SignedRelease {
    index_path, project_id, tag: maybe, state, signed_at, decisive: or_default, rebuilds: maybe,
});

/// Releases that a key has signed, as many as one answer has room for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeySignedResponse {
    #[schema(value_type = String)]
    pub public_key: PublicKey,
    /// The releases, the newest signature first.
    pub signed: Vec<SignedRelease>,
    /// Whether there are more. Ask again with `after` and the last `index_path`.
    pub more: bool,
}

json_fields!(body KeySignedResponse { public_key, signed, more });

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeyResponse {
    #[schema(value_type = String)]
    pub public_key: PublicKey,
    /// Signers files in force that list it.
    pub listed: Vec<KeyListing>,
    /// Whether more list it than one answer has room for.
    pub listed_more: bool,
    /// Projects of which it signed a signers file that took effect, and whose signers file in force does not list it.
    /// At most 100.
    #[schema(value_type = Vec<String>)]
    pub formerly: Vec<RepoPath>,
    /// The time at which it last signed a release, a signers file that took effect, or a revocation in force, anywhere
    /// on this server. Absent if it never did.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_signed_at: Option<Timestamp>,
    /// How many releases carry its signature.
    pub signed_count: usize,
    /// The last of them, the newest signature first.
    pub signed: Vec<SignedRelease>,
    /// Revocations that it signed and that wait for the signatures of others.
    pub begun: Vec<WaitingFile>,
}

json_fields!(body KeyResponse {
    public_key, listed, listed_more, formerly, last_signed_at: maybe, signed_count, signed, begun,
});

fn is_false(flag: &bool) -> bool {
    !*flag
}

// Lists of releases and of projects.

/// A release, in a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ListedRelease {
    #[schema(value_type = String)]
    pub index_path: RepoPath,
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    /// The tag. Absent for a release that was made from checksums files.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    pub state: ReleaseState,
    /// The file that has the digest, the first where there are several. Only where a digest was asked for.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// The time at which the server made the index.
    pub registered_at: Timestamp,
    /// The time of the last signature. Absent while the release collects signatures.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// The time of the last signature on the revocation. Present only if the release is revoked.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// The reason of the revocation in force, or of the one that was begun.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_reason: Option<String>,
    /// How far a revocation has come that waits for more signatures. Absent if none was begun.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_begun: Option<Tally>,
    /// On the release itself.
    pub signatures: Tally,
    /// How many signers object to it. Absent if none does.
    #[schema(value_type = Option<usize>, nullable = false)]
    #[serde(skip_serializing_if = "is_zero")]
    pub objections: usize,
    /// How far builders have reproduced it. Absent if its signers file names no builders.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuilds: Option<ListedRebuilds>,
}

json_fields!(part ListedRelease {
    index_path, project_id, tag: maybe, state, file_name: maybe, registered_at, completed_at: maybe,
    revoked_at: maybe, revocation_reason: maybe, revocation_begun: maybe, signatures, objections: or_default,
    rebuilds: maybe,
});

/// How far builders have reproduced a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ListedRebuilds {
    /// Whether builders got each file, as many as their groups need.
    pub reproduced: bool,
    /// Builders who got the file that the fewest got.
    pub collected: usize,
    /// How many builders that file needs, over all groups.
    pub needed: usize,
    /// Whether clients refuse the release until it is reproduced. Absent if not.
    #[schema(value_type = Option<bool>, nullable = false)]
    #[serde(skip_serializing_if = "is_false")]
    pub required: bool,
    /// How many builders got something else. Absent if none did. Show it before anything else.
    #[schema(value_type = Option<usize>, nullable = false)]
    #[serde(skip_serializing_if = "is_zero")]
    pub different: usize,
}

json_fields!(part ListedRebuilds { reproduced, collected, needed, required: or_default, different: or_default });

impl ListedRebuilds {
    pub fn of(reproduction: &Reproduction) -> Self {
        Self {
            reproduced: reproduction.is_reproduced(),
            collected: reproduction.tally.collected,
            needed: reproduction.tally.needed,
            required: reproduction.is_required,
            different: reproduction.different.len(),
        }
    }

    /// Whether clients refuse the release until builders have reproduced it.
    pub fn is_lacking(&self) -> bool {
        self.required && !self.reproduced
    }
}

impl ListedRelease {
    /// The directory of the release, by which versions are compared.
    pub fn dir(&self) -> &str {
        let path = self.index_path.as_str();
        path.rsplit_once('/').map_or(path, |(dir, _)| dir)
    }
}

/// Releases, as many as one answer has room for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ReleasesResponse {
    pub releases: Vec<ListedRelease>,
    /// Whether there are more. Ask again with `after` and the last `index_path`.
    pub more: bool,
}

json_fields!(body ReleasesResponse { releases, more });

/// The projects of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ProjectsResponse {
    #[schema(value_type = Vec<String>)]
    pub projects: Vec<RepoPath>,
    /// Whether there are more than one answer lists.
    pub more: bool,
}

json_fields!(body ProjectsResponse { projects, more });

pub(crate) fn is_zero(count: &usize) -> bool {
    *count == 0
}

// Objections that stand, as answers tell of them (D126).

/// What a signer holds against a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ListedObjection {
    /// The signer.
    #[schema(value_type = String)]
    pub public_key: PublicKey,
    pub objection: String,
    /// The time, as the signer says.
    pub timestamp: Timestamp,
}

/// An objection, with the release that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct PendingObjection {
    /// The index.
    #[schema(value_type = String)]
    pub file_path: RepoPath,
    /// The signer.
    #[schema(value_type = String)]
    pub public_key: PublicKey,
    pub objection: String,
    /// The time, as the signer says.
    pub timestamp: Timestamp,
}

impl ListedObjection {
    /// Lists the objections that stand, the oldest first.
    pub fn list(objections: &ObjectionsFile) -> Vec<Self> {
        let listed = |standing: StandingObjection<'_>| Self {
            public_key: standing.key,
            objection: standing.text.to_owned(),
            timestamp: standing.timestamp,
        };
        objections.standing().into_iter().map(listed).collect()
    }

    fn to(self, file_path: RepoPath) -> PendingObjection {
        let Self { public_key, objection, timestamp } = self;
        PendingObjection { file_path, public_key, objection, timestamp }
    }
}

json_fields!(part ListedObjection { public_key, objection, timestamp });
json_fields!(part PendingObjection { file_path, public_key, objection, timestamp });

impl PendingObjection {
    /// Lists the objections to these releases, as many as one answer has room for (D41). A file that cannot be read
    /// hides no other.
    pub fn within<'a>(
        snapshot: &impl Snapshot,
        releases: impl IntoIterator<Item = &'a RepoPath>,
    ) -> Vec<Self> {
        let has_some = |path: &&RepoPath| snapshot.contains(&layout::objections_of(path));
        let mut listed = Vec::new();
        for path in releases.into_iter().filter(has_some).take(LIST_ENTRIES) {
            if listed.len() >= LIST_ENTRIES {
                break;
            }
            let found = stored::objections(snapshot, path).unwrap_or_default();
            listed.extend(
                ListedObjection::list(&found).into_iter().map(|objection| objection.to(path.clone())),
            );
        }
        listed.truncate(LIST_ENTRIES);
        listed
    }
}

// Which release of a project is the newest (D77), and the order that people expect of versions: `v1.10` comes after
// `v1.9`, and `v2.0-rc1` before `v2.0`.

/// What the choice of the newest release depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseVersion<'a> {
    /// The directory of the release, below that of its project.
    pub dir: &'a str,
    pub state: ReleaseState,
    /// A revocation waits for more signatures.
    pub is_revoking: bool,
}

/// The highest version that is complete, and that no one has begun to revoke.
pub fn find_newest<'a, T>(
    releases: impl IntoIterator<Item = T>,
    version_of: impl Fn(&T) -> ReleaseVersion<'a>,
) -> Option<T> {
    let is_offered = |release: &T| {
        let ReleaseVersion { state, is_revoking, .. } = version_of(release);
        state == ReleaseState::Complete && !is_revoking
    };
    let offered = releases.into_iter().filter(is_offered);
    offered.max_by(|a, b| compare_versions(version_of(a).dir, version_of(b).dir))
}

/// Compares names, with numbers in them compared as numbers. Only equal names are equal.
pub fn compare_versions(left: &str, right: &str) -> Ordering {
    let start = count_common(left.as_bytes(), right.as_bytes());
    let [a, b] = [left, right].map(|name| pieces(&name.as_bytes()[start..]));
    a.cmp(b).then_with(|| left.cmp(right))
}

/// How much two names have in common, up to the end of a piece. A digit or a hyphen never ends a piece.
fn count_common(a: &[u8], b: &[u8]) -> usize {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let is_whole = |byte: &u8| !byte.is_ascii_digit() && *byte != b'-';
    a[..common].iter().rposition(is_whole).map_or(0, |last| last + 1)
}

/// A piece of a name. Comparing piece by piece, the smaller one above, gives a total order, which sorting needs.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Piece<'a> {
    /// The hyphen of `-rc1` and `-beta`, or a tilde. Such a version comes before the one that ends here.
    BeforeTheRelease,
    End,
    Hyphen,
    /// A byte, or a number without leading zeros, of which the longer one is the greater. `first` is the byte; a number ranks
    /// where its first digit would, as `0`.
    Text {
        first: u8,
        digits: usize,
        number: &'a [u8],
    },
}

/// The pieces of a name, with the end as the last.
fn pieces(name: &[u8]) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = Some(name);
    std::iter::from_fn(move || {
        let (piece, behind) = split_piece(rest?);
        rest = (piece != Piece::End).then_some(behind);
        Some(piece)
    })
}

fn split_piece(text: &[u8]) -> (Piece<'_>, &[u8]) {
    match text {
        [] => (Piece::End, text),
        [b'~', rest @ ..] => (Piece::BeforeTheRelease, rest),
        [b'-', rest @ ..] if rest.first().is_some_and(u8::is_ascii_alphabetic) => {
            (Piece::BeforeTheRelease, rest)
        }
        [b'-', rest @ ..] => (Piece::Hyphen, rest),
        [digit, ..] if digit.is_ascii_digit() => {
            let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
            let (number, rest) = text.split_at(end);
            let number = &number[number.iter().take_while(|byte| **byte == b'0').count()..];
            (Piece::Text { first: b'0', digits: number.len(), number }, rest)
        }
        [first, rest @ ..] => (Piece::Text { first: *first, digits: 0, number: &[] }, rest),
    }
}
