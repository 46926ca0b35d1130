//! The metadata of a signers file (D10): where it came from, whose it is, and what it replaces.

use serde::{Serialize, Serializer};

use crate::{
    documents::fields::{parse_digest, parse_path},
    values::{
        bounds::METADATA_BYTES,
        digest::Sha512,
        json::{self, Field, Json, ParseError},
        path::RepoPath,
        time::Timestamp,
    },
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
    /// The URL as the submitter gave it.
    pub url: String,
    /// The URL as requested, not where a redirect led.
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

fn parse_origin(field: &Field<'_>) -> Result<Origin, ParseError> {
    let object = field.object(&["kind", "url", "retrieval_url", "retrieved_at"])?;
    Ok(Origin {
        kind: object.required("kind")?.parsed(OriginKind::parse)?,
        url: object.required("url")?.string()?.to_owned(),
        retrieval_url: object.required("retrieval_url")?.string()?.to_owned(),
        retrieved_at: object.required("retrieved_at")?.parsed(Timestamp::parse)?,
    })
}
