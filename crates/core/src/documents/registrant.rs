//! Who registered a release (D121), as long as it collects signatures.

use serde::Serialize;

use crate::json_fields;
use crate::values::key::PublicKey;

/// When it was registered stands in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Registrant {
    #[serde(rename = "registrant")]
    pub key: PublicKey,
}

json_fields!(document Registrant { key as "registrant": text(PublicKey::parse_recorded) });
