//! The format marker at the root of the tree (D38).

use serde::Serialize;

use crate::json_fields;
use crate::values::json::{self, FromField as _, Json, ParseError};
use crate::values::path::RepoPath;
use crate::values::time::Timestamp;
use crate::values::wire;

/// The newest repository format that this program knows.
pub const FORMAT: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepositoryMarker {
    pub format: u64,
    pub created_at: Timestamp,
}

json_fields!(object RepositoryMarker { format, created_at });

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
        Self::parse_field(&json.root())
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(self)
    }
}
