//! Commits in order, from any one on. They come from memory, or from the repository if they are no longer in memory.

use std::sync::Arc;

use countersign_store::{
    ObjectId, StoreError,
    recent_commits::{NewestCommit, RecentCommit, RecentCommits},
};

/// Commits in memory at a time.
const STEP: usize = 500;

/// A reading position. Every method can read from disk, so no thread that others wait for should call them.
#[derive(Debug)]
pub(super) struct Commits {
    recent_commits: Arc<RecentCommits>,
    /// The position of the next commit.
    next: i64,
    older: Older,
}

/// Commits to read back from the repository, which goes from new to old. Only every `STEP`th id is kept; the commits in
/// between are read again from there.
#[derive(Debug, Default)]
struct Older {
    /// Newest first.
    milestones: Vec<ObjectId>,
    /// The position of the newest milestone.
    newest: i64,
}

/// Some commits, oldest first, and the position of the first of them.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) begin: i64,
    pub(super) commits: Vec<Arc<RecentCommit>>,
}

#[derive(Debug)]
pub(super) enum FoundCommits {
    /// Reading begins with that commit.
    At(Commits),
    /// It is not in the history. Reading would begin with the newest commit.
    Nowhere { commits: Commits, newest: ObjectId },
    /// The search stopped early.
    GivenUp,
}

impl Commits {
    pub(super) fn find(
        recent_commits: &Arc<RecentCommits>,
        commit: &ObjectId,
        give_up: impl Fn() -> bool,
    ) -> Result<FoundCommits, StoreError> {
        let reader = |next, older| Self { recent_commits: Arc::clone(recent_commits), next, older };
        if let Some(position) = recent_commits.position_of(commit) {
            return Ok(FoundCommits::At(reader(position, Older::default())));
        }
        let NewestCommit { end, commit: Some(tip) } = recent_commits.newest() else {
            return Ok(FoundCommits::GivenUp);
        };
        let newest = end - 1;
        let mut milestones = Vec::new();
        for (distance, read) in recent_commits.read_back(tip).enumerate() {
            if give_up() {
                return Ok(FoundCommits::GivenUp);
            }
            let id = read?.id;
            if distance % STEP == 0 {
                milestones.push(id);
            }
            if id == *commit {
                return Ok(FoundCommits::At(reader(newest - distance as i64, Older { milestones, newest })));
            }
        }
        Ok(FoundCommits::Nowhere { commits: reader(newest, Older::default()), newest: tip })
    }

    /// The next commits; empty if there are none yet. `None` if they are no longer kept and have to be looked for
    /// again.
    pub(super) fn read(&mut self) -> Result<Option<Piece>, StoreError> {
        let begin = self.next;
        let commits = match self.older.take_oldest() {
            Some((milestone, position)) => {
                let count = usize::try_from(position + 1 - begin).unwrap_or(0);
                let read = self.recent_commits.read_back(milestone).take(count);
                let mut commits = read.map(|read| read.map(Arc::new)).collect::<Result<Vec<_>, _>>();
                if let Ok(commits) = &mut commits {
                    commits.reverse();
                } else {
                    // An error must not skip it.
                    self.older.milestones.push(milestone);
                }
                commits?
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

impl Older {
    fn take_oldest(&mut self) -> Option<(ObjectId, i64)> {
        let milestone = self.milestones.pop()?;
        Some((milestone, self.newest - (self.milestones.len() * STEP) as i64))
    }
}
