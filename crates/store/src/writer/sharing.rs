//! A node among others: its batches count once they are in the order that all share, and it repeats those of the others.

use std::{collections::HashSet, mem};

use countersign_core::values::bounds::SHARED_BATCH_FILES;
use gix::ObjectId;

use super::{Draft, Writer};
use crate::{
    error::StoreError,
    follow::FollowError,
    journal::{
        batches::JournalBatches,
        entry::JournalEntry,
        export::JournalExport,
        read::{JournalError, JournalReader},
    },
    sequence::{Appended, SequenceError, SharedBatch},
};

/// A database whose content changes this often while a node compares itself with it is left alone for a while.
const MAX_COMPARISONS: usize = 4;

impl Writer {
    /// Puts a draft into the shared order. A server on its own needs no one's leave.
    pub(crate) fn share(&mut self, draft: &mut Draft) -> Result<Appended, StoreError> {
        let Some(sharing) = &mut self.sharing else { return Ok(Appended::Done) };
        if let Some(reason) = self.shared.halted.load_full() {
            return Err(StoreError::Halted(reason));
        }
        let batch = SharedBatch {
            base: self.repository.tip,
            head: draft.head.commit,
            commits: draft.commits.len(),
            body: mem::take(&mut draft.body).into(),
        };
        sharing.sequencer.append(&batch).map_err(StoreError::Unconfirmed)
    }

    /// A node that would lose the next race, or has nothing yet, asks for what is new before it decides.
    pub(crate) fn must_look_first(&mut self) -> bool {
        let is_unborn = self.repository.is_unborn();
        self.sharing.as_mut().is_some_and(|sharing| is_unborn || sharing.sequencer.wants_turn())
    }

    /// While other nodes write as well, this one leaves its disk alone for as long as it may.
    pub(crate) fn is_contended(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.sequencer.is_contended())
    }

    pub(crate) fn yield_turn(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.sequencer.yield_turn();
        }
    }

    pub(crate) fn note_published(&mut self) {
        if let (Some(sharing), Some(tip)) = (&mut self.sharing, self.repository.tip) {
            sharing.sequencer.note_published(tip);
        }
    }

    /// Repeats what other nodes have put into the order. What the rules do not give stops this node, until the database
    /// gives something else.
    pub(crate) fn catch_up(&mut self) -> Result<(), StoreError> {
        let caught_up = self.try_catch_up();
        let halted = self.shared.halted.load_full();
        match &caught_up {
            Ok(()) if halted.is_some() => {
                tracing::info!("this node follows the others again");
                self.shared.halted.store(None);
            }
            Err(StoreError::Halted(reason)) if halted.as_ref() != Some(reason) => {
                self.write_held_if(true);
                tracing::error!(%reason, "this node no longer follows the others, and accepts no changes");
                self.shared.halted.store(Some(reason.clone()));
            }
            Ok(()) | Err(_) => {}
        }
        caught_up
    }

    fn try_catch_up(&mut self) -> Result<(), StoreError> {
        let mut comparisons = 0;
        loop {
            let tip = self.repository.tip;
            let Some(sharing) = &mut self.sharing else { return Ok(()) };
            let batches = match sharing.sequencer.batches_after(tip) {
                Err(SequenceError::Unknown(_)) if comparisons < MAX_COMPARISONS => {
                    comparisons += 1;
                    self.compare()?;
                    continue;
                }
                batches => batches?,
            };
            if batches.is_empty() && (tip.is_some() || self.begin()? == Appended::Done) {
                self.note_published();
                return Ok(());
            }
            for batch in batches {
                self.follow(&read_entries(&batch)?).map_err(halt)?;
                self.note_published();
            }
        }
    }

    /// The very first commit of all nodes.
    fn begin(&mut self) -> Result<Appended, StoreError> {
        let Some(initial) = self.sharing.as_ref().map(|sharing| sharing.initial.clone()) else {
            return Ok(Appended::Done);
        };
        let mut draft = self.draft();
        self.extend(&mut draft, &initial)?;
        let appended = self.share(&mut draft)?;
        match appended {
            Appended::Done => self.publish(&mut draft)?,
            Appended::Behind => self.discard(draft),
        }
        Ok(appended)
    }

    /// No batch ends with our newest commit. Either the database has lost batches that we still have, and gets them back,
    /// or the batch that holds it goes on behind it, or the two went different ways.
    fn compare(&mut self) -> Result<(), StoreError> {
        let (Some(sharing), Some(tip)) = (&mut self.sharing, self.repository.tip) else { return Ok(()) };
        let own: HashSet<ObjectId> = self
            .shared
            .recent_commits
            .read_back(tip)
            .map(|commit| Ok(commit?.id))
            .collect::<Result<_, StoreError>>()?;
        let common = sharing.sequencer.newest_known(&mut |id| own.contains(id))?;
        let Some(batch) = sharing.sequencer.batches_after(common)?.into_iter().next() else {
            let Some(common) = common else {
                let reason = "the database is empty, and this data directory has commits. To put them there, stop this \
                              server and run `countersign admin cluster init`";
                return Err(StoreError::halted(reason));
            };
            return self.give_back(common, &own);
        };
        let mut entries = read_entries(&batch)?;
        let known = entries.iter().take_while(|entry| own.contains(&entry.id)).count();
        if known == 0 || entries[known - 1].id != tip {
            let other = entries.get(known).map_or(batch.head, |entry| entry.id);
            let reason = format!(
                "the database holds another commit, {other}, where this data directory went on to {tip}: one of the two \
                 has to be thrown away (docs/cluster.md, What can get lost)"
            );
            return Err(StoreError::halted(reason));
        }
        self.follow(&entries.split_off(known)).map_err(halt)?;
        self.note_published();
        Ok(())
    }

    /// Appends again what the database has lost, as after a failover to a standby that lagged behind. Used nonces are lost
    /// with it.
    fn give_back(&mut self, common: ObjectId, own: &HashSet<ObjectId>) -> Result<(), StoreError> {
        tracing::warn!(%common, "the database ends with a commit of the past: this node appends again what came after it");
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        sharing.sequencer.forget_nonces()?;
        let Some(tip) = self.repository.tip else { return Ok(()) };
        let (objects, milestones) = (&self.repository.objects, &self.shared.milestones);
        let export = JournalExport::begin(objects, milestones, Some(common), tip)?;
        let export = export.ok_or_else(|| StoreError::corrupt(common, "it is not in the history"))?;
        // With the same ends as before, so that a node that waits for an answer recognises its batch.
        let ends: HashSet<ObjectId> =
            own.iter().filter(|commit| sharing.sequencer.ends_with(commit)).copied().collect();
        for batch in JournalBatches::new(export, Some(common), |commit| ends.contains(commit)) {
            match sharing.sequencer.append(&batch?)? {
                Appended::Done => {}
                // Another node gives them back.
                Appended::Behind => return Ok(()),
            }
        }
        Ok(())
    }
}

/// The commits of a batch, if they are what it says.
fn read_entries(batch: &SharedBatch) -> Result<Vec<JournalEntry>, StoreError> {
    let unreadable = |reason: String| {
        StoreError::halted(format!(
            "the batch in the database that ends with the commit {}: {reason}",
            batch.head
        ))
    };
    let entries = parse_entries(&batch.body).map_err(unreadable)?;
    let fits = entries.last().map(|entry| entry.id) == Some(batch.head) && entries.len() == batch.commits;
    if fits { Ok(entries) } else { Err(unreadable("it holds other commits than it says".to_owned())) }
}

fn parse_entries(body: &[u8]) -> Result<Vec<JournalEntry>, String> {
    let (mut reader, mut entries, mut files) = (JournalReader::default(), Vec::new(), 0);
    let unreadable = |error: JournalError| error.to_string();
    reader.push(body);
    while let Some(entry) = reader.next().map_err(unreadable)? {
        files += entry.change.files.len();
        if files > SHARED_BATCH_FILES {
            return Err(format!("its commits change more than {SHARED_BATCH_FILES} files"));
        }
        entries.push(entry);
    }
    reader.finish().map(|()| entries).map_err(unreadable)
}

fn halt(error: FollowError) -> StoreError {
    match error {
        FollowError::Store(error) => error,
        FollowError::Elsewhere { .. } | FollowError::OtherId { .. } | FollowError::Illegal { .. } => {
            StoreError::halted(error.to_string())
        }
    }
}
