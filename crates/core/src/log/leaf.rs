//! The leaf of a commit (D82): what it changed, and the statuses after it. The journal alone gives it.

use thiserror::Error;

use crate::{
    log::tree::{self, Hash},
    rules::snapshot::Change,
    values::digest::Sha256,
};

const KIND: &str = "countersign/leaf/v1";
const COMMIT_DIGITS: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The id of the commit, in hexadecimal.
    pub commit: String,
    /// The digest of the raw commit object: it names the commit also if someone can make two with one id.
    pub object: Sha256,
    /// The digest of the changes, as [`digest_changes`] gives it.
    pub changes: Sha256,
    /// The root of the status map after this commit.
    pub state: Hash,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a leaf of a log of Countersign")]
pub struct NotALeaf;

impl Leaf {
    pub fn text(&self) -> String {
        let Self { commit, object, changes, state } = self;
        format!("{KIND}\ncommit {commit}\nobject {object}\nchanges {changes}\nstate {state}\n")
    }

    pub fn parse(text: &str) -> Result<Self, NotALeaf> {
        Self::parse_lines(text).filter(|leaf| leaf.text() == text).ok_or(NotALeaf)
    }

    fn parse_lines(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let mut field = |name| lines.next()?.strip_prefix(name);
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let commit = field("commit ")?;
        let is_id = commit.len() == COMMIT_DIGITS && commit.bytes().all(is_digit);
        Some(Self {
            commit: is_id.then(|| commit.to_owned())?,
            object: Sha256::parse(field("object ")?)?,
            changes: Sha256::parse(field("changes ")?)?,
            state: Hash::parse(field("state ")?)?,
        })
    }

    /// The hash of the leaf, as the log has it.
    pub fn hash(&self) -> Hash {
        tree::leaf_hash(self.text().as_bytes())
    }
}

/// A bundle of entries (c2sp.org/tlog-tiles): each leaf behind its length.
pub fn write_bundle(leaves: &[Leaf]) -> Vec<u8> {
    let mut bundle = Vec::new();
    for text in leaves.iter().map(Leaf::text) {
        let length = u16::try_from(text.len()).expect("a leaf has five short lines");
        bundle.extend_from_slice(&length.to_be_bytes());
        bundle.extend_from_slice(text.as_bytes());
    }
    bundle
}

pub fn parse_bundle(mut bytes: &[u8]) -> Result<Vec<Leaf>, NotALeaf> {
    let mut leaves = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length));
        let (leaf, rest) = rest.split_at_checked(length).ok_or(NotALeaf)?;
        leaves.push(Leaf::parse(std::str::from_utf8(leaf).map_err(|_| NotALeaf)?)?);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(leaves) } else { Err(NotALeaf) }
}

/// The digest of what a commit changes, whatever SHA-1 says about it.
pub fn digest_changes(change: &Change) -> Sha256 {
    // The map is in byte order.
    let lines = change.files.iter().map(|(path, content)| match content {
        Some(content) => format!("{path}\0{}\n", Sha256::of(content)),
        None => format!("{path}\0-\n"),
    });
    Sha256::of(lines.collect::<String>().as_bytes())
}
