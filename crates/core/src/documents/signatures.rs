//! The signatures file (D9): who has signed a file, and when. Beside it, signatures in other formats (D102).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::values::bounds::{OTHER_FORMATS_BYTES, SIGNATURES, SIGNERS_FILE_ENTRIES};
use crate::values::json::{Field, FromField, ParseError};
use crate::values::key::{BadSignature, PublicKey, Signature};
use crate::values::other_format::{OtherFormat, ReleaseSums};
use crate::values::{digest::Sha512, key, time::Timestamp};
use crate::{documents::fields::parse_by_key, json_fields};

/// Signatures on one file, at most one a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignatureSet {
    /// Signatures by key, `svc-pub:` and unpadded base64.
    #[serde(serialize_with = "key::sorted_as_text")]
    pub entries: BTreeMap<PublicKey, Collected>,
}

/// One signature, and when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Collected {
    pub signature: Signature,
    pub collected_at: Timestamp,
}

json_fields!(document SignatureSet { entries: with(parse_entries) });
json_fields!(object Collected { signature, collected_at });

fn parse_entries(list: &Field<'_>) -> Result<BTreeMap<PublicKey, Collected>, ParseError> {
    let too_many = format!("has more than {SIGNATURES} signatures");
    parse_by_key(list, 0..=SIGNATURES, &too_many, Collected::parse_field)
}

impl SignatureSet {
    pub fn signers(&self) -> BTreeSet<PublicKey> {
        self.entries.keys().copied().collect()
    }

    /// The keys whose signatures were there at this time.
    pub fn signers_until(&self, time: Timestamp) -> BTreeSet<PublicKey> {
        let until = self.entries.iter().filter(|(_, collected)| collected.collected_at <= time);
        until.map(|(key, _)| *key).collect()
    }

    /// The time of the first signature.
    pub fn first_signed(&self) -> Option<Timestamp> {
        self.entries.values().map(|collected| collected.collected_at).min()
    }

    /// The time of the newest signature.
    pub fn last_signed(&self) -> Option<Timestamp> {
        self.entries.values().map(|collected| collected.collected_at).max()
    }

    /// Adds a signature that was verified already; the first of a key stays.
    pub fn add(&mut self, key: PublicKey, collected: Collected) {
        self.entries.entry(key).or_insert(collected);
    }

    /// Checks every signature over `bytes`, and gives the set of those who signed.
    pub fn verify(&self, bytes: &[u8]) -> Result<BTreeSet<PublicKey>, (PublicKey, BadSignature)> {
        let digest = Sha512::of(bytes);
        for (key, collected) in &self.entries {
            key.verify(&digest, &collected.signature).map_err(|error| (*key, error))?;
        }
        Ok(self.signers())
    }

    /// The keys whose signature over `bytes` verifies: for showing how far a collection has come, where a wrong one is
    /// as good as none.
    pub fn verifying_signers(&self, bytes: &[u8]) -> BTreeSet<PublicKey> {
        let digest = Sha512::of(bytes);
        let verifies =
            |(key, collected): &(&PublicKey, &Collected)| key.verify(&digest, &collected.signature).is_ok();
        self.entries.iter().filter(verifies).map(|(key, _)| *key).collect()
    }

    /// Keeps only the signatures over `bytes` that verify.
    pub fn keep_verifying(&self, bytes: &[u8]) -> Self {
        let verifying = self.verifying_signers(bytes);
        let mut kept = self.clone();
        kept.entries.retain(|key, _| verifying.contains(key));
        kept
    }
}

// Signatures in other formats (D102): beside the index that they are about, at most one a key and format.

const VERSION: u64 = 1;

/// The texts that other programs read, by format.
pub type FormatTexts = BTreeMap<OtherFormat, String>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OtherFormatsFile {
    #[serde(rename = "other_formats", serialize_with = "key::sorted_as_text")]
    pub entries: BTreeMap<PublicKey, FormatTexts>,
}

json_fields!(document OtherFormatsFile version VERSION within OTHER_FORMATS_BYTES "such a file has" {
    entries as "other_formats": with(parse_format_entries),
});

fn parse_format_entries(list: &Field<'_>) -> Result<BTreeMap<PublicKey, FormatTexts>, ParseError> {
    let out_of_bounds = format!("must have between 1 and {SIGNERS_FILE_ENTRIES} keys");
    parse_by_key(list, 1..=SIGNERS_FILE_ENTRIES, &out_of_bounds, parse_texts)
}

impl OtherFormatsFile {
    /// Keeps the signatures that verify. What a server says that it has is shown and handed out only so.
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
