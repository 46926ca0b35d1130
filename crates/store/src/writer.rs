//! The one writer. It takes whatever changes wait, makes a commit of each, and publishes them together: many callers
//! share one round of fsync, and each is answered only after it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc::Receiver},
    time::Instant,
};

use arc_swap::ArcSwap;
use countersign_core::{
    documents::layout,
    rules::snapshot::{Change, Snapshot as _},
    values::{path::RepoPath, wire},
};
use gix::{ObjectId, hash::Kind as HashKind};
use tokio::sync::oneshot;

use crate::{
    budget::{Charge, Need, StorageBudget},
    clock::Clock,
    commit::Author,
    error::StoreError,
    fold::Folder,
    log::{Log, Logged},
    repository::{Repository, batch::Batch},
    snapshot::{head::Head, index::Index, places::Places},
    stats::StoreStats,
};

const MAX_CHANGES: usize = 256;
/// Trees of large directories add up; beyond this, the rest waits for the next batch.
const MAX_BATCH_BYTES: usize = 16 << 20;

/// One caller's decision, and the way back to the caller. Given no head, it passes the error on and returns nothing.
pub(crate) type Job = Box<dyn FnOnce(Result<&Head, StoreError>) -> Option<Decided> + Send>;

/// What a decision came to: a change, if any, and the answer, to be released with the fate of the batch.
pub(crate) struct Decided {
    change: Option<Change>,
    answer: Answer,
}

type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) repository: Repository,
    pub(crate) shared: Arc<StoreState>,
    pub(crate) author: Author,
    pub(crate) clock: Clock,
    pub(crate) folder: Folder,
}

/// What the writer shares with those who ask.
#[derive(Debug)]
pub(crate) struct StoreState {
    pub(crate) published: ArcSwap<Head>,
    pub(crate) stats: StoreStats,
    pub(crate) log: Arc<Log>,
    pub(crate) budget: Option<StorageBudget>,
}

/// Changes that were decided one on top of the other, and are not published yet.
struct Draft {
    head: Head,
    batch: Batch,
    commits: Vec<Logged>,
    content_bytes: u64,
    /// Given back if it comes to nothing.
    charges: Vec<Charge>,
    waiting: Vec<(Answer, Result<(), StoreError>)>,
}

pub(crate) fn job<T: Send + 'static, R: Send + 'static>(
    decide: impl Fn(&Head) -> Result<(Change, T), R> + Send + 'static,
    reply: oneshot::Sender<Result<Result<T, R>, StoreError>>,
) -> Job {
    // A caller that has gone away does not matter: its change is made all the same.
    Box::new(move |head| {
        // Nothing that a decision was changing outlives its panic: it can only read.
        let decided = head.and_then(|head| {
            catch_unwind(AssertUnwindSafe(|| decide(head))).map_err(|_| StoreError::Panicked)
        });
        let (change, outcome) = match decided {
            Ok(Ok((change, value))) => (Some(change), Ok(value)),
            Ok(Err(refusal)) => (None, Err(refusal)),
            Err(error) => {
                let _ = reply.send(Err(error));
                return None;
            }
        };
        let answer: Answer = Box::new(move |fate| {
            let _ = reply.send(fate.map(|()| outcome));
        });
        Some(Decided { change: change.filter(|change| !change.is_empty()), answer })
    })
}

impl Writer {
    /// Works until every sender of `jobs` is gone and the queue is empty.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            self.shared.stats.note_taken();
            match self.recover() {
                Ok(()) => self.run_batch(job, jobs),
                Err(error) => {
                    self.shared.stats.note_failed();
                    drop(job(Err(error)));
                }
            }
        }
    }

    /// The very first commit, before any other can be asked for.
    pub(crate) fn commit_initial(&mut self, change: &Change) -> Result<(), StoreError> {
        let mut draft = self.draft();
        self.extend(&mut draft, change)?;
        self.publish(&mut draft)
    }

    fn run_batch(&mut self, first: Job, jobs: &Receiver<Job>) {
        let mut draft = self.draft();
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(job) = next {
            self.take(job, &mut draft);
            taken += 1;
            let full = taken == MAX_CHANGES || draft.batch.bytes > MAX_BATCH_BYTES;
            next = if full { None } else { jobs.try_recv().ok().inspect(|_| self.shared.stats.note_taken()) };
        }
        let published = if draft.commits.is_empty() { Ok(()) } else { self.publish(&mut draft) };
        // Answers that were decided on top of unpublished changes share the fate of those, refusals too.
        for (answer, own) in draft.waiting {
            answer(published.clone().and(own));
        }
        if published.is_err() {
            // So that readers see where the branch is. If it fails, the next batch tries again.
            let _ = self.recover();
        }
    }

    fn draft(&self) -> Draft {
        let head = Head::clone(&self.shared.published.load());
        Draft {
            head,
            batch: Batch::default(),
            commits: Vec::new(),
            content_bytes: 0,
            charges: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn take(&self, job: Job, draft: &mut Draft) {
        let Some(Decided { change, answer }) = job(Ok(&draft.head)) else { return };
        let Some(change) = change else {
            if draft.commits.is_empty() {
                // It saw nothing but what is published.
                answer(Ok(()));
            } else {
                draft.waiting.push((answer, Ok(())));
            }
            return;
        };
        // A panic here would be ours and not the decision's; it must not stop all writing either. What it leaves in
        // the batch are objects that nothing refers to.
        let extended = catch_unwind(AssertUnwindSafe(|| self.extend(draft, &change)));
        draft.waiting.push((answer, extended.unwrap_or(Err(StoreError::Panicked))));
    }

    /// Adds one more commit to `draft`. On an error it is as it was, but for objects that nothing refers to.
    fn extend(&self, draft: &mut Draft, change: &Change) -> Result<(), StoreError> {
        let Draft { head, batch, .. } = draft;
        let objects = &head.objects;
        let time = self.clock.now();
        let new = batch.prepare(head, change, &self.author.at(time))?;
        let (root, commit, content_bytes) = (Arc::clone(&new.root), new.tip, new.content_bytes());
        let charge = self.charge(head, change, content_bytes)?;
        batch.add_commit(objects, new);
        let touched: Vec<RepoPath> = change.files.keys().cloned().collect();
        draft.head = head.next(commit, root, &touched);
        draft.commits.push(Logged::new(commit, time.to_whole_seconds(), change.recorded_message()));
        draft.content_bytes += content_bytes;
        draft.charges.extend(charge);
        Ok(())
    }

    /// Refuses a change that is more than may be stored. The first commit of a repository is not about a project.
    fn charge(&self, head: &Head, change: &Change, bytes: u64) -> Result<Option<Charge>, StoreError> {
        let Some(budget) = self.shared.budget.as_ref().filter(|_| !head.commit.is_null()) else {
            return Ok(None);
        };
        let Some(project) = project_of(&head.index, change) else { return Ok(None) };
        let is_established = head.contains(&layout::active_signers(&project));
        let is_protection = change.files.keys().any(|path| {
            layout::project_of_signers_dir(path).is_some()
                || path.file_name().contains(wire::REVOCATION_SUFFIX)
        });
        let need = Need { project, is_established, is_protection, bytes };
        Ok(Some(budget.charge(&need, Instant::now())?))
    }

    fn publish(&mut self, draft: &mut Draft) -> Result<(), StoreError> {
        let StoreState { published, stats, log, .. } = &*self.shared;
        let made = self.repository.publish(&draft.batch, draft.head.commit);
        made.inspect_err(|_| stats.note_failed())?;
        published.store(Arc::new(draft.head.clone()));
        stats.note_published(draft.commits.len(), draft.content_bytes);
        draft.charges.drain(..).for_each(Charge::keep);
        log.append(draft.commits.drain(..));
        self.folder.wake();
        Ok(())
    }

    /// After a failed publish, goes on from what is on disk; nothing is written before that succeeds.
    fn recover(&mut self) -> Result<(), StoreError> {
        let unmoved = self.repository.settle()?;
        if !unmoved {
            let head = Arc::new(load_head(&self.repository));
            self.shared.published.store(Arc::clone(&head));
            self.shared.log.catch_up(head.commit);
        }
        Ok(())
    }
}

/// The project that a change is about: the one in whose directory it lies, or the new one that it makes.
fn project_of(index: &Index, change: &Change) -> Option<RepoPath> {
    let mut paths = change.files.keys();
    let known = |path: &RepoPath| path.self_and_ancestors().find(|dir| index.is_project(dir));
    let found =
        paths.clone().find_map(known).or_else(|| paths.clone().find_map(layout::project_of_signers_dir));
    found.or_else(|| paths.next().map(|path| path.parent().unwrap_or_else(|| path.clone())))
}

/// The head as the repository has it, with an index built from its files.
pub(crate) fn load_head(repository: &Repository) -> Head {
    let (root, objects) = (Arc::clone(&repository.root), Arc::clone(&repository.objects));
    let places = Places::of(&root, &objects.spots());
    let commit = repository.tip.unwrap_or(ObjectId::null(HashKind::Sha1));
    Head::of(commit, root, Some(places), objects)
}
