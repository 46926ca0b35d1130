//! The bounds of the journal (D41), each at the last size that is read and the first that is not.

use std::sync::Arc;

use countersign_core::rules::snapshot::Change;
use countersign_core::values::bounds::{
    FILE_BYTES, JOURNAL_ENTRY_BYTES, JOURNAL_ENTRY_FILES, JOURNAL_LINE_BYTES, JOURNAL_MESSAGE_BYTES,
};
use countersign_store::{Author, journal::read::JournalFault, journal::read::JournalReader};

use super::{fault, read_all, write_one};
use crate::support::path;

#[test]
fn a_line() {
    let line = |bytes: usize| "x".repeat(bytes) + "\n";
    assert!(matches!(fault(&line(JOURNAL_LINE_BYTES)), JournalFault::Line { .. }));
    assert_eq!(fault(&line(JOURNAL_LINE_BYTES + 1)), JournalFault::LongLine);
    assert_eq!(
        fault(&"x".repeat(JOURNAL_LINE_BYTES + 1)),
        JournalFault::LongLine,
        "without waiting for its end"
    );
}

#[test]
fn the_longest_path_and_author_have_room_in_a_line() {
    let name = format!("\"{}", "\"/\"".repeat(60));
    let longest = path(&format!("{name}/{}", "\"".repeat(1_023 - name.len())));
    let mut change = Change::new("x");
    change.delete(longest);
    assert!(read_all(&write_one(change.clone())).is_ok());
    assert!(Author::new(&"n".repeat(1_024), &"m".repeat(1_024)).is_ok());
    assert!(Author::new(&"n".repeat(1_025), "m").is_err());
    assert!(Author::new("n", &"m".repeat(1_025)).is_err());
    let mut entry = super::entry(super::id('a'), None, change);
    entry.author = Author::new(&"n".repeat(1_024), &"m".repeat(1_024)).unwrap();
    let stream = countersign_store::journal::write_entries([&entry]);
    assert_eq!(read_all(&stream).unwrap(), [entry]);
}

#[test]
fn a_message() {
    let stream = |bytes: usize| write_one(Change::new("m".repeat(bytes - 1)));
    assert_eq!(read_all(&stream(JOURNAL_MESSAGE_BYTES)).unwrap().len(), 1);
    let long = read_all(&stream(JOURNAL_MESSAGE_BYTES + 1)).unwrap_err().fault;
    assert_eq!(long, JournalFault::LongMessage(JOURNAL_MESSAGE_BYTES as u64 + 1));
}

#[test]
fn a_file() {
    let stream = |bytes: usize| {
        let mut change = Change::new("x");
        change.write(path("x"), vec![b'x'; bytes]);
        write_one(change)
    };
    assert_eq!(read_all(&stream(FILE_BYTES)).unwrap().len(), 1);
    let expected = JournalFault::LargeFile { path: path("x"), bytes: FILE_BYTES as u64 + 1 };
    assert_eq!(read_all(&stream(FILE_BYTES + 1)).unwrap_err().fault, expected);
}

#[test]
fn the_files_of_a_commit() {
    let stream = |files: usize| {
        let mut change = Change::new("x");
        (0..files).for_each(|number| change.delete(path(&format!("x/{number}"))));
        write_one(change)
    };
    let read = read_all(&stream(JOURNAL_ENTRY_FILES)).unwrap();
    assert_eq!(read[0].change.files.len(), JOURNAL_ENTRY_FILES);
    assert_eq!(read_all(&stream(JOURNAL_ENTRY_FILES + 1)).unwrap_err().fault, JournalFault::ManyFiles);
}

#[test]
fn a_commit_in_which_repeated_content_counts_once() {
    let mut change = Change::new("x");
    let content: Arc<[u8]> = vec![b'x'; FILE_BYTES].into();
    (0..100).for_each(|number| change.write(path(&format!("same/{number}")), Arc::clone(&content)));
    let room = (JOURNAL_ENTRY_BYTES / FILE_BYTES) as u32 - 2;
    for number in 0..room {
        let mut content = vec![b'x'; FILE_BYTES];
        content[..4].copy_from_slice(&number.to_be_bytes());
        change.write(path(&format!("various/{number}")), content);
    }
    let size = write_one(change.clone()).len();
    let lacking = JOURNAL_ENTRY_BYTES - size - "M 100644 inline z\ndata 1000000\n\n".len();
    let mut last = vec![b'z'; lacking];
    change.write(path("z"), last.clone());
    let whole = write_one(change.clone());
    assert_eq!(whole.len(), JOURNAL_ENTRY_BYTES, "{lacking}");
    assert_eq!(read_all(&whole).unwrap()[0].change, {
        change.message = change.recorded_message();
        change.clone()
    });
    last.push(b'z');
    change.write(path("z"), last);
    let mut reader = JournalReader::default();
    reader.push(&write_one(change));
    assert_eq!(reader.next().unwrap_err().fault, JournalFault::LargeEntry);
}
