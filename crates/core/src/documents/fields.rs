//! Fields that several documents and request bodies have.

use std::{collections::BTreeMap, ops::RangeInclusive};

use crate::json_texts;
use crate::values::json::{Field, FromField, ParseError};
use crate::values::key::{PublicKey, Signature};
use crate::values::{bounds::REASON_CHARS, digest::Sha512, path::RepoPath, time::Timestamp};

json_texts! {
    PublicKey: PublicKey::parse,
    RepoPath: RepoPath::parse,
    Sha512: parse_digest,
    Signature: Signature::parse,
    Timestamp: Timestamp::parse,
}

/// A path inside a document of ours: already in its normal form.
pub(crate) fn parse_path(field: &Field<'_>) -> Result<RepoPath, ParseError> {
    let text = field.string()?;
    match RepoPath::parse(text) {
        Ok(path) if path.as_str() == text => Ok(path),
        Ok(path) => Err(field.error(format!("not normalised; it must be {path:?}"))),
        Err(error) => Err(field.error(error)),
    }
}

/// An object whose names are paths, in their normal form.
impl<T: FromField> FromField for BTreeMap<RepoPath, T> {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let mut parsed = Self::new();
        for (name, entry) in field.entries()? {
            let path = RepoPath::parse(name).ok().filter(|path| path.as_str() == name);
            let path = path.ok_or_else(|| entry.error("its name is not a normalised path"))?;
            parsed.insert(path, T::parse_field(&entry)?);
        }
        Ok(parsed)
    }
}

/// An object whose names are paths as a request or answer spells them.
pub fn parse_by_any_path<T>(
    field: &Field<'_>,
    parse: impl Fn(&Field<'_>) -> Result<T, ParseError>,
) -> Result<BTreeMap<RepoPath, T>, ParseError> {
    let mut parsed = BTreeMap::new();
    for (name, entry) in field.entries()? {
        let path = RepoPath::parse(name).map_err(|error| entry.error(error))?;
        if parsed.insert(path, parse(&entry)?).is_some() {
            return Err(entry.error("two spellings of one path"));
        }
    }
    Ok(parsed)
}

/// An object whose names are keys, in their canonical spelling: a second one would be a second entry for one key.
pub(crate) fn parse_by_key<T>(
    field: &Field<'_>,
    bounds: RangeInclusive<usize>,
    out_of_bounds: &str,
    parse: impl Fn(&Field<'_>) -> Result<T, ParseError>,
) -> Result<BTreeMap<PublicKey, T>, ParseError> {
    // Before any key is read: each is decoded and compared.
    if !bounds.contains(&field.entries()?.count()) {
        return Err(field.error(out_of_bounds));
    }
    let entry = |(spelling, entry): (&str, Field<'_>)| {
        let key = PublicKey::parse_recorded(spelling).map_err(|error| entry.error(error))?;
        Ok((key, parse(&entry)?))
    };
    field.entries()?.map(entry).collect()
}

pub fn parse_digest(text: &str) -> Result<Sha512, &'static str> {
    Sha512::parse_prefixed(text).ok_or("must be `sha512:` and 128 lower-case hexadecimal digits")
}

/// How many of so many must sign.
pub(crate) fn parse_threshold(field: &Field<'_>, count: usize) -> Result<usize, ParseError> {
    let threshold = usize::parse_field(field)?;
    match (1..=count).contains(&threshold) {
        true => Ok(threshold),
        false => Err(field.error(format!("must be between 1 and {count}"))),
    }
}

/// Why someone does something, in their own words.
pub(crate) fn parse_reason(text: &str) -> Result<String, String> {
    match text.chars().count() {
        1..=REASON_CHARS => Ok(text.to_owned()),
        _ => Err(format!("must have 1 to {REASON_CHARS} characters")),
    }
}

/// Parses the key of a request body.
pub fn parse_key(field: &Field<'_>) -> Result<PublicKey, ParseError> {
    field.parsed(|text| PublicKey::parse(text).map_err(|error| format!("Invalid public key: {error}")))
}

/// Parses a signature in a request body.
pub fn parse_signature(field: &Field<'_>) -> Result<Signature, ParseError> {
    field.parsed(|text| Signature::parse(text).map_err(|error| format!("Invalid signature format: {error}")))
}
