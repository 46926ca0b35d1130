//! Repeating commits that another machine made. Nothing is believed: the rules must give each of them, and it must have
//! the id that the other machine says.

use std::sync::Arc;

use gix::ObjectId;

use crate::audit::replay::{Replay, Violation};
use crate::journal::follow::{FollowError, check_rules, describe, prepare_again};
use crate::journal::{JournalEntry, milestones};
use crate::snapshot::{Head, tree::load::load_tree};
use crate::writer::{Draft, MAX_BATCH_BYTES, MAX_CHANGES, Writer};
use crate::{error::StoreError, repository::batch::NewCommit};

impl Writer {
    /// Publishes as many of the entries as the rules give. An error is about the first of the others.
    pub(crate) fn follow(&mut self, entries: &[JournalEntry]) -> Result<(), FollowError> {
        let mut replay = self.take_replay()?;
        let known = entries.iter().take_while(|entry| self.repeating.recovered.contains(&entry.id)).count();
        let mut rest = &entries[known..];
        while !rest.is_empty() {
            // After an error the requests are read back again: some of those just seen came to nothing.
            let repeated = self.follow_some(rest, &mut replay)?;
            rest = &rest[repeated..];
        }
        self.repeating.replay = Some(replay);
        Ok(())
    }

    /// Follows one batch of entries, and returns how many it has.
    fn follow_some(&mut self, entries: &[JournalEntry], replay: &mut Replay) -> Result<usize, FollowError> {
        let mut draft = self.draft();
        let (mut legal, mut refused) = (0, None);
        for entry in entries.iter().take(MAX_CHANGES) {
            if let Err(error) = repeat(&mut draft, entry, replay) {
                refused = Some(error);
                break;
            }
            legal += 1;
            if draft.batch.bytes > MAX_BATCH_BYTES {
                break;
            }
        }
        if legal > 0
            && let Err(error) = self.publish(&mut draft)
        {
            self.discard(draft);
            return Err(error.into());
        }
        refused.map_or(Ok(legal), Err)
    }

    /// Publishes the entries if the rules give all of them, and else none.
    pub(super) fn follow_all(&mut self, entries: &[JournalEntry]) -> Result<(), FollowError> {
        // After an error the requests are read back again: some of those just seen came to nothing.
        let mut replay = self.take_replay()?;
        let mut draft = self.draft();
        let repeated = entries.iter().try_for_each(|entry| repeat(&mut draft, entry, &mut replay));
        let published = repeated.and_then(|()| Ok(self.publish(&mut draft)?));
        if published.is_err() {
            self.discard(draft);
        } else {
            self.repeating.replay = Some(replay);
        }
        published
    }

    /// Why the rules do not give these commits of this node's own after `base`, if they do not.
    pub(super) fn find_illegal(
        &mut self,
        base: ObjectId,
        entries: impl Iterator<Item = Result<JournalEntry, StoreError>>,
    ) -> Result<Option<FollowError>, StoreError> {
        let mut replay = self.read_replay(Some(base))?;
        let mut draft = Draft { head: self.load_head_at(base)?, ..self.draft() };
        for entry in entries {
            match repeat(&mut draft, &entry?, &mut replay) {
                Ok(()) => {}
                Err(FollowError::Store(error)) if !FollowError::Store(error.clone()).breaks_rules() => {
                    return Err(error);
                }
                Err(illegal) => {
                    self.discard(draft);
                    return Ok(Some(illegal));
                }
            }
            if draft.batch.bytes > MAX_BATCH_BYTES {
                // Its objects are there already.
                let head = draft.head.clone();
                draft = Draft { head, ..self.draft() };
            }
        }
        self.discard(draft);
        Ok(None)
    }

    /// Whether the rules give a commit of this node's own, as the others will ask.
    pub(super) fn check_own(
        &mut self,
        head: &Head,
        new: &NewCommit<'_>,
        entry: &JournalEntry,
    ) -> Result<(), StoreError> {
        let mut replay = self.take_replay()?;
        let tried = replay.nonces.begin_trial();
        let checked = check_rules(head, new, entry, &mut replay).map_err(|violations| describe(&violations));
        if checked.is_err() {
            replay.nonces.take_back(tried);
        }
        self.repeating.replay = Some(replay);
        checked.map_err(|reason| {
            tracing::error!(reason, "a change that this node decided breaks the rules, and is not made");
            StoreError::Illegal(reason)
        })
    }

    fn take_replay(&mut self) -> Result<Replay, StoreError> {
        match self.repeating.replay.take() {
            Some(replay) => Ok(replay),
            None => self.read_replay(self.repository.tip),
        }
    }

    fn load_head_at(&self, commit: ObjectId) -> Result<Head, StoreError> {
        let objects = Arc::clone(&self.repository.objects);
        let root = load_tree(&objects, objects.commit(commit)?.tree)?;
        Ok(Head::of(commit, root, None, objects))
    }

    fn read_replay(&self, tip: Option<ObjectId>) -> Result<Replay, StoreError> {
        milestones::read_replay(&self.repository.objects, tip, self.repeating.speaks_for)
    }
}

/// Adds the commit to `draft`, if the rules give it. On an error, the draft is as it was.
fn repeat(draft: &mut Draft, entry: &JournalEntry, replay: &mut Replay) -> Result<(), FollowError> {
    let new = prepare_again(&draft.batch, &draft.head, entry)?;
    let illegal =
        |violations: Vec<Violation>| FollowError::Illegal { id: entry.id, reason: describe(&violations) };
    check_rules(&draft.head, &new, entry, replay).map_err(illegal)?;
    draft.add(new, &entry.change, entry.time, None);
    Ok(())
}
