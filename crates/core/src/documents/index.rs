//! The index of a release (D11): its files and their digests. This is what artifact signers sign.

use std::fmt;

use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::values::bounds::{ASSET_NAME_BYTES, INDEX_BYTES, INDEX_NAMES_BYTES, SEGMENT_BYTES};
use crate::values::digest::{HexDigest, Sha256, Sha512};
use crate::values::json::{Field, FromField, ParseError};
use crate::values::{path::RepoPath, path::is_name, shown::is_unseen, shown::quoted, time::Timestamp};
use crate::{documents::fields::parse_path, json_fields, json_texts};

const VERSION: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReleaseIndex {
    pub project_id: RepoPath,
    /// The page of the release; `None` where it was made from checksums files.
    pub release_url: Option<String>,
    pub mirrored_on: Timestamp,
    pub published_on: Option<Timestamp>,
    /// The files, sorted by name, one entry each.
    pub published_files: Vec<PublishedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublishedFile {
    pub file_name: AssetName,
    pub size: Option<u64>,
    pub source: String,
    pub digests: Digests,
}

/// The digests of a file, at least one of which is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Digests {
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "write_hex")]
    pub sha256: Option<Sha256>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "write_hex")]
    pub sha512: Option<Sha512>,
}

/// The name of a published file: a relative path that is safe to show and to write to (D24).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AssetName(String);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AssetNameError {
    #[error("the file name is an absolute path, or has an empty or dot segment")]
    Segments,
    #[error("the file name has a backslash, or blank or invisible characters")]
    Characters,
    #[error("the file name is longer than {ASSET_NAME_BYTES} bytes, or a segment of it than {SEGMENT_BYTES}")]
    TooLong,
}

/// Why an index would be larger than any server stores or client accepts (D41).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IndexTooLarge {
    #[error(
        "its index would have {0} bytes, and an index has at most {INDEX_BYTES}: publish fewer files, or under shorter names"
    )]
    Bytes(usize),
    #[error(
        "its file names have {0} bytes together, and in an index they have at most {INDEX_NAMES_BYTES}: publish fewer \
         files, or under shorter names"
    )]
    Names(usize),
}

impl Digests {
    /// Whether all digests that both have are the same; `None` if they have none in common.
    pub fn agrees_with(&self, other: &Self) -> Option<bool> {
        let sha256 = self.sha256.zip(other.sha256).map(|(one, other)| one == other);
        let sha512 = self.sha512.zip(other.sha512).map(|(one, other)| one == other);
        sha256.into_iter().chain(sha512).reduce(|one, other| one && other)
    }
}

impl AssetName {
    pub fn parse(text: &str) -> Result<Self, AssetNameError> {
        // First: the other rules look at each character of whatever a stranger sent.
        if text.len() > ASSET_NAME_BYTES || text.split('/').any(|segment| segment.len() > SEGMENT_BYTES) {
            return Err(AssetNameError::TooLong);
        }
        if !text.split('/').all(is_name) {
            return Err(AssetNameError::Segments);
        }
        if text.chars().any(|c| c == '\\' || is_unseen(c)) {
            return Err(AssetNameError::Characters);
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AssetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

json_fields!(document ReleaseIndex version VERSION within INDEX_BYTES "an index has" {
    published_files: with(parse_files), project_id: with(parse_path), release_url, mirrored_on, published_on,
});
json_fields!(object PublishedFile { size, digests: with(parse_digests), file_name, source });
json_fields!(object Digests { sha256: maybe_text(parse_hex), sha512: maybe_text(parse_hex) });
json_texts!(AssetName: AssetName::parse);

impl ReleaseIndex {
    /// Writes the index as it is stored, within the bounds that `parse` has.
    pub fn write_bounded(&self) -> Result<Vec<u8>, IndexTooLarge> {
        let names = names_bytes(&self.published_files);
        if names > INDEX_NAMES_BYTES {
            return Err(IndexTooLarge::Names(names));
        }
        let bytes = self.write();
        if bytes.len() > INDEX_BYTES { Err(IndexTooLarge::Bytes(bytes.len())) } else { Ok(bytes) }
    }
}

fn names_bytes(files: &[PublishedFile]) -> usize {
    files.iter().map(|file| file.file_name.as_str().len()).sum()
}

fn parse_files(list: &Field<'_>) -> Result<Vec<PublishedFile>, ParseError> {
    let files = Vec::<PublishedFile>::parse_field(list)?;
    if !files.is_sorted_by(|a, b| a.file_name < b.file_name) {
        return Err(list.error("must be sorted by file_name, one entry a file"));
    }
    if names_bytes(&files) > INDEX_NAMES_BYTES {
        return Err(list.error(format!("all names together have at most {INDEX_NAMES_BYTES} bytes")));
    }
    Ok(files)
}

pub(crate) fn parse_digests(field: &Field<'_>) -> Result<Digests, ParseError> {
    match Digests::parse_field(field)? {
        Digests { sha256: None, sha512: None } => Err(field.error("must have sha256, sha512 or both")),
        digests => Ok(digests),
    }
}

fn parse_hex<const N: usize>(text: &str) -> Result<HexDigest<N>, String> {
    HexDigest::parse(text).ok_or_else(|| format!("must be {} lower-case hexadecimal digits", 2 * N))
}

fn write_hex<const N: usize, S: Serializer>(
    digest: &Option<HexDigest<N>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(digest.as_ref().expect("an absent digest is skipped"))
}

// The `SHA256SUMS` of a release, rendered from its index (D110): for tools that know nothing of an index. It is stored
// nowhere. The same index always gives the same bytes.

/// Why an index has no such file: each line of it must mean to every reader what the index says.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotInSha256Sums {
    #[error("the release has no files")]
    Empty,
    #[error("its index has no SHA-256 of {}", quoted(.0.as_str()))]
    Undigested(AssetName),
    #[error(
        "the name {} cannot be in a SHA256SUMS file: it is `-`, begins with a space or `*`, or ends with a space",
        quoted(.0.as_str())
    )]
    Name(AssetName),
}

/// Renders one line for each file, as `sha256sum` prints it, in the order of the index.
pub fn render_sha256sums(index: &ReleaseIndex) -> Result<String, NotInSha256Sums> {
    if index.published_files.is_empty() {
        return Err(NotInSha256Sums::Empty);
    }
    let lines = index.published_files.iter().map(|file| {
        let name = &file.file_name;
        if !is_printed_plainly(name) {
            return Err(NotInSha256Sums::Name(name.clone()));
        }
        let digest = file.digests.sha256.ok_or_else(|| NotInSha256Sums::Undigested(name.clone()))?;
        Ok(format!("{digest}  {name}\n"))
    });
    lines.collect()
}

/// Whether `sha256sum` prints the name plainly. It escapes a backslash and a line break, which no name has (D24). Some
/// readers take the first character for a sign of the mode, or cut spaces off; and `-` is what comes from the standard
/// input.
fn is_printed_plainly(name: &AssetName) -> bool {
    let name = name.as_str();
    name != "-" && !name.starts_with([' ', '*']) && !name.ends_with(' ')
}
