//! Finds where in the history a commit lies. Commits name the one before them and not the one after, so a reader from
//! the oldest on needs places to turn round at. Some of them are kept for all readers, so that one walk back through
//! the whole history is enough.

use std::sync::{Arc, Mutex};

use countersign_api::event::Claim;
use countersign_core::values::{path::RepoPath, wire};
use gix::{ObjectId, hashtable, objs::Kind};

use crate::audit::replay::{Replay, SpeaksFor, violation::REMEMBERED};
use crate::{error::StoreError, journal::differing::TreeReader, machine::clock::lock, objects::Objects};

/// Commits between two milestones, at most.
const STEP: usize = 500;

#[derive(Debug)]
pub(crate) struct Milestones {
    objects: Arc<Objects>,
    known: Mutex<KnownMilestones>,
}

/// The milestones, oldest first. The first commit has the number 0.
#[derive(Debug, Default)]
struct KnownMilestones {
    ids: Vec<(usize, ObjectId)>,
    numbers: hashtable::HashMap<ObjectId, usize>,
}

/// A part of the history that is read from its end back, to be told from its beginning on.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    pub newest: ObjectId,
    pub commits: usize,
}

impl Milestones {
    pub(crate) fn new(objects: Arc<Objects>) -> Self {
        Self { objects, known: Mutex::default() }
    }

    /// The stretches of everything after `after`, or from the first commit on, up to `head`: the oldest comes last, to
    /// be popped. `None` if `after` is not in the history of `head`.
    pub(crate) fn stretches(
        &self,
        after: Option<ObjectId>,
        head: ObjectId,
    ) -> Result<Option<Vec<Stretch>>, StoreError> {
        if let Some(after) = after {
            if self.objects.find_commit(&after)?.is_none() {
                return Ok(None);
            }
            // A follower that is nearly up to date needs no milestones.
            for (commits, id) in walk_back(&self.objects, head).take(STEP + 1).enumerate() {
                if id? == after {
                    let stretch = (commits > 0).then_some(Stretch { newest: head, commits });
                    return Ok(Some(stretch.into_iter().collect()));
                }
            }
        }
        let mut known = lock(&self.known);
        let end = known.reach(&self.objects, head)?;
        let begin = match after {
            None => 0,
            Some(after) => match known.find(&self.objects, after)? {
                Some(number) if number < end => number + 1,
                Some(_) | None => return Ok(None),
            },
        };
        let first = known.ids.partition_point(|(number, _)| *number < begin);
        let ends: Vec<_> = known.ids[first..].iter().copied().filter(|(number, _)| *number < end).collect();
        drop(known);
        let mut stretches = Vec::with_capacity(ends.len() + 1);
        let mut next = begin;
        for (number, newest) in ends.into_iter().chain([(end, head)]) {
            stretches.push(Stretch { newest, commits: number + 1 - next });
            next = number + 1;
        }
        stretches.reverse();
        // A commit that a crash left in a pack continues the history, and is not in it.
        if let (Some(after), Some(oldest)) = (after, stretches.last()) {
            let mut back = walk_back(&self.objects, oldest.newest).skip(oldest.commits);
            if back.next().transpose()? != Some(after) {
                return Ok(None);
            }
        }
        Ok(Some(stretches))
    }
}

impl KnownMilestones {
    /// The number of `head`. Walks back to the newest milestone, and leaves new ones on the way.
    fn reach(&mut self, objects: &Objects, head: ObjectId) -> Result<usize, StoreError> {
        let mut passed = Vec::new();
        let (mut distance, mut base) = (0, None);
        for id in walk_back(objects, head) {
            let id = id?;
            if let Some(number) = self.numbers.get(&id) {
                base = Some(*number);
                break;
            }
            if distance % STEP == 0 {
                passed.push((distance, id));
            }
            distance += 1;
        }
        // The number of the commit at distance 0.
        let end = base.map_or(distance.saturating_sub(1), |base| base + distance);
        if distance >= STEP {
            for (distance, id) in passed.into_iter().rev() {
                self.ids.push((end - distance, id));
                self.numbers.insert(id, end - distance);
            }
        }
        Ok(end)
    }

    /// The number of a commit that continues the history.
    fn find(&self, objects: &Objects, commit: ObjectId) -> Result<Option<usize>, StoreError> {
        let mut distance = 0;
        // What a crash left is one batch, which is less than a step.
        for id in walk_back(objects, commit).take(2 * STEP) {
            if let Some(number) = self.numbers.get(&id?) {
                return Ok(Some(number + distance));
            }
            distance += 1;
        }
        Ok((distance < 2 * STEP).then(|| distance.saturating_sub(1)))
    }
}

fn walk_back(objects: &Objects, from: ObjectId) -> impl Iterator<Item = Result<ObjectId, StoreError>> {
    objects.history(from).map(|read| read.map(|(id, _)| id))
}

// The signed requests that commits of the last day stored. A follower that starts must know them, since none of them
// may be used again.

/// A replay of what comes after `tip`, which knows the requests that no later commit may hold again.
pub(crate) fn read_replay(
    objects: &Arc<Objects>,
    tip: Option<ObjectId>,
    speaks_for: SpeaksFor,
) -> Result<Replay, StoreError> {
    let mut replay = Replay::new(speaks_for);
    let Some(tip) = tip else { return Ok(replay) };
    let (mut found, mut trees) = (Vec::new(), TreeReader::new(Arc::clone(objects)));
    let mut commit = objects.commit(tip)?;
    let newest = commit.time;
    while newest.ahead_of(commit.time).is_none_or(|age| age <= REMEMBERED) {
        let Some(parent) = commit.parents.first().copied() else { break };
        let parent = objects.commit(parent)?;
        if stores_request(&commit.message) {
            let files = trees.compare(Some(parent.tree), commit.tree)?;
            for blob in files.into_iter().filter(|(path, _)| is_request(path)).filter_map(|(_, blob)| blob) {
                found.push((objects.read(&blob, Kind::Blob)?, commit.time));
            }
        }
        commit = parent;
    }
    // The oldest come first, as they came to the server.
    found.iter().rev().for_each(|(request, committed)| replay.note_request(request, *committed));
    Ok(replay)
}

fn stores_request(message: &str) -> bool {
    match Claim::parse(message) {
        Some(
            Claim::Register { .. } | Claim::Update { .. } | Claim::Withdraw { .. } | Claim::Revoke { .. },
        ) => true,
        Some(
            Claim::Create
            | Claim::Sign { .. }
            | Claim::Agree { .. }
            | Claim::Activate { .. }
            | Claim::Veto { .. }
            | Claim::Assets { .. }
            | Claim::Object { .. }
            | Claim::Rebuild { .. }
            | Claim::Drop { .. },
        )
        | None => false,
    }
}

fn is_request(path: &RepoPath) -> bool {
    let ends = [wire::REGISTRATION_SUFFIX, wire::REQUEST_SUFFIX, wire::WITHDRAWAL_SUFFIX];
    ends.iter().any(|end| path.as_str().ends_with(end))
}
