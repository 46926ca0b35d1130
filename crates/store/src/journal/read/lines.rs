//! What one line says.

use countersign_core::values::{path::RepoPath, time::Timestamp};
use gix::ObjectId;

use super::fault::JournalFault;
use crate::{commit::Author, journal::write::quote, tree::names::addressable};

/// What a line says about a file.
pub(super) enum FileChange {
    /// The content follows the line.
    Inline,
    /// The content is that of an earlier file of the entry.
    Repeated(ObjectId),
    Gone,
}

pub(super) fn parse_author(who: &str) -> Option<(Author, Timestamp)> {
    Author::parse_at(who)
}

/// Parses an id in small letters, as Git writes it.
pub(super) fn parse_id(text: &str) -> Option<ObjectId> {
    let is_plain = text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    ObjectId::from_hex(text.as_bytes()).ok().filter(|_| is_plain)
}

pub(super) fn parse_data(line: &str) -> Option<u64> {
    let digits = line.strip_prefix("data ")?;
    digits.parse().ok().filter(|length: &u64| length.to_string() == digits)
}

pub(super) fn parse_file(line: &str) -> Result<(RepoPath, FileChange), JournalFault> {
    let odd = || JournalFault::Line { expected: "a changed file, or an empty line", found: line.to_owned() };
    if let Some(path) = line.strip_prefix("D ") {
        return Ok((parse_path(path)?, FileChange::Gone));
    }
    let (content, path) =
        line.strip_prefix("M 100644 ").and_then(|rest| rest.split_once(' ')).ok_or_else(odd)?;
    let content = match content {
        "inline" => FileChange::Inline,
        id => FileChange::Repeated(parse_id(id).ok_or_else(odd)?),
    };
    Ok((parse_path(path)?, content))
}

/// Parses a path that a request can spell, quoted only where it must be.
fn parse_path(text: &str) -> Result<RepoPath, JournalFault> {
    let inside = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let plain = inside.map_or_else(|| text.to_owned(), |inside| inside.replace("\\\"", "\""));
    let path = addressable(&plain).filter(|path| quote(path.as_str()) == text);
    path.ok_or_else(|| JournalFault::Path(text.to_owned()))
}
