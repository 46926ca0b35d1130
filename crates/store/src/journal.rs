//! The journal: every commit with the content that it changed, in the form that `git fast-import` reads. Another
//! machine can check and repeat what is in it, and gets the same commit ids (D67). Here are the entry of one commit,
//! and entries as text.

pub mod copy;
mod differing;
pub mod export;
pub mod follow;
pub mod milestones;
pub mod read;
pub mod recent_commits;

use std::{collections::HashMap, collections::hash_map::Entry, io::Write as _, sync::Arc};

use countersign_core::{rules::snapshot::Change, values::time::Timestamp};
use gix::{ObjectId, objs::Kind};

use crate::{objects::commit::Author, objects::hash, repository::refs::BRANCH};

/// Writes a stream of entries, each of which continues the one before.
#[derive(Debug, Clone, Default)]
pub struct JournalWriter {
    last: Option<ObjectId>,
}

/// Writes a stream of entries. Each must continue the one before.
pub fn write_entries<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> Vec<u8> {
    let (mut writer, mut out) = (JournalWriter::default(), Vec::new());
    entries.into_iter().for_each(|entry| writer.write(entry, &mut out));
    out
}

impl JournalWriter {
    pub fn write(&mut self, entry: &JournalEntry, out: &mut Vec<u8>) {
        let JournalEntry { id, parent, author, time, change } = entry;
        let (who, message) = (author.at(*time), &change.message);
        put(out, format_args!("commit {BRANCH}\noriginal-oid {id}\nauthor {who}\ncommitter {who}\n"));
        put(out, format_args!("data {}\n{message}", message.len()));
        // `git fast-import` continues the branch by itself, and finds by their ids only commits of earlier runs.
        if let Some(parent) = parent.filter(|parent| self.last != Some(*parent)) {
            put(out, format_args!("from {parent}\n"));
        }
        self.last = Some(*id);
        // A project's new signers file is stored once more for each release that collects signatures.
        let mut written: HashMap<&[u8], Option<ObjectId>> = HashMap::new();
        for (path, content) in &change.files {
            let path = quote(path.as_str());
            let Some(content) = content else {
                put(out, format_args!("D {path}\n"));
                continue;
            };
            let repeated = match written.entry(content) {
                Entry::Vacant(new) => {
                    new.insert(None);
                    None
                }
                Entry::Occupied(mut known) => {
                    let id = known.get().or_else(|| hash(Kind::Blob, content));
                    known.insert(id);
                    id
                }
            };
            if let Some(id) = repeated {
                put(out, format_args!("M 100644 {id} {path}\n"));
                continue;
            }
            put(out, format_args!("M 100644 inline {path}\ndata {}\n", content.len()));
            out.extend_from_slice(content);
            out.push(b'\n');
        }
        out.push(b'\n');
    }
}

/// A path as the format spells it. Only a quotation mark at the beginning needs quotes: a stored path has neither line
/// breaks nor backslashes.
pub(super) fn quote(path: &str) -> String {
    if path.starts_with('"') { format!("\"{}\"", path.replace('"', "\\\"")) } else { path.to_owned() }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory does not fail");
}

// One commit, with all that is needed to repeat it.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The commit, as the sender names it. A follower makes the commit again and compares.
    pub id: ObjectId,
    /// The commit before; `None` for the first commit.
    pub parent: Option<ObjectId>,
    pub author: Author,
    /// The time of the commit, in whole seconds.
    pub time: Timestamp,
    /// The change, with its message as the commit records it.
    pub change: Change,
}

impl JournalEntry {
    /// How many bytes it holds, about, if each file takes `overhead` beside its path and content.
    pub fn bytes(&self, overhead: usize) -> usize {
        let content = |content: &Option<Arc<[u8]>>| content.as_ref().map_or(0, |content| content.len());
        let files = self.change.files.iter();
        let files = files.map(|(path, file)| path.as_str().len() + content(file) + overhead);
        files.sum::<usize>() + self.change.message.len()
    }
}
