//! The offline bundle: all evidence for one release in one document (docs/bundle.md).

use serde::Serialize;

use crate::proof::staple::Staple;
use crate::proof::verify::Evidence;
use crate::values::bounds::BUNDLE_BYTES;
use crate::values::json::{self, Field, FromField, ParseError};
use crate::values::time::Timestamp;

const VERSION: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bundle {
    /// The time of the commit that the evidence is of, as the server says. Nothing proves it.
    pub bundled_at: Timestamp,
    #[serde(flatten)]
    pub evidence: Evidence,
    /// The staple that the log made then, if there is one.
    pub staple: Option<Staple>,
}

impl Bundle {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        json::check_len(bytes, BUNDLE_BYTES, "a bundle has")?;
        json::read(bytes)
    }

    pub fn write(&self) -> Vec<u8> {
        json::write_versioned(VERSION, self)
    }
}

impl FromField for Bundle {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let evidence =
            ["index_path", "index", "signatures", "signers_file_digest", "signers_history", "revocation"];
        let object = field.object(&[["version", "bundled_at", "staple"].as_slice(), &evidence].concat())?;
        object.require_version(VERSION)?;
        let bundled_at = object.get("bundled_at")?;
        Ok(Self { bundled_at, evidence: Evidence::parse_field(field)?, staple: object.get("staple")? })
    }
}
