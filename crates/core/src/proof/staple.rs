//! The staple (D86): a few kilobytes from which `freshness` learns, offline, the state of a release as of a time.

use serde::{Serialize, Serializer};

use crate::{
    log::{
        leaf::Leaf,
        proofs::InclusionProof,
        record::{ProjectRecord, ReleaseRecord},
        status::StatusProof,
        tree::{parse_hash, write_hash},
        trie::{TriePath, TrieSibling},
    },
    values::{
        bounds::STAPLE_BYTES,
        json::{self, Field, Json, ParseError},
    },
};

const VERSION: u64 = 1;
/// What a server shows for a release. Nothing of it is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staple {
    /// The leaf of the last commit in the log.
    pub leaf: Leaf,
    pub proof: InclusionProof,
    pub statuses: StatusProof,
}

impl Staple {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() > STAPLE_BYTES {
            return Err(ParseError::new("", format!("a staple has at most {STAPLE_BYTES} bytes")));
        }
        Self::parse_field(&Json::parse(bytes)?.root())
    }

    pub fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.object(&["version", "leaf", "proof", "release", "project"])?;
        object.require_version(VERSION)?;
        let (release, release_path) = parse_proven(&object.required("release")?, ReleaseRecord::parse)?;
        let (project, project_path) = parse_proven(&object.required("project")?, ProjectRecord::parse)?;
        Ok(Self {
            leaf: object.required("leaf")?.parsed(Leaf::parse)?,
            proof: object.required("proof")?.parsed(InclusionProof::parse)?,
            statuses: StatusProof { release, release_path, project, project_path },
        })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(self)
    }
}

pub(crate) fn parse_proven<T, E: std::fmt::Display>(
    field: &Field<'_>,
    parse: fn(&str) -> Result<T, E>,
) -> Result<(T, TriePath), ParseError> {
    let object = field.object(&["record", "siblings"])?;
    let sibling =
        |entry: &Field<'_>| entry.parsed(|text| parse_sibling(text).ok_or("must be a bit and a hash"));
    let siblings = object.required("siblings")?.array()?.iter().map(sibling).collect::<Result<_, _>>()?;
    Ok((object.required("record")?.parsed(parse)?, TriePath { siblings }))
}

fn parse_sibling(text: &str) -> Option<TrieSibling> {
    let (bit, hash) = text.split_once(' ')?;
    let sibling = TrieSibling { bit: bit.parse().ok()?, hash: parse_hash(hash)? };
    Some(sibling).filter(|sibling| sibling.bit.to_string() == bit)
}

pub(crate) fn write_siblings(path: &TriePath) -> Vec<String> {
    let siblings = path.siblings.iter();
    siblings.map(|TrieSibling { bit, hash }| format!("{bit} {}", write_hash(hash))).collect()
}

impl Serialize for Staple {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document {
            version: u64,
            leaf: String,
            proof: String,
            release: Proven,
            project: Proven,
        }
        #[derive(Serialize)]
        struct Proven {
            record: String,
            siblings: Vec<String>,
        }
        let proven = |record: String, path: &TriePath| Proven { record, siblings: write_siblings(path) };
        let StatusProof { release, release_path, project, project_path } = &self.statuses;
        let document = Document {
            version: VERSION,
            leaf: self.leaf.text(),
            proof: self.proof.write(),
            release: proven(release.text(), release_path),
            project: proven(project.text(), project_path),
        };
        document.serialize(serializer)
    }
}
