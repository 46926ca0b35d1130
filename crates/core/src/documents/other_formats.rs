//! Signatures in other formats (D102): beside the index that they are about, at most one a key and format.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::documents::fields::parse_by_key;
use crate::json_fields;
use crate::values::bounds::{OTHER_FORMATS_BYTES, SIGNERS_FILE_ENTRIES};
use crate::values::json::{Field, ParseError};
use crate::values::key::{self, PublicKey};
use crate::values::other_format::{OtherFormat, ReleaseSums};

const VERSION: u64 = 1;

/// The texts that other programs read, by format.
pub type FormatTexts = BTreeMap<OtherFormat, String>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OtherFormatsFile {
    #[serde(rename = "other_formats", serialize_with = "key::sorted_as_text")]
    pub entries: BTreeMap<PublicKey, FormatTexts>,
}

json_fields!(document OtherFormatsFile version VERSION within OTHER_FORMATS_BYTES "such a file has" {
    entries as "other_formats": with(parse_entries),
});

fn parse_entries(list: &Field<'_>) -> Result<BTreeMap<PublicKey, FormatTexts>, ParseError> {
    let out_of_bounds = format!("must have between 1 and {SIGNERS_FILE_ENTRIES} keys");
    parse_by_key(list, 1..=SIGNERS_FILE_ENTRIES, &out_of_bounds, parse_texts)
}

impl OtherFormatsFile {
    /// Those that verify: for showing and handing out what a server says that it has.
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
