use countersign_core::{rules::snapshot::Change, values::time::Timestamp};
use countersign_store::journal::read::{JournalError, JournalFault, JournalReader};
use countersign_store::journal::{JournalEntry, write_entries};
use countersign_store::{Author, ObjectId};

mod bounds;
mod exported;
mod format;
mod hostile;

pub(super) fn id(digit: char) -> ObjectId {
    ObjectId::from_hex(digit.to_string().repeat(40).as_bytes()).unwrap()
}

pub(super) fn entry(id: ObjectId, parent: Option<ObjectId>, mut change: Change) -> JournalEntry {
    change.message = change.recorded_message();
    let author = Author::new("Countersign", "countersign@localhost").unwrap();
    JournalEntry { id, parent, author, time: Timestamp::from_unix_seconds(1_700_000_000).unwrap(), change }
}

/// Everything in it, whatever the pieces are that it arrives in.
pub(super) fn read_in_pieces(stream: &[u8], piece: usize) -> Result<Vec<JournalEntry>, JournalError> {
    let mut reader = JournalReader::default();
    let mut entries = Vec::new();
    for bytes in stream.chunks(piece) {
        reader.push(bytes);
        while let Some(entry) = reader.next()? {
            entries.push(entry);
        }
    }
    reader.finish()?;
    Ok(entries)
}

pub(super) fn read_all(stream: &[u8]) -> Result<Vec<JournalEntry>, JournalError> {
    read_in_pieces(stream, 64 << 10)
}

/// Why the stream that this text is cannot be read.
pub(super) fn fault(text: &str) -> JournalFault {
    read_all(text.as_bytes()).expect_err(text).fault
}

/// A stream of one entry.
pub(super) fn write_one(change: Change) -> Vec<u8> {
    write_entries([&entry(id('a'), None, change)])
}
