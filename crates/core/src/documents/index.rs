//! The index of a release (D11): its files and their digests. This is what artifact signers sign.

use std::fmt;

use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::{
    documents::fields::parse_path,
    values::{
        bounds::{ASSET_NAME_BYTES, INDEX_BYTES, INDEX_NAMES_BYTES, SEGMENT_BYTES},
        digest::{HexDigest, Sha256, Sha512},
        json::{self, Field, Json, ParseError},
        path::{RepoPath, is_name},
        shown::is_unseen,
        time::Timestamp,
    },
};

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

impl ReleaseIndex {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() > INDEX_BYTES {
            return Err(ParseError::new("", format!("an index has at most {INDEX_BYTES} bytes")));
        }
        let json = Json::parse(bytes)?;
        let object = json.root().object(&[
            "version",
            "project_id",
            "release_url",
            "mirrored_on",
            "published_on",
            "published_files",
        ])?;
        object.require_version(VERSION)?;
        let list = object.required("published_files")?;
        let published_files = list.array()?.iter().map(parse_file).collect::<Result<Vec<_>, _>>()?;
        if !published_files.is_sorted_by(|a, b| a.file_name < b.file_name) {
            return Err(list.error("must be sorted by file_name, one entry a file"));
        }
        if names_bytes(&published_files) > INDEX_NAMES_BYTES {
            return Err(list.error(format!("all names together have at most {INDEX_NAMES_BYTES} bytes")));
        }
        Ok(Self {
            project_id: parse_path(&object.required("project_id")?)?,
            release_url: object.required("release_url")?.nullable(|url| url.string().map(str::to_owned))?,
            mirrored_on: object.required("mirrored_on")?.parsed(Timestamp::parse)?,
            published_on: object.required("published_on")?.nullable(|time| time.parsed(Timestamp::parse))?,
            published_files,
        })
    }

    /// Writes the index as it is stored: within the bounds that `parse` has.
    pub fn write_bounded(&self) -> Result<Vec<u8>, IndexTooLarge> {
        let names = names_bytes(&self.published_files);
        if names > INDEX_NAMES_BYTES {
            return Err(IndexTooLarge::Names(names));
        }
        let bytes = self.write();
        if bytes.len() > INDEX_BYTES { Err(IndexTooLarge::Bytes(bytes.len())) } else { Ok(bytes) }
    }

    pub fn write(&self) -> Vec<u8> {
        json::write_versioned(VERSION, self)
    }
}

fn names_bytes(files: &[PublishedFile]) -> usize {
    files.iter().map(|file| file.file_name.as_str().len()).sum()
}

fn parse_file(field: &Field<'_>) -> Result<PublishedFile, ParseError> {
    let object = field.object(&["file_name", "size", "source", "digests"])?;
    let size = object.required("size")?;
    let digests_field = object.required("digests")?;
    let digests_object = digests_field.object(&["sha256", "sha512"])?;
    let digests = Digests {
        sha256: digests_object.optional("sha256").map(|f| f.parsed(parse_hex)).transpose()?,
        sha512: digests_object.optional("sha512").map(|f| f.parsed(parse_hex)).transpose()?,
    };
    if digests == Digests::default() {
        return Err(digests_field.error("must have sha256, sha512 or both"));
    }
    Ok(PublishedFile {
        file_name: object.required("file_name")?.parsed(AssetName::parse)?,
        size: size.nullable(Field::integer)?,
        source: object.required("source")?.string()?.to_owned(),
        digests,
    })
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
