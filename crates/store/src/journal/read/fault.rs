//! What is wrong with a journal.

use countersign_core::values::{
    bounds::{
        FILE_BYTES, JOURNAL_ENTRY_BYTES, JOURNAL_ENTRY_FILES, JOURNAL_LINE_BYTES, JOURNAL_MESSAGE_BYTES,
    },
    path::RepoPath,
    shown::{quoted, shown_text},
};
use gix::ObjectId;
use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JournalFault {
    #[error("it ends in the middle of a commit")]
    Cut,
    #[error("a line is longer than {JOURNAL_LINE_BYTES} bytes")]
    LongLine,
    #[error("found {}, expected {expected}", quoted(found))]
    Line { expected: &'static str, found: String },
    #[error("author and committer differ, or their times do")]
    OtherCommitter,
    #[error("only the first commit of a stream names the one before it; the others continue it")]
    NamesParent,
    #[error("the message has {0} bytes, and no more than {JOURNAL_MESSAGE_BYTES} are read")]
    LongMessage(u64),
    #[error("the message is not written as a server records it")]
    OddMessage,
    #[error("a server stores no file at the path {}", quoted(.0))]
    Path(String),
    #[error("the path {} is not after the one before it", shown(.0))]
    Order(RepoPath),
    #[error("the file {} has {bytes} bytes, and no stored file has more than {FILE_BYTES}", shown(path))]
    LargeFile { path: RepoPath, bytes: u64 },
    #[error("no line break follows the content of the file {}", shown(.0))]
    Unended(RepoPath),
    #[error("the file {} has the content {content}, which no earlier file of the commit has", shown(path))]
    UnknownContent { path: RepoPath, content: ObjectId },
    #[error("a commit changes more than {JOURNAL_ENTRY_FILES} files")]
    ManyFiles,
    #[error("a commit has more than {JOURNAL_ENTRY_BYTES} bytes")]
    LargeEntry,
}

fn shown(path: &RepoPath) -> String {
    shown_text(path.as_str())
}
