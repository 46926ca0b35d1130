//! The format marker at the root of the tree (D38).

use serde::Serialize;

use crate::{
    decide::titles,
    json::{self, Json, ParseError},
    path::RepoPath,
    snapshot::Change,
    time::Timestamp,
    wire,
};

/// The newest repository format that this program knows.
pub const FORMAT: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryMarker {
    pub format: u64,
    pub created_at: Timestamp,
}

/// The first commit of every repository.
pub fn create(now: Timestamp) -> Change {
    let mut change = Change::new(format!("{}\n", titles::CREATE));
    let marker = RepositoryMarker { format: FORMAT, created_at: now.to_whole_seconds() };
    change.write(RepositoryMarker::path(), marker.write());
    change
}

impl RepositoryMarker {
    pub fn path() -> RepoPath {
        RepoPath::parse(wire::REPOSITORY_FILE).expect("a plain name is a path")
    }

    /// Reads the format first: a newer one may have other fields, and is still told apart from nonsense.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let format = json.root().open_object()?.required("format")?;
        if format.integer()? != FORMAT {
            let found = format.integer()?;
            let reason = format!(
                "the repository is of format {found}, and this program knows format {FORMAT}: use a version of \
                 Countersign that knows format {found}"
            );
            return Err(format.error(reason));
        }
        let object = json.root().object(&["format", "created_at"])?;
        let created_at = object.required("created_at")?.parsed(Timestamp::parse)?;
        Ok(Self { format: FORMAT, created_at })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(&Document { format: self.format, created_at: self.created_at.to_string() })
    }
}

#[derive(Serialize)]
struct Document {
    format: u64,
    created_at: String,
}
