//! The leaf of a commit (D82), and the records of the status map (D83): texts of a few lines, each in one spelling.

use std::fmt::Write as _;

use thiserror::Error;

use crate::log::{note::parse_number, tree, tree::Hash, trie, trie::TrieKey};
use crate::rules::snapshot::Change;
use crate::values::{bounds::NEWEST_RELEASES, digest::Sha256, digest::Sha512, path::RepoPath};

const RELEASE: &str = "countersign/release/v1";
const PROJECT: &str = "countersign/project/v1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Release(ReleaseRecord),
    Project(ProjectRecord),
}

/// A release that was completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRecord {
    /// The path of its index.
    pub path: RepoPath,
    /// The number of the release: it was the n-th of its project to be completed, counted from 1.
    pub number: u32,
    /// The digest of its index.
    pub index: Sha512,
    pub state: LoggedState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedState {
    Complete,
    /// The release is revoked, by the document with this digest.
    Revoked(Sha512),
}

/// A project with active signers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRecord {
    pub path: RepoPath,
    /// The newest signers file.
    pub signers: Sha512,
    /// How many signers files there were, with this one.
    pub history: u32,
    /// How many releases were completed, revoked ones too.
    pub completed: u32,
    /// The indexes of the last of them, the newest first. Their numbers follow from `completed`.
    pub newest: Vec<RepoPath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a record of the status map")]
pub struct NotARecord;

impl Record {
    pub fn parse(text: &str) -> Result<Self, NotARecord> {
        if text.starts_with(RELEASE) {
            ReleaseRecord::parse(text).map(Self::Release)
        } else {
            ProjectRecord::parse(text).map(Self::Project)
        }
    }

    pub fn text(&self) -> String {
        match self {
            Self::Release(release) => release.text(),
            Self::Project(project) => project.text(),
        }
    }

    pub fn key(&self) -> TrieKey {
        match self {
            Self::Release(release) => release_key(&release.path),
            Self::Project(project) => project_key(&project.path),
        }
    }

    /// The key and the hash of the record, as a leaf of the map has them.
    pub fn leaf(&self) -> (TrieKey, Hash) {
        let key = self.key();
        (key, trie::leaf_hash(&key, self.text().as_bytes()))
    }
}

impl ReleaseRecord {
    pub fn parse(text: &str) -> Result<Self, NotARecord> {
        Self::parse_lines(text).filter(|record| record.text() == text).ok_or(NotARecord)
    }

    pub fn text(&self) -> String {
        let Self { path, number, index, state } = self;
        let state = match state {
            LoggedState::Complete => "complete".to_owned(),
            LoggedState::Revoked(revocation) => format!("revoked {revocation}"),
        };
        format!("{RELEASE}\npath {path}\nnumber {number}\nindex {index}\nstate {state}\n")
    }

    fn parse_lines(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let mut field = |name| lines.next()?.strip_prefix(name);
        Some(Self {
            path: RepoPath::parse(field("path ")?).ok()?,
            number: parse_count(field("number ")?).filter(|number| *number > 0)?,
            index: Sha512::parse(field("index ")?)?,
            state: match field("state ")? {
                "complete" => LoggedState::Complete,
                revoked => LoggedState::Revoked(Sha512::parse(revoked.strip_prefix("revoked ")?)?),
            },
        })
    }
}

impl ProjectRecord {
    pub fn parse(text: &str) -> Result<Self, NotARecord> {
        Self::parse_lines(text).filter(|record| record.text() == text).ok_or(NotARecord)
    }

    pub fn text(&self) -> String {
        let Self { path, signers, history, completed, .. } = self;
        let mut text =
            format!("{PROJECT}\npath {path}\nsigners {signers}\nhistory {history}\ncompleted {completed}\n");
        for (number, index) in self.newest() {
            let _ = writeln!(text, "newest {number} {index}");
        }
        text
    }

    /// The last releases to be completed with their numbers, the newest first.
    pub fn newest(&self) -> impl Iterator<Item = (u32, &RepoPath)> {
        (1..=self.completed).rev().zip(&self.newest)
    }

    fn parse_lines(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let mut field = |name| lines.next()?.strip_prefix(name);
        let path = RepoPath::parse(field("path ")?).ok()?;
        let signers = Sha512::parse(field("signers ")?)?;
        let history = parse_count(field("history ")?).filter(|length| *length > 0)?;
        let completed = parse_count(field("completed ")?)?;
        let named = usize::try_from(completed).ok()?.min(NEWEST_RELEASES);
        // Whether the numbers are right shows when the record is written again.
        let index = |line: &str| RepoPath::parse(line.splitn(3, ' ').nth(2)?).ok();
        let newest: Vec<RepoPath> = lines.map(index).collect::<Option<_>>()?;
        (newest.len() == named).then_some(Self { path, signers, history, completed, newest })
    }
}

pub fn release_key(index: &RepoPath) -> TrieKey {
    key("release", index)
}

pub fn project_key(project: &RepoPath) -> TrieKey {
    key("project", project)
}

fn key(kind: &str, path: &RepoPath) -> TrieKey {
    *Sha256::of(&[kind.as_bytes(), &[0], path.as_str().as_bytes()].concat()).as_bytes()
}

fn parse_count(text: &str) -> Option<u32> {
    parse_number(text)?.try_into().ok()
}

// The leaf of a commit (D82): what it changed, and the statuses after it. The journal alone gives it.

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
