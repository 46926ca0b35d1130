//! Repeating commits that another machine made. Nothing is believed: the rules must give each of them, and it must have
//! the id that the other machine says.

use std::{collections::BTreeSet, mem};

use countersign_core::values::path::RepoPath;

use super::{Draft, MAX_BATCH_BYTES, MAX_CHANGES, Writer};
use crate::{
    audit::replay::{CommitStep, Replay, Violation},
    error::StoreError,
    follow::{FollowError, prepare_again},
    journal::{entry::JournalEntry, lately},
};

impl Writer {
    /// Publishes as many of the entries as the rules give. An error is about the first of the others.
    pub(crate) fn follow(&mut self, entries: &[JournalEntry]) -> Result<(), FollowError> {
        let mut replay = match self.repeating.replay.take() {
            Some(replay) => replay,
            None => self.read_back_requests()?,
        };
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

    /// One batch of them. Returns how many it has.
    fn follow_some(&mut self, entries: &[JournalEntry], replay: &mut Replay) -> Result<usize, FollowError> {
        let mut draft = self.draft();
        let (mut legal, mut refused) = (0, None);
        for entry in entries.iter().take(MAX_CHANGES) {
            if let Err(error) = repeat(&mut draft, entry, Some(replay)) {
                refused = Some(error);
                break;
            }
            legal += 1;
            if draft.batch.bytes > MAX_BATCH_BYTES {
                break;
            }
        }
        if refused.is_some() {
            // The batch has objects of the refused commit. None of them may reach the disk.
            self.discard(mem::replace(&mut draft, self.draft()));
            for entry in &entries[..legal] {
                repeat(&mut draft, entry, None)?;
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

    /// What a later commit must not hold again.
    fn read_back_requests(&self) -> Result<Replay, StoreError> {
        let mut replay = Replay::new(self.repeating.speaks_for);
        let Some(tip) = self.repository.tip else { return Ok(replay) };
        for (request, committed) in lately::read_requests(&self.repository.objects, tip)? {
            replay.note_request(&request, committed);
        }
        Ok(replay)
    }
}

/// Adds the commit to `draft`. On an error, only its objects may be there as well.
fn repeat(draft: &mut Draft, entry: &JournalEntry, replay: Option<&mut Replay>) -> Result<(), FollowError> {
    let JournalEntry { id, parent, time, change, .. } = entry;
    let before = draft.head.clone();
    let new = prepare_again(&draft.batch, &before, entry)?;
    draft.add(new, change, *time, None);
    let Some(replay) = replay else { return Ok(()) };
    let after = &draft.head;
    let is_touched =
        |path: &&RepoPath| before.file(path).map(|found| found.id) != after.file(path).map(|found| found.id);
    let touched: BTreeSet<RepoPath> = change.files.keys().filter(is_touched).cloned().collect();
    let message = change.recorded_message();
    let step = CommitStep { message: &message, time: *time, touched: &touched, is_first: parent.is_none() };
    let checked = replay.check(&before, after, &step);
    checked.map(drop).map_err(|violations| FollowError::Illegal { id: *id, reason: describe(&violations) })
}

fn describe(violations: &[Violation]) -> String {
    let Some(first) = violations.first() else { return String::new() };
    let file = first.files.first().map(|file| format!("{file}: ")).unwrap_or_default();
    format!("{file}{}", first.fault)
}
