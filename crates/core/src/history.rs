//! The history of a project's signers files (spec §2.4, D12), in order of activation.

use serde::{Serialize, Serializer};

use crate::{
    json::{self, Field, Json, ParseError},
    signatures::SignatureSet,
    time::Timestamp,
};

/// All signers files that were ever in force, in order of activation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct History {
    pub entries: Vec<HistoryEntry>,
}

/// Signers file and metadata are kept as the exact text that was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistoryEntry {
    /// The exact text of the signers file.
    pub signers_config: String,
    pub signatures: SignatureSet,
    /// The exact text of its metadata.
    pub metadata: String,
    pub metadata_signatures: SignatureSet,
    /// When it became active.
    pub timestamp: Timestamp,
}

impl History {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::parse_field(&Json::parse(bytes)?.root())
    }

    pub(crate) fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.object(&["entries"])?;
        let entries =
            object.required("entries")?.array()?.iter().map(parse_entry).collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(self)
    }
}

fn parse_entry(field: &Field<'_>) -> Result<HistoryEntry, ParseError> {
    let object =
        field.object(&["signers_config", "signatures", "metadata", "metadata_signatures", "timestamp"])?;
    Ok(HistoryEntry {
        signers_config: object.required("signers_config")?.string()?.to_owned(),
        signatures: SignatureSet::parse_field(&object.required("signatures")?)?,
        metadata: object.required("metadata")?.string()?.to_owned(),
        metadata_signatures: SignatureSet::parse_field(&object.required("metadata_signatures")?)?,
        timestamp: object.required("timestamp")?.parsed(Timestamp::parse)?,
    })
}

impl Serialize for History {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self
            .entries
            .iter()
            .map(|entry| EntryDocument {
                signers_config: &entry.signers_config,
                signatures: &entry.signatures,
                metadata: &entry.metadata,
                metadata_signatures: &entry.metadata_signatures,
                timestamp: entry.timestamp.to_string(),
            })
            .collect();
        Document { entries }.serialize(serializer)
    }
}

#[derive(Serialize)]
struct Document<'a> {
    entries: Vec<EntryDocument<'a>>,
}

#[derive(Serialize)]
struct EntryDocument<'a> {
    signers_config: &'a str,
    signatures: &'a SignatureSet,
    metadata: &'a str,
    metadata_signatures: &'a SignatureSet,
    timestamp: String,
}
