//! The one writer. It takes whatever changes wait, makes a commit of each, and publishes them together: many callers
//! share one round of fsync, and each is answered only after it.

mod repeating;
mod sharing;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc::Receiver},
    time::Instant,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use countersign_core::{
    documents::layout,
    rules::snapshot::{Change, Snapshot as _},
    values::{path::RepoPath, time::Timestamp, wire},
};
use gix::{ObjectId, hash::Kind as HashKind};

pub(crate) use self::{repeating::Repeating, sharing::Sharing};
use crate::{
    budget::{Charge, Need, StorageBudget},
    clock::Clock,
    commit::Author,
    error::StoreError,
    fold::Folder,
    jobs::{Decision, Job},
    journal::{entry::JournalEntry, milestones::Milestones, write::JournalWriter},
    log::{Log, Logged},
    repository::{
        Repository,
        batch::{Batch, NewCommit},
    },
    sequence::{Appended, BATCH_BYTES},
    snapshot::{head::Head, index::Index, places::Places},
    stats::StoreStats,
};

const MAX_CHANGES: usize = 256;
/// Trees of large directories add up; beyond this, the rest waits for the next batch.
const MAX_BATCH_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) repository: Repository,
    pub(crate) shared: Arc<StoreState>,
    pub(crate) author: Author,
    pub(crate) clock: Clock,
    pub(crate) folder: Folder,
    pub(crate) repeating: Repeating,
    /// The order that this node shares with others; `None` for a server on its own.
    pub(crate) sharing: Option<Sharing>,
}

/// What the writer shares with those who ask.
#[derive(Debug)]
pub(crate) struct StoreState {
    pub(crate) published: ArcSwap<Head>,
    pub(crate) stats: StoreStats,
    pub(crate) log: Arc<Log>,
    pub(crate) budget: Option<StorageBudget>,
    /// Why this node does not follow the shared order any more.
    pub(crate) halted: ArcSwapOption<String>,
    pub(crate) milestones: Milestones,
}

/// Changes that were decided one on top of the other, and are not published yet.
#[derive(Debug)]
pub(crate) struct Draft {
    head: Head,
    batch: Batch,
    commits: Vec<Logged>,
    content_bytes: u64,
    /// Given back if it comes to nothing.
    charges: Vec<Charge>,
    /// The same for other nodes, if there are any.
    entries: Vec<JournalEntry>,
    writer: JournalWriter,
    body: Vec<u8>,
}

/// Those who wait for the fate of a draft, each with what was wrong with its own change.
type Waiting = Vec<(Box<dyn Decision>, Result<(), StoreError>)>;

impl Writer {
    /// Works until every sender of `jobs` is gone and the queue is empty.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        let mut put_off = None;
        while let Some(job) = put_off.take().or_else(|| self.next_job(|| jobs.recv().ok())) {
            if let Err(error) = self.recover() {
                self.shared.stats.note_failed();
                refuse(job, &error);
                continue;
            }
            match job {
                Job::Decide(decision) => put_off = self.run_batch(decision, jobs),
                // A caller that has gone away does not matter.
                Job::Follow { entries, reply } => drop(reply.send(self.follow(&entries))),
                Job::CatchUp { reply } => drop(reply.send(self.catch_up())),
            }
        }
    }

    fn next_job(&self, receive: impl FnOnce() -> Option<Job>) -> Option<Job> {
        receive().inspect(|_| self.shared.stats.note_taken())
    }

    /// The very first commit of a server on its own, before any other can be asked for.
    pub(crate) fn commit_initial(&mut self, change: &Change) -> Result<(), StoreError> {
        let mut draft = self.draft();
        self.extend(&mut draft, change)?;
        self.publish(&mut draft)
    }

    /// Returns a job of another kind that came in between.
    fn run_batch(&mut self, first: Box<dyn Decision>, jobs: &Receiver<Job>) -> Option<Job> {
        if self.must_look_first()
            && let Err(error) = self.catch_up()
        {
            first.answer(Err(error));
            return None;
        }
        let mut draft = self.draft();
        let (mut waiting, mut put_off) = (Waiting::new(), None);
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(decision) = next.take() {
            self.take(decision, &mut draft, &mut waiting);
            taken += 1;
            if taken == MAX_CHANGES || self.is_full(&draft) {
                break;
            }
            match self.next_job(|| jobs.try_recv().ok()) {
                Some(Job::Decide(decision)) => next = Some(decision),
                other => put_off = other,
            }
        }
        let published = self.share_and_publish(&mut draft, &mut waiting);
        // Answers that were decided on top of unpublished changes share the fate of those, refusals too.
        for (decision, own) in waiting {
            decision.answer(published.clone().and(own));
        }
        if published.is_err() {
            self.discard(draft);
            // So that readers see where the branch is. If it fails, the next batch tries again.
            let _ = self.recover();
        }
        put_off
    }

    fn is_full(&self, draft: &Draft) -> bool {
        draft.batch.bytes > MAX_BATCH_BYTES || draft.body.len() > BATCH_BYTES
    }

    /// With other nodes, a batch counts once it is in the shared order. If another node was first, everything is decided
    /// again on top of what that one did.
    fn share_and_publish(&mut self, draft: &mut Draft, waiting: &mut Waiting) -> Result<(), StoreError> {
        while !draft.commits.is_empty() {
            match self.share(draft)? {
                Appended::Done => {
                    self.publish(draft)?;
                    draft.entries.iter().for_each(|entry| self.repeating.note_own(entry));
                    self.note_published();
                    return Ok(());
                }
                Appended::Behind => {}
            }
            let lost = std::mem::replace(draft, self.draft());
            self.discard(lost);
            self.catch_up()?;
            *draft = self.draft();
            for (decision, _) in std::mem::take(waiting) {
                self.take(decision, draft, waiting);
            }
        }
        self.yield_turn();
        Ok(())
    }

    pub(crate) fn draft(&self) -> Draft {
        let head = Head::clone(&self.shared.published.load());
        Draft {
            head,
            batch: Batch::default(),
            commits: Vec::new(),
            content_bytes: 0,
            charges: Vec::new(),
            entries: Vec::new(),
            writer: JournalWriter::default(),
            body: Vec::new(),
        }
    }

    /// What it staged will never be published.
    pub(crate) fn discard(&self, draft: Draft) {
        drop(draft);
        self.repository.objects.unstage(None);
    }

    fn take(&self, mut decision: Box<dyn Decision>, draft: &mut Draft, waiting: &mut Waiting) {
        let change = match decision.decide(&draft.head) {
            Ok(change) => change,
            Err(error) => return decision.answer(Err(error)),
        };
        let Some(change) = change else {
            if draft.commits.is_empty() {
                // It saw nothing but what is published.
                decision.answer(Ok(()));
            } else {
                waiting.push((decision, Ok(())));
            }
            return;
        };
        // A panic here would be ours and not the decision's; it must not stop all writing either. What it leaves in
        // the batch are objects that nothing refers to.
        let extended = catch_unwind(AssertUnwindSafe(|| self.extend(draft, &change)));
        waiting.push((decision, extended.unwrap_or(Err(StoreError::Panicked))));
    }

    /// Adds one more commit to `draft`. On an error it is as it was, but for objects that nothing refers to.
    fn extend(&self, draft: &mut Draft, change: &Change) -> Result<(), StoreError> {
        let time = self.clock.now();
        let new = draft.batch.prepare(&draft.head, change, &self.author.at(time))?;
        let charge = self.charge(&draft.head, change, new.content_bytes())?;
        draft.charges.extend(charge);
        if self.sharing.is_some() {
            let entry = JournalEntry {
                id: new.tip,
                parent: Some(draft.head.commit).filter(|commit| !commit.is_null()),
                author: self.author.clone(),
                time: time.to_whole_seconds(),
                change: Change { message: change.recorded_message(), ..change.clone() },
            };
            draft.writer.write(&entry, &mut draft.body);
            draft.entries.push(entry);
        }
        draft.add(new, change, time);
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

    pub(crate) fn publish(&mut self, draft: &mut Draft) -> Result<(), StoreError> {
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

impl Draft {
    /// A commit that was prepared on top of the others.
    fn add(&mut self, new: NewCommit<'_>, change: &Change, time: Timestamp) {
        let (root, commit, content_bytes) = (Arc::clone(&new.root), new.tip, new.content_bytes());
        self.batch.add_commit(&self.head.objects, new);
        let touched: Vec<RepoPath> = change.files.keys().cloned().collect();
        self.head = self.head.next(commit, root, &touched);
        self.commits.push(Logged::new(commit, time.to_whole_seconds(), change.recorded_message()));
        self.content_bytes += content_bytes;
    }
}

fn refuse(job: Job, error: &StoreError) {
    // Callers that have gone away do not matter.
    match job {
        Job::Decide(decision) => decision.answer(Err(error.clone())),
        Job::Follow { reply, .. } => drop(reply.send(Err(error.clone().into()))),
        Job::CatchUp { reply } => drop(reply.send(Err(error.clone()))),
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
