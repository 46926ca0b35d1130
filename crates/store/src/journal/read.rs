//! Reads text as entries. The text may come from a hostile server or database: everything in it is checked and bounded,
//! and there is one spelling of each entry. Whether the entry is true, the rules decide.

use std::{collections::HashMap, mem, sync::Arc};

use countersign_core::rules::snapshot::Change;
use countersign_core::values::bounds::{
    FILE_BYTES, JOURNAL_ENTRY_BYTES, JOURNAL_ENTRY_FILES, JOURNAL_LINE_BYTES, JOURNAL_MESSAGE_BYTES,
};
use countersign_core::values::{path::RepoPath, shown::quoted, shown::shown_text, time::Timestamp};
use gix::{ObjectId, objs::Kind};
use thiserror::Error;

use crate::journal::{JournalEntry, quote};
use crate::objects::{commit::Author, hash};
use crate::{repository::refs::BRANCH, snapshot::tree::addressable};

/// Reads a stream that arrives in pieces of any size. After an error it gives nothing more.
#[derive(Debug, Default)]
pub struct JournalReader {
    buffer: Vec<u8>,
    /// How much of the buffer was read.
    taken: usize,
    /// How much of the buffer was searched for the end of a line.
    searched: usize,
    awaited: Awaited,
    /// The id of the last whole entry.
    last: Option<ObjectId>,
    draft: EntryDraft,
    failed: Option<JournalError>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the journal cannot be read {}: {fault}", describe_start(after.as_ref()))]
pub struct JournalError {
    /// The last commit that was read whole.
    pub after: Option<ObjectId>,
    pub fault: JournalFault,
}

/// What comes next.
#[derive(Debug, Clone, Default)]
enum Awaited {
    #[default]
    Commit,
    Id,
    Author,
    Committer,
    MessageLength,
    Message(usize),
    /// `from`, a changed file, or the end of the entry.
    Parent,
    /// A changed file, or the end of the entry.
    File,
    ContentLength(RepoPath),
    Content(RepoPath, usize),
}

/// What was read of an entry.
#[derive(Debug, Default)]
struct EntryDraft {
    id: Option<ObjectId>,
    parent: Option<ObjectId>,
    who: Option<(Author, Timestamp)>,
    change: Change,
    bytes: usize,
    contents: ReadContents,
}

/// The contents of an entry in the order of reading. They are hashed only if a later file repeats one.
#[derive(Debug, Default)]
struct ReadContents {
    unhashed: Vec<Arc<[u8]>>,
    by_id: HashMap<ObjectId, Arc<[u8]>>,
}

impl JournalReader {
    /// Takes the next bytes. Call [`JournalReader::next`] until it gives nothing before you push more, so that the
    /// reader never holds more than one entry and a piece.
    pub fn push(&mut self, bytes: &[u8]) {
        let taken = mem::take(&mut self.taken);
        self.searched = self.searched.saturating_sub(taken);
        self.buffer.drain(..taken);
        self.buffer.extend_from_slice(bytes);
    }

    /// The next entry; `None` if more bytes are needed.
    #[expect(clippy::should_implement_trait, reason = "`None` is not the end")]
    pub fn next(&mut self) -> Result<Option<JournalEntry>, JournalError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.advance().map_err(|fault| self.fail(fault))
    }

    /// Ends the stream. Returns an error if it ends inside an entry.
    pub fn finish(mut self) -> Result<(), JournalError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let is_between = matches!(self.awaited, Awaited::Commit) && self.taken == self.buffer.len();
        if is_between { Ok(()) } else { Err(self.fail(JournalFault::Cut)) }
    }

    /// The last entry that was read whole.
    pub fn last(&self) -> Option<ObjectId> {
        self.last
    }

    fn fail(&mut self, fault: JournalFault) -> JournalError {
        let error = JournalError { after: self.last, fault };
        (self.buffer, self.taken, self.draft) = Default::default();
        self.failed = Some(error.clone());
        error
    }

    fn advance(&mut self) -> Result<Option<JournalEntry>, JournalFault> {
        loop {
            let is_taken = match self.awaited.clone() {
                Awaited::Message(length) => self.read_message(length)?,
                Awaited::Content(path, length) => self.read_content(path, length)?,
                Awaited::Commit
                | Awaited::Id
                | Awaited::Author
                | Awaited::Committer
                | Awaited::MessageLength
                | Awaited::Parent
                | Awaited::File
                | Awaited::ContentLength(_) => match self.take_line()? {
                    Some(line)
                        if line.is_empty() && matches!(self.awaited, Awaited::Parent | Awaited::File) =>
                    {
                        return Ok(Some(self.complete()));
                    }
                    Some(line) => {
                        self.read_line(&line)?;
                        true
                    }
                    None => false,
                },
            };
            if !is_taken {
                return Ok(None);
            }
        }
    }

    fn read_line(&mut self, line: &str) -> Result<(), JournalFault> {
        let draft = &mut self.draft;
        self.awaited = match mem::take(&mut self.awaited) {
            Awaited::Commit => {
                if line.strip_prefix("commit ") != Some(BRANCH) {
                    return Err(odd_line("`commit refs/heads/main`", line));
                }
                Awaited::Id
            }
            Awaited::Id => {
                let id = line.strip_prefix("original-oid ").and_then(parse_id);
                draft.id = Some(id.ok_or_else(|| odd_line("`original-oid` and the id of the commit", line))?);
                Awaited::Author
            }
            Awaited::Author => {
                let who = line.strip_prefix("author ").and_then(Author::parse_at);
                draft.who = Some(
                    who.ok_or_else(|| odd_line("`author`, a name, an address and a time in UTC", line))?,
                );
                Awaited::Committer
            }
            Awaited::Committer => {
                let who = line.strip_prefix("committer ").and_then(Author::parse_at);
                if who.is_none() || who != draft.who {
                    return Err(JournalFault::OtherCommitter);
                }
                Awaited::MessageLength
            }
            Awaited::MessageLength => {
                let length =
                    parse_data(line).ok_or_else(|| odd_line("`data` and the length of the message", line))?;
                let fitting = usize::try_from(length).ok().filter(|length| *length <= JOURNAL_MESSAGE_BYTES);
                Awaited::Message(fitting.ok_or(JournalFault::LongMessage(length))?)
            }
            Awaited::Parent => match line.strip_prefix("from ") {
                Some(_) if self.last.is_some() => return Err(JournalFault::NamesParent),
                Some(parent) => {
                    let parent =
                        parse_id(parent).ok_or_else(|| odd_line("`from` and the id of a commit", line))?;
                    draft.parent = Some(parent);
                    Awaited::File
                }
                None => draft.read_file(line)?,
            },
            Awaited::File => draft.read_file(line)?,
            Awaited::ContentLength(path) => {
                let length =
                    parse_data(line).ok_or_else(|| odd_line("`data` and the length of the file", line))?;
                match usize::try_from(length).ok().filter(|length| *length <= FILE_BYTES) {
                    Some(fitting) => Awaited::Content(path, fitting),
                    None => return Err(JournalFault::LargeFile { path, bytes: length }),
                }
            }
            awaited @ (Awaited::Message(_) | Awaited::Content(..)) => awaited,
        };
        Ok(())
    }

    /// Reads the message, and returns whether it is there yet.
    fn read_message(&mut self, length: usize) -> Result<bool, JournalFault> {
        let Some(bytes) = self.take(length)? else { return Ok(false) };
        let message = String::from_utf8(bytes).map_err(|_| JournalFault::OddMessage)?;
        let change = Change::new(message);
        if change.recorded_message() != change.message {
            return Err(JournalFault::OddMessage);
        }
        self.draft.change = change;
        self.awaited = Awaited::Parent;
        Ok(true)
    }

    /// Whether it is there yet, with the line break behind it.
    fn read_content(&mut self, path: RepoPath, length: usize) -> Result<bool, JournalFault> {
        let Some(mut bytes) = self.take(length + 1)? else { return Ok(false) };
        if bytes.pop() != Some(b'\n') {
            return Err(JournalFault::Unended(path));
        }
        let content: Arc<[u8]> = bytes.into();
        self.draft.contents.unhashed.push(Arc::clone(&content));
        self.draft.change.files.insert(path, Some(content));
        self.awaited = Awaited::File;
        Ok(true)
    }

    /// The next line without its end; `None` if it is not whole.
    fn take_line(&mut self) -> Result<Option<String>, JournalFault> {
        let from = self.searched.max(self.taken);
        let end = self.buffer[from..].iter().position(|byte| *byte == b'\n').map(|end| from + end);
        let length = end.unwrap_or(self.buffer.len()) - self.taken;
        if length > JOURNAL_LINE_BYTES {
            return Err(JournalFault::LongLine);
        }
        if end.is_none() {
            self.searched = self.buffer.len();
            return Ok(None);
        }
        let Some(mut line) = self.take(length + 1)? else { return Ok(None) };
        line.pop();
        let line = String::from_utf8(line);
        line.map(Some).map_err(|line| odd_line("text", &String::from_utf8_lossy(line.as_bytes())))
    }

    /// Takes that many bytes; `None` if they are not there yet.
    fn take(&mut self, length: usize) -> Result<Option<Vec<u8>>, JournalFault> {
        // Before they arrive, so that no more than an entry is ever held.
        if self.draft.bytes + length > JOURNAL_ENTRY_BYTES {
            return Err(JournalFault::LargeEntry);
        }
        let Some(bytes) = self.buffer.get(self.taken..self.taken + length) else { return Ok(None) };
        let bytes = bytes.to_vec();
        self.draft.bytes += length;
        self.taken += length;
        self.searched = self.taken;
        Ok(Some(bytes))
    }

    fn complete(&mut self) -> JournalEntry {
        let EntryDraft { id, parent, who, change, .. } = mem::take(&mut self.draft);
        let id = id.expect("an entry has its id before its end");
        let (author, time) = who.expect("an entry has its author before its end");
        let parent = parent.or(self.last);
        (self.last, self.awaited) = (Some(id), Awaited::Commit);
        JournalEntry { id, parent, author, time, change }
    }
}

impl EntryDraft {
    /// Reads what a line says about a file: that it is gone, that its content is that of an earlier file of the entry,
    /// or that the content follows.
    fn read_file(&mut self, line: &str) -> Result<Awaited, JournalFault> {
        let odd = || odd_line("a changed file, or an empty line", line);
        let (content, path) = match line.strip_prefix("D ") {
            Some(path) => (None, path),
            None => {
                let file = line.strip_prefix("M 100644 ").and_then(|file| file.split_once(' '));
                file.map(|(content, path)| (Some(content), path)).ok_or_else(odd)?
            }
        };
        let is_inline = content == Some("inline");
        let repeated = content.filter(|_| !is_inline).map(|id| parse_id(id).ok_or_else(odd)).transpose()?;
        let path = parse_path(path)?;
        if self.change.files.last_key_value().is_some_and(|(last, _)| *last >= path) {
            return Err(JournalFault::Order(path));
        }
        if self.change.files.len() == JOURNAL_ENTRY_FILES {
            return Err(JournalFault::ManyFiles);
        }
        if is_inline {
            return Ok(Awaited::ContentLength(path));
        }
        let known = repeated.and_then(|id| self.contents.find(&id));
        if let (Some(content), None) = (repeated, &known) {
            return Err(JournalFault::UnknownContent { path, content });
        }
        self.change.files.insert(path, known);
        Ok(Awaited::File)
    }
}

impl ReadContents {
    fn find(&mut self, id: &ObjectId) -> Option<Arc<[u8]>> {
        for content in self.unhashed.drain(..) {
            // Content that was made to collide has no id.
            self.by_id.extend(hash(Kind::Blob, &content).map(|id| (id, content)));
        }
        self.by_id.get(id).cloned()
    }
}

fn odd_line(expected: &'static str, found: &str) -> JournalFault {
    JournalFault::Line { expected, found: found.to_owned() }
}

fn describe_start(after: Option<&ObjectId>) -> String {
    after.map_or_else(|| "from its beginning".to_owned(), |id| format!("after the commit {id}"))
}

// What is wrong with a journal.

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

// What one line says.

/// Parses an id in small letters, as Git writes it.
fn parse_id(text: &str) -> Option<ObjectId> {
    let is_plain = text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    ObjectId::from_hex(text.as_bytes()).ok().filter(|_| is_plain)
}

fn parse_data(line: &str) -> Option<u64> {
    let digits = line.strip_prefix("data ")?;
    digits.parse().ok().filter(|length: &u64| length.to_string() == digits)
}

/// Parses a path that a request can spell, quoted only where it must be.
fn parse_path(text: &str) -> Result<RepoPath, JournalFault> {
    let inside = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let plain = inside.map_or_else(|| text.to_owned(), |inside| inside.replace("\\\"", "\""));
    let path = addressable(&plain).filter(|path| quote(path.as_str()) == text);
    path.ok_or_else(|| JournalFault::Path(text.to_owned()))
}
