//! Objections that stand, as answers tell of them (D126).

use countersign_core::{
    documents::{
        layout,
        objections::{ObjectionsFile, StandingObjection},
    },
    rules::{snapshot::Snapshot, stored},
    values::{
        bounds::LIST_ENTRIES,
        json::{Field, ParseError},
        key::PublicKey,
        path::RepoPath,
        time::Timestamp,
    },
};
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

    pub(crate) fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.open_object()?;
        Ok(Self {
            public_key: object.required("public_key")?.parsed(PublicKey::parse)?,
            objection: object.required("objection")?.string()?.to_owned(),
            timestamp: object.required("timestamp")?.parsed(Timestamp::parse)?,
        })
    }
}

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

    pub(crate) fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let file_path = field.open_object()?.required("file_path")?.parsed(RepoPath::parse)?;
        Ok(ListedObjection::parse_field(field)?.to(file_path))
    }
}
