//! The commits of a journal in groups, which the store makes durable together.

use std::sync::Arc;

use countersign_store::journal::{
    entry::JournalEntry,
    read::{JournalError, JournalReader},
};

/// One round of fsync for so many commits. Two groups are in memory at most: one in the store, and one being read.
const GROUP_ENTRIES: usize = 256;
const GROUP_BYTES: usize = 4 << 20;
/// What a file takes in memory beside its path and content, about. A short path alone is far less than that.
const FILE_OVERHEAD: usize = 128;

#[derive(Debug, Default)]
pub(super) struct EntryGroup {
    entries: Vec<JournalEntry>,
    bytes: usize,
}

impl EntryGroup {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.entries.len() < GROUP_ENTRIES && self.bytes < GROUP_BYTES
    }

    /// Takes what the reader has, as far as there is room.
    pub(super) fn fill(&mut self, reader: &mut JournalReader) -> Result<(), JournalError> {
        while self.has_room() {
            let Some(entry) = reader.next()? else { break };
            let content = |content: &Option<Arc<[u8]>>| content.as_ref().map_or(0, |content| content.len());
            let files = entry.change.files.iter();
            let files = files.map(|(path, file)| path.as_str().len() + content(file) + FILE_OVERHEAD);
            self.bytes += files.sum::<usize>() + entry.change.message.len();
            self.entries.push(entry);
        }
        Ok(())
    }

    pub(super) fn take(&mut self) -> Vec<JournalEntry> {
        self.bytes = 0;
        std::mem::take(&mut self.entries)
    }
}
