//! The records of the status map (D83): texts of a few lines, each in one spelling.

use std::fmt::Write as _;

use thiserror::Error;

use crate::{
    log::{
        note::parse_number,
        tree::Hash,
        trie::{self, TrieKey},
    },
    values::{
        bounds::NEWEST_RELEASES,
        digest::{Sha256, Sha512},
        path::RepoPath,
    },
};

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
