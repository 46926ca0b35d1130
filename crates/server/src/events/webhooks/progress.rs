//! The progress of a webhook on disk: one file for each, replaced as a whole.
//!
//! After a crash the file can say less than was delivered; then the rest is delivered again. It never says more.

use std::{fmt, fs, io, path::Path, sync::Arc, time::Duration};

use countersign_store::journal::recent_commits::{NewestCommit, RecentCommit, RecentCommits};
use countersign_store::machine::disk;
use countersign_store::{Disk, ObjectId, StoreError, journal::milestones::Stretch};
use tokio::time::Instant;

use crate::{events::webhooks::settings::WebhookName, follow::background::BoxedError};

/// How long to keep in memory only that events need no delivery. Looking at them again is cheap.
const LAZINESS: Duration = Duration::from_secs(5);

/// A commit, and how many of its events are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryPosition {
    pub commit: ObjectId,
    /// How many of the commit's events are done; `None` means all of them.
    pub events: Option<usize>,
}

/// How far a webhook is, in memory and, unless nodes share it, in a file.
#[derive(Debug)]
pub struct Progress {
    /// The file; `None` if the database that nodes share keeps the progress.
    path: Option<Arc<Path>>,
    position: DeliveryPosition,
    /// The time since which the file is behind `place`.
    behind_since: Option<Instant>,
}

impl DeliveryPosition {
    pub fn after(commit: ObjectId) -> Self {
        Self { commit, events: None }
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('\n')?;
        let (commit, events) = match text.split_once(' ') {
            Some((commit, count)) => (commit, Some(count.parse().ok()?)),
            None => (text, None),
        };
        Some(Self { commit: ObjectId::from_hex(commit.as_bytes()).ok()?, events })
    }
}

impl fmt::Display for DeliveryPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.events {
            Some(count) => writeln!(f, "{} {count}", self.commit),
            None => writeln!(f, "{}", self.commit),
        }
    }
}

impl Progress {
    /// Creates the file if it is missing. A new file skips everything up to `newest`.
    pub fn open(dir: &Path, name: &WebhookName, newest: ObjectId) -> Result<Self, BoxedError> {
        let path = dir.join(name.as_str());
        let shown = path.display();
        let unreadable = || {
            format!(
                "{shown} does not say how far the webhook came: put a commit of the repository in it, or remove it in order to \
                 begin at the newest one"
            )
        };
        let fail = |error: io::Error| format!("the progress of a webhook cannot be kept in {shown}: {error}");
        let position = match fs::read_to_string(&path) {
            Ok(text) => DeliveryPosition::parse(&text).ok_or_else(unreadable)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let position = DeliveryPosition::after(newest);
                Disk::default().settle_dir(dir).map_err(fail)?;
                disk::replace(&path, &position.to_string()).map_err(fail)?;
                tracing::info!(webhook = %name, commit = %newest, "a new webhook starts after this commit");
                position
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(unreadable().into()),
            Err(error) => return Err(fail(error).into()),
        };
        Ok(Self { path: Some(path.into()), position, behind_since: None })
    }

    /// What is known while this node delivers. What nodes share is written when a turn ends.
    pub fn shared(newest: ObjectId) -> Self {
        Self { path: None, position: DeliveryPosition::after(newest), behind_since: None }
    }

    pub fn position(&self) -> DeliveryPosition {
        self.position
    }

    /// Events up to here were delivered or need no delivery. Changes memory only.
    pub fn advance(&mut self, position: DeliveryPosition) {
        if self.position != position && self.path.is_some() {
            self.behind_since.get_or_insert_with(Instant::now);
        }
        self.position = position;
    }

    /// The latest time to write the file.
    pub fn due(&self) -> Option<Instant> {
        self.behind_since.map(|since| since + LAZINESS)
    }

    /// Writes what is known. Must run to its end: the file has one writer at a time.
    pub async fn record(&mut self) -> io::Result<()> {
        let (Some(path), Some(_), position) = (self.path.clone(), self.behind_since, self.position) else {
            return Ok(());
        };
        let written = tokio::task::spawn_blocking(move || disk::replace(&path, &position.to_string())).await;
        // A failed write is retried, but not at once.
        self.behind_since = Some(Instant::now());
        written.map_err(io::Error::other)??;
        self.behind_since = None;
        Ok(())
    }
}

// The commits in order, from any one on. They come from memory, or from the repository if memory no longer has them.

/// How many commits to take from memory at a time.
const STEP: usize = 500;

/// A reading position. Every method can read from disk, so no thread that others wait for should call them.
#[derive(Debug)]
pub(crate) struct Commits {
    recent_commits: Arc<RecentCommits>,
    /// The position of the next commit.
    next: i64,
    /// What to read back from the repository first; the oldest comes last.
    older: Vec<Stretch>,
}

/// Some commits, oldest first, and the position of the first of them.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) begin: i64,
    pub(crate) commits: Vec<Arc<RecentCommit>>,
}

#[derive(Debug)]
pub(crate) enum FoundCommits {
    /// Reading begins with that commit.
    At(Commits),
    /// The commit is not in the history. Reading would begin with the newest commit.
    Nowhere { commits: Commits, newest: ObjectId },
    /// There is no commit yet.
    Empty,
}

impl Commits {
    pub(crate) fn find(
        recent_commits: &Arc<RecentCommits>,
        commit: ObjectId,
    ) -> Result<FoundCommits, StoreError> {
        let reader = |next, older| Self { recent_commits: Arc::clone(recent_commits), next, older };
        if let Some(position) = recent_commits.position_of(&commit) {
            return Ok(FoundCommits::At(reader(position, Vec::new())));
        }
        let NewestCommit { end, commit: Some(newest) } = recent_commits.newest() else {
            return Ok(FoundCommits::Empty);
        };
        let Some(mut older) = recent_commits.stretches(commit, newest)? else {
            return Ok(FoundCommits::Nowhere { commits: reader(end - 1, Vec::new()), newest });
        };
        // That commit itself comes first.
        match older.last_mut() {
            Some(oldest) => oldest.commits += 1,
            None => older.push(Stretch { newest, commits: 1 }),
        }
        let commits: usize = older.iter().map(|stretch| stretch.commits).sum();
        Ok(FoundCommits::At(reader(end - commits as i64, older)))
    }

    /// The next commits; empty if there are none yet. `None` if they are no longer kept and have to be looked for
    /// again.
    pub(crate) fn read(&mut self) -> Result<Option<Piece>, StoreError> {
        let begin = self.next;
        let commits = match self.older.last() {
            Some(stretch) => {
                let read = self.recent_commits.read_back(stretch.newest).take(stretch.commits);
                let mut commits: Vec<_> = read.map(|read| read.map(Arc::new)).collect::<Result<_, _>>()?;
                commits.reverse();
                self.older.pop();
                commits
            }
            None => match self.recent_commits.from(begin, STEP) {
                Some(commits) => commits,
                None => return Ok(None),
            },
        };
        self.next += commits.len() as i64;
        Ok(Some(Piece { begin, commits }))
    }
}
