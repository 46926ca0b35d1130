//! Who registered a release (D121), as long as it collects signatures.

use serde::Serialize;

use crate::values::{
    json::{self, Json, ParseError},
    key::PublicKey,
};

/// The key that registered a release. The time of it stands in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Registrant {
    #[serde(rename = "registrant")]
    pub key: PublicKey,
}

impl Registrant {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let key = json.root().object(&["registrant"])?.required("registrant")?;
        Ok(Self { key: key.parsed(PublicKey::parse_recorded)? })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(self)
    }
}
