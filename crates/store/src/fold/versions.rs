//! Versions of a directory or a file, as they come by in a fold: all but a few become differences to the one before.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use gix::{objs::Kind, odb::pack::data::entry::Header};

use crate::objects::{
    delta::encode_delta,
    pack::{MAX_CHAIN, encode_entry},
};

/// What is remembered of all versions together.
pub const MAX_BYTES: usize = 32 << 20;
const ID_BYTES: usize = 20;
/// A signature or a digest is on a line of such a length, and no other file has the same. A key alone makes a shorter one:
/// all files that the same people signed have these.
const LONG_LINE: usize = 80;

/// The newest version of each directory and file that came by.
#[derive(Debug, Default)]
pub struct Versions {
    /// A difference has the kind of its base, so versions of one kind are never taken for those of another.
    pub newest: HashMap<(Kind, u64), Version>,
    pub bytes: usize,
    /// A hasher whose key is drawn anew each time, so that a stranger cannot make files that seem to be versions of
    /// each other, or versions that do not.
    hasher: RandomState,
}

#[derive(Debug)]
pub struct Version {
    pub content: Vec<u8>,
    place: u64,
    /// How many differences lead from a whole copy to it.
    depth: usize,
}

impl Versions {
    /// The entry of an object, which will be at `place`, as a difference to the version before. Upon it there will be as
    /// many differences as `height` says. Where versions are not known as such, nothing is lost but the saving.
    pub fn shorten(&mut self, kind: Kind, content: Vec<u8>, place: u64, height: usize) -> Option<Vec<u8>> {
        let likeness = (kind, self.likeness(kind, &content)?);
        if self.bytes > MAX_BYTES {
            *self = Self { hasher: self.hasher.clone(), ..Self::default() };
        }
        let before = self.newest.get(&likeness).filter(|before| before.depth + height < MAX_CHAIN);
        let delta = before.map(|before| (before, encode_delta(&before.content, &content)));
        let shorter = delta.filter(|(_, delta)| delta.len() < content.len() / 2).map(|(before, delta)| {
            let header = Header::OfsDelta { base_distance: place - before.place };
            (before.depth + 1, encode_entry(&header, &delta))
        });
        let (depth, bytes) = shorter.map_or((0, None), |(depth, bytes)| (depth, Some(bytes)));
        self.bytes += content.len();
        let replaced = self.newest.insert(likeness, Version { content, place, depth });
        self.bytes -= replaced.map_or(0, |replaced| replaced.content.len());
        bytes
    }

    /// What versions of one thing have in common, and different things have not: one of the entries of a directory, or one of
    /// the long lines of a file, chosen by chance from all of them. Another one more, wherever it stands, seldom becomes the
    /// chosen one, and strangers do not know which one it is.
    fn likeness(&self, kind: Kind, content: &[u8]) -> Option<u64> {
        match kind {
            Kind::Tree => entries(content).map(|entry| self.hasher.hash_one(entry)).min(),
            Kind::Blob => {
                let long = content.split(|byte| *byte == b'\n').filter(|line| line.len() >= LONG_LINE);
                long.map(|line| self.hasher.hash_one(line)).min()
            }
            Kind::Commit | Kind::Tag => None,
        }
    }
}

/// The entries of a directory: a mode, a name, a NUL and an id. What cannot be told apart is not an entry.
fn entries(tree: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = tree;
    std::iter::from_fn(move || {
        let end = rest.iter().position(|byte| *byte == 0)? + 1 + ID_BYTES;
        let (entry, behind) = rest.split_at_checked(end)?;
        rest = behind;
        Some(entry)
    })
}
