//! Repeating commits that another machine made. Nothing is believed: the rules must give each of them, and it must have
//! the id that the other machine says.

use super::{Draft, MAX_BATCH_BYTES, MAX_CHANGES, Writer};
use crate::{
    audit::replay::{Replay, Violation},
    error::StoreError,
    follow::{FollowError, check_rules, describe, prepare_again},
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

/// Adds the commit to `draft`, if the rules give it. On an error, the draft is as it was.
fn repeat(draft: &mut Draft, entry: &JournalEntry, replay: &mut Replay) -> Result<(), FollowError> {
    let new = prepare_again(&draft.batch, &draft.head, entry)?;
    let illegal =
        |violations: Vec<Violation>| FollowError::Illegal { id: entry.id, reason: describe(&violations) };
    check_rules(&draft.head, &new, entry, replay).map_err(illegal)?;
    draft.add(new, &entry.change, entry.time);
    Ok(())
}
