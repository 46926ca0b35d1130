//! The metadata of a signers file (D10): where it came from, whose it is, and what it replaces.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::values::{
    bounds::METADATA_BYTES,
    digest::Sha512,
    json::{self, Field, Json, ParseError},
    path::RepoPath,
    time::Timestamp,
};

const VERSION: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Metadata {
    pub origin: Origin,
    pub project_id: RepoPath,
    pub signers_file_digest: Sha512,
    /// The signers file that this one replaces; `None` for a project's first.
    pub previous: Option<Sha512>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    pub kind: OriginKind,
    /// As the submitter gave it.
    pub url: String,
    /// As requested, not where a redirect led.
    pub retrieval_url: String,
    pub retrieved_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginKind {
    Github,
    Gitlab,
    Forgejo,
    FileServer,
}

impl OriginKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Forgejo => "forgejo",
            Self::FileServer => "file_server",
        }
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        [Self::Github, Self::Gitlab, Self::Forgejo, Self::FileServer]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or("must be github, gitlab, forgejo or file_server")
    }
}

impl Serialize for OriginKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Metadata {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() > METADATA_BYTES {
            return Err(ParseError::new("", format!("metadata have at most {METADATA_BYTES} bytes")));
        }
        let json = Json::parse(bytes)?;
        let object =
            json.root().object(&["version", "origin", "project_id", "signers_file_digest", "previous"])?;
        object.require_version(VERSION)?;
        Ok(Self {
            origin: parse_origin(&object.required("origin")?)?,
            project_id: parse_path(&object.required("project_id")?)?,
            signers_file_digest: object.required("signers_file_digest")?.parsed(parse_digest)?,
            previous: object.required("previous")?.nullable(|digest| digest.parsed(parse_digest))?,
        })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write_versioned(VERSION, self)
    }
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

pub(crate) fn parse_digest(text: &str) -> Result<Sha512, &'static str> {
    Sha512::parse_prefixed(text).ok_or("must be `sha512:` and 128 lower-case hexadecimal digits")
}

fn parse_origin(field: &Field<'_>) -> Result<Origin, ParseError> {
    let object = field.object(&["kind", "url", "retrieval_url", "retrieved_at"])?;
    Ok(Origin {
        kind: object.required("kind")?.parsed(OriginKind::parse)?,
        url: object.required("url")?.string()?.to_owned(),
        retrieval_url: object.required("retrieval_url")?.string()?.to_owned(),
        retrieved_at: object.required("retrieved_at")?.parsed(Timestamp::parse)?,
    })
}
