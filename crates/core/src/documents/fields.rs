//! Fields that several documents and request bodies have.

use std::collections::BTreeMap;

use crate::values::{
    bounds::REASON_CHARS,
    digest::Sha512,
    json::{Field, ParseError},
    key::{PublicKey, Signature},
    path::RepoPath,
};

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
pub fn parse_by_path<T>(
    field: &Field<'_>,
    parse: impl Fn(&Field<'_>) -> Result<T, ParseError>,
) -> Result<BTreeMap<RepoPath, T>, ParseError> {
    let mut parsed = BTreeMap::new();
    for (name, entry) in field.entries()? {
        let path = RepoPath::parse(name).ok().filter(|path| path.as_str() == name);
        let path = path.ok_or_else(|| entry.error("its name is not a normalised path"))?;
        parsed.insert(path, parse(&entry)?);
    }
    Ok(parsed)
}

pub fn parse_digest(text: &str) -> Result<Sha512, &'static str> {
    Sha512::parse_prefixed(text).ok_or("must be `sha512:` and 128 lower-case hexadecimal digits")
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
