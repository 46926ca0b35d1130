//! Signatures in other formats (D102): beside the index that they are about, at most one a key and format.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::values::{
    bounds::{OTHER_FORMATS_BYTES, SIGNERS_FILE_ENTRIES},
    json::{self, Field, Json, ParseError},
    key::{self, PublicKey},
    other_format::{OtherFormat, ReleaseSums},
};

const VERSION: u64 = 1;
const ENTRIES: &str = "other_formats";

/// The texts that other programs read, by format.
pub type FormatTexts = BTreeMap<OtherFormat, String>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OtherFormatsFile {
    #[serde(rename = "other_formats", serialize_with = "key::sorted_as_text")]
    pub entries: BTreeMap<PublicKey, FormatTexts>,
}

impl OtherFormatsFile {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() > OTHER_FORMATS_BYTES {
            return Err(ParseError::new("", format!("such a file has at most {OTHER_FORMATS_BYTES} bytes")));
        }
        let json = Json::parse(bytes)?;
        let object = json.root().object(&["version", ENTRIES])?;
        object.require_version(VERSION)?;
        let list = object.required(ENTRIES)?;
        let count = list.entries()?.count();
        if count == 0 || count > SIGNERS_FILE_ENTRIES {
            return Err(list.error(format!("must have between 1 and {SIGNERS_FILE_ENTRIES} keys")));
        }
        let mut entries = BTreeMap::new();
        for (spelling, field) in list.entries()? {
            let key = PublicKey::parse_recorded(spelling).map_err(|error| field.error(error))?;
            entries.insert(key, parse_texts(&field)?);
        }
        Ok(Self { entries })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write_versioned(VERSION, self)
    }

    /// Keeps the signatures that verify: for showing and handing out what a server says that it has.
    pub fn keep_verifying(&self, sums: &ReleaseSums<'_>) -> Self {
        let mut kept = self.clone();
        for (key, texts) in &mut kept.entries {
            texts.retain(|format, text| format.verify(text, key, sums).is_ok());
        }
        kept.entries.retain(|_, texts| !texts.is_empty());
        kept
    }

    /// How many keys have signed in a format.
    pub fn count(&self, format: OtherFormat) -> usize {
        self.entries.values().filter(|texts| texts.contains_key(&format)).count()
    }
}

/// Parses the texts by format, at least one. Whether one is what it must be, `OtherFormat::verify` says.
pub fn parse_texts(field: &Field<'_>) -> Result<FormatTexts, ParseError> {
    let mut texts = FormatTexts::new();
    for (name, text) in field.entries()? {
        let format = OtherFormat::parse(name).map_err(|error| text.error(error))?;
        texts.insert(format, text.string()?.to_owned());
    }
    if texts.is_empty() { Err(field.error("must have at least one format")) } else { Ok(texts) }
}
