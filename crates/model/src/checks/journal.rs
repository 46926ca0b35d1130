//! The journal (D67), in one piece and byte by byte.

use countersign_core::values::bounds::{FILE_BYTES, JOURNAL_ENTRY_FILES};
use countersign_store::journal::{
    entry::JournalEntry,
    read::{JournalError, JournalReader},
    write::write_entries,
};

use super::promises::assert_shown;

pub fn check(data: &[u8]) {
    let (entries, error) = read(data, data.len().max(1));
    assert_eq!(read(data, 1), (entries.clone(), error.clone()), "the pieces do not matter");
    if let Some(error) = &error {
        assert_shown(error);
        assert_eq!(error.after, entries.last().map(|entry| entry.id));
    } else {
        assert_eq!(write_entries(&entries), data, "each entry has one spelling");
    }
    for pair in entries.windows(2) {
        assert_eq!(pair[1].parent, Some(pair[0].id));
    }
    for JournalEntry { change, .. } in &entries {
        assert_eq!(change.recorded_message(), change.message);
        assert!(change.files.len() <= JOURNAL_ENTRY_FILES);
        assert!(change.files.values().flatten().all(|content| content.len() <= FILE_BYTES));
    }
}

/// Reads what is whole, and what ended it.
fn read(data: &[u8], piece: usize) -> (Vec<JournalEntry>, Option<JournalError>) {
    let (mut reader, mut entries) = (JournalReader::default(), Vec::new());
    for bytes in data.chunks(piece) {
        reader.push(bytes);
        loop {
            match reader.next() {
                Ok(Some(entry)) => entries.push(entry),
                Ok(None) => break,
                Err(error) => return (entries, Some(error)),
            }
        }
    }
    (entries, reader.finish().err())
}
