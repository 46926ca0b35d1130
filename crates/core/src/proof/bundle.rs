//! The offline bundle: all evidence for one release in one document (docs/bundle.md), and the staple of its state (D86).

use serde::{Serialize, Serializer};

use crate::log::record::{Leaf, ProjectRecord, ReleaseRecord};
use crate::log::tree::{parse_hash, write_hash};
use crate::log::{checkpoint::InclusionProof, status::StatusProof, trie::TriePath, trie::TrieSibling};
use crate::proof::verify::Evidence;
use crate::values::json::{Field, FromField, ParseError};
use crate::values::{bounds::BUNDLE_BYTES, bounds::STAPLE_BYTES, json, time::Timestamp};

const VERSION: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bundle {
    /// The time of the commit that the evidence is of, as the server says. Nothing proves it.
    pub bundled_at: Timestamp,
    #[serde(flatten)]
    pub evidence: Evidence,
    /// The staple that the log made then, if there is one.
    pub staple: Option<Staple>,
}

impl Bundle {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        json::check_len(bytes, BUNDLE_BYTES, "a bundle has")?;
        json::read(bytes)
    }

    pub fn write(&self) -> Vec<u8> {
        json::write_versioned(VERSION, self)
    }
}

impl FromField for Bundle {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let evidence = [
            "index_path", "index", "signatures", "signers_file_digest", "signers_history", "revocation",
            "rebuilds",
        ];
        let object = field.object(&[["version", "bundled_at", "staple"].as_slice(), &evidence].concat())?;
        object.require_version(VERSION)?;
        let bundled_at = object.get("bundled_at")?;
        Ok(Self { bundled_at, evidence: Evidence::parse_field(field)?, staple: object.get("staple")? })
    }
}

// The staple (D86): a few kilobytes from which `freshness` learns, offline, the state of a release as of a time.

const STAPLE_VERSION: u64 = 1;

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
        json::check_len(bytes, STAPLE_BYTES, "a staple has")?;
        json::read(bytes)
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl FromField for Staple {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.object(&["version", "leaf", "proof", "release", "project"])?;
        object.require_version(STAPLE_VERSION)?;
        let (release, release_path) = parse_proven(&object.required("release")?, ReleaseRecord::parse)?;
        let (project, project_path) = parse_proven(&object.required("project")?, ProjectRecord::parse)?;
        Ok(Self {
            leaf: object.text("leaf", Leaf::parse)?,
            proof: object.text("proof", InclusionProof::parse)?,
            statuses: StatusProof { release, release_path, project, project_path },
        })
    }
}

/// A record of the map with its path, as proofs write it.
#[derive(Serialize)]
pub(crate) struct Proven {
    record: String,
    siblings: Vec<String>,
}

impl Proven {
    pub(crate) fn new(record: String, path: &TriePath) -> Self {
        let sibling = |TrieSibling { bit, hash }: &TrieSibling| format!("{bit} {}", write_hash(hash));
        Self { record, siblings: path.siblings.iter().map(sibling).collect() }
    }
}

pub(crate) fn parse_proven<T, E: std::fmt::Display>(
    field: &Field<'_>,
    parse: fn(&str) -> Result<T, E>,
) -> Result<(T, TriePath), ParseError> {
    let object = field.object(&["record", "siblings"])?;
    let sibling =
        |entry: &Field<'_>| entry.parsed(|text| parse_sibling(text).ok_or("must be a bit and a hash"));
    let siblings = object.required("siblings")?.list(sibling)?;
    Ok((object.text("record", parse)?, TriePath { siblings }))
}

fn parse_sibling(text: &str) -> Option<TrieSibling> {
    let (bit, hash) = text.split_once(' ')?;
    let sibling = TrieSibling { bit: bit.parse().ok()?, hash: parse_hash(hash)? };
    Some(sibling).filter(|sibling| sibling.bit.to_string() == bit)
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
        let StatusProof { release, release_path, project, project_path } = &self.statuses;
        let document = Document {
            version: STAPLE_VERSION,
            leaf: self.leaf.text(),
            proof: self.proof.write(),
            release: Proven::new(release.text(), release_path),
            project: Proven::new(project.text(), project_path),
        };
        document.serialize(serializer)
    }
}
