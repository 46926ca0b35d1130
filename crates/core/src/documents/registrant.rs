//! Who registered a release (D121), as long as it collects signatures.

use serde::Serialize;

use crate::json_fields;
use crate::values::key::PublicKey;

/// The key that registered a release. The time of it stands in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Registrant {
    #[serde(rename = "registrant")]
    pub key: PublicKey,
}

json_fields!(document Registrant { key as "registrant": text(PublicKey::parse_recorded) });
