//! The entries of a history as one text, which is sent in parts: the file of the specification, or the answer of
//! `get_signers_chain`. Nothing is parsed.

use countersign_core::documents::history::{DOCUMENT_FRAME, DOCUMENT_INDENT, EntryFacts, stored_lines};

/// The frame of a [`super::answers::ChainResponse`], with each entry as it is stored.
const CHAIN_FRAME: [&str; 3] = ["{\"history\":{\"entries\":[", ",", "]}}"];

/// The assembly of so many entries into one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assembly {
    /// What stands before the first entry, between two, and behind the last.
    frame: [&'static str; 3],
    /// Whether the lines of each entry are indented, as in the file.
    is_indented: bool,
    entries: usize,
}

impl Assembly {
    /// The history file of so many entries, one or more: byte for byte what `History::write` gives.
    pub fn document(entries: usize) -> Self {
        Self { frame: DOCUMENT_FRAME, is_indented: true, entries }
    }

    /// The chain of so many entries, one or more.
    pub fn chain(entries: usize) -> Self {
        Self { frame: CHAIN_FRAME, is_indented: false, entries }
    }

    /// How long the text is.
    pub fn len(&self, facts: impl IntoIterator<Item = EntryFacts>) -> usize {
        let bytes =
            |facts: EntryFacts| if self.is_indented { facts.assembled_bytes } else { facts.stored_bytes };
        let [beginning, between, end] = self.frame.map(str::len);
        let entries: usize = facts.into_iter().map(bytes).sum();
        beginning + entries + self.entries.saturating_sub(1) * between + end
    }

    /// Appends the entry of this number, counted from 1, with what belongs before and behind it.
    pub fn append(&self, number: usize, stored: &[u8], out: &mut Vec<u8>) {
        let [beginning, between, end] = self.frame.map(str::as_bytes);
        out.extend_from_slice(if number == 1 { beginning } else { between });
        if self.is_indented {
            append_indented(stored, out)
        } else {
            out.extend_from_slice(stored)
        }
        if number == self.entries {
            out.extend_from_slice(end);
        }
    }
}

fn append_indented(stored: &[u8], out: &mut Vec<u8>) {
    for (at, line) in stored_lines(stored).enumerate() {
        if at > 0 {
            out.push(b'\n');
        }
        out.extend_from_slice(DOCUMENT_INDENT.as_bytes());
        out.extend_from_slice(line);
    }
}
