//! What the writer is asked to do, and what each change needs of the storage budget.

use std::panic::{AssertUnwindSafe, catch_unwind};

use countersign_api::event::Claim;
use countersign_core::documents::{layout, signers::has_member};
use countersign_core::rules::{snapshot::Change, snapshot::Snapshot as _, stored};
use countersign_core::values::{path::RepoPath, time::Timestamp, wire};
use tokio::sync::oneshot;

use crate::journal::{JournalEntry, follow::FollowError};
use crate::{budget::Need, error::StoreError, snapshot::Head, snapshot::index::Index};

pub(crate) enum Job {
    Decide(Box<dyn Decision>),
    Follow {
        entries: Vec<JournalEntry>,
        reply: oneshot::Sender<Result<(), FollowError>>,
    },
    /// Other nodes may have put batches into the shared order.
    CatchUp {
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
}

/// One caller's decision, and the way back to the caller.
pub(crate) trait Decision: Send {
    /// The change to make at `now`, if any. On another head or at another time, it can be asked for again.
    fn decide(&mut self, head: &Head, now: Timestamp) -> Result<Option<Change>, StoreError>;

    /// Tells the caller what was decided last, or why it came to nothing.
    fn answer(self: Box<Self>, fate: Result<(), StoreError>);
}

struct Transaction<D, T, R> {
    decide: D,
    outcome: Option<Result<T, R>>,
    reply: oneshot::Sender<Result<Result<T, R>, StoreError>>,
}

pub(crate) fn transaction<T: Send + 'static, R: Send + 'static>(
    decide: impl Fn(&Head, Timestamp) -> Result<(Change, T), R> + Send + 'static,
    reply: oneshot::Sender<Result<Result<T, R>, StoreError>>,
) -> Box<dyn Decision> {
    Box::new(Transaction { decide, outcome: None, reply })
}

impl<D, T, R> Decision for Transaction<D, T, R>
where
    D: Fn(&Head, Timestamp) -> Result<(Change, T), R> + Send,
    T: Send,
    R: Send,
{
    fn decide(&mut self, head: &Head, now: Timestamp) -> Result<Option<Change>, StoreError> {
        // Nothing that a decision was changing outlives its panic: it can only read.
        let decided =
            catch_unwind(AssertUnwindSafe(|| (self.decide)(head, now))).map_err(|_| StoreError::Panicked)?;
        let (change, outcome) = match decided {
            Ok((change, value)) => (Some(change), Ok(value)),
            Err(refusal) => (None, Err(refusal)),
        };
        self.outcome = Some(outcome);
        Ok(change.filter(|change| !change.is_empty()))
    }

    fn answer(self: Box<Self>, fate: Result<(), StoreError>) {
        // A caller that has gone away does not matter: its change is made all the same.
        let Self { outcome, reply, .. } = *self;
        let _ = reply.send(fate.and_then(|()| outcome.ok_or(StoreError::Closed)));
    }
}

// What a change needs of the storage budget, and which reserves are open to it (D44, D172). The budget itself knows no
// files.

/// What a change needs that goes on top of `head`. `None` if it is about no project.
pub(crate) fn need_of(head: &Head, change: &Change, bytes: u64) -> Option<Need> {
    let project = project_of(&head.index, change)?;
    let is_established = head.contains(&layout::active_signers(&project));
    let is_protection = change.files.keys().any(|path| {
        layout::project_with_signers_at(path).is_some() || path.file_name().contains(wire::REVOCATION_SUFFIX)
    });
    let is_of_masters = is_protection && is_of_masters(head, &project, &change.message);
    Some(Need { project, is_established, is_protection, is_of_masters, bytes })
}

/// The project that a change is about: the one in whose directory it lies, or the new one that it makes.
fn project_of(index: &Index, change: &Change) -> Option<RepoPath> {
    let mut paths = change.files.keys();
    let known = |path: &RepoPath| path.self_and_ancestors().find(|dir| index.is_project(dir));
    let found =
        paths.clone().find_map(known).or_else(|| paths.clone().find_map(layout::project_with_signers_at));
    found.or_else(|| paths.next().map(|path| path.parent().unwrap_or_else(|| path.clone())))
}

/// Whether thieves of admin keys could not have had it stored (D172): a master says it, or the signers have waited.
fn is_of_masters(head: &Head, project: &RepoPath, message: &str) -> bool {
    let says = match Claim::parse(message) {
        Some(Claim::Activate { .. }) => return true,
        Some(Claim::Update { submitter: key, .. } | Claim::Sign { signer: key, .. }) => key,
        Some(Claim::Agree { signer: key, .. } | Claim::Veto { master: key, .. }) => key,
        Some(
            Claim::Create
            | Claim::Register { .. }
            | Claim::Assets { .. }
            | Claim::Withdraw { .. }
            | Claim::Object { .. }
            | Claim::Rebuild { .. }
            | Claim::Revoke { .. }
            | Claim::Drop { .. },
        )
        | None => return false,
    };
    let active = stored::active_signers(head, project).ok().flatten();
    active.is_some_and(|active| has_member(active.file.master_groups(), &says))
}
