//! Objections that stand, as answers tell of them (D126).

use countersign_core::documents::layout;
use countersign_core::documents::objections::{ObjectionsFile, StandingObjection};
use countersign_core::json_fields;
use countersign_core::rules::{snapshot::Snapshot, stored};
use countersign_core::values::bounds::LIST_ENTRIES;
use countersign_core::values::key::PublicKey;
use countersign_core::values::path::RepoPath;
use countersign_core::values::time::Timestamp;
use serde::Serialize;

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
