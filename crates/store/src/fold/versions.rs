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
const MAX_BYTES: usize = 32 << 20;
/// An entry of a directory has at least a mode, a name and an id.
const BEGINNING: usize = 48;
/// A signature or a digest is on a line of such a length, and no other file has the same. A key alone makes a shorter one:
/// all files that the same people signed have these.
const LONG_LINE: usize = 80;

/// The newest version of each directory and file that came by.
#[derive(Default)]
pub(crate) struct Versions {
    /// A difference has the kind of its base, so versions of one kind are never taken for those of another.
    newest: HashMap<(Kind, u64), Version>,
    bytes: usize,
    /// With a key that is drawn anew each time, so that a stranger cannot make files that seem to be versions of each other, or
    /// versions that do not.
    hasher: RandomState,
}

struct Version {
    content: Vec<u8>,
    place: u64,
    /// How many differences lead from a whole copy to it.
    depth: usize,
}

impl Versions {
    /// The entry of an object, which will be at `place`, as a difference to the version before. Upon it there will be as
    /// many differences as `height` says. Where versions are not known as such, nothing is lost but the saving.
    pub(crate) fn shorten(
        &mut self,
        kind: Kind,
        content: Vec<u8>,
        place: u64,
        height: usize,
    ) -> Option<Vec<u8>> {
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

    /// What versions of one thing have in common, and different things have not. A directory is known by its first entry,
    /// which seldom changes. Of a file it is one of the long lines, chosen by chance from all of them: a line more, wherever
    /// it stands, seldom becomes the chosen one.
    fn likeness(&self, kind: Kind, content: &[u8]) -> Option<u64> {
        match kind {
            Kind::Tree => Some(self.hasher.hash_one(content.first_chunk::<BEGINNING>()?)),
            Kind::Blob => {
                let long = content.split(|byte| *byte == b'\n').filter(|line| line.len() >= LONG_LINE);
                long.map(|line| self.hasher.hash_one(line)).min()
            }
            Kind::Commit | Kind::Tag => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A signatures file: a line for each key, and a long one for its signature.
    fn set(file: &str, keys: impl Iterator<Item = usize>) -> Vec<u8> {
        let entry = |n: usize| {
            format!("    \"svc-pub:{n:043}\": {{\n      \"signature\": \"{file:>43}{n:043}==\"\n    }},\n")
        };
        keys.map(entry).collect::<String>().into_bytes()
    }

    fn is_shortened(versions: &mut Versions, kind: Kind, content: &[u8]) -> bool {
        static PLACE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(12);
        let place = PLACE.fetch_add(1_000, std::sync::atomic::Ordering::Relaxed);
        versions.shorten(kind, content.to_vec(), place, 0).is_some()
    }

    #[test]
    fn versions_are_known_wherever_a_line_was_added() {
        let mut versions = Versions::default();
        is_shortened(&mut versions, Kind::Blob, &set("a", 100..200));
        // From the middle outwards, so that beginning and end change each time.
        let grown = (1..=100).map(|n| set("a", 100 - n..200 + n));
        let shortened = grown.filter(|set| is_shortened(&mut versions, Kind::Blob, set)).count();
        // By chance, a few have another line chosen; and a chain ends.
        assert!((70..=99).contains(&shortened), "{shortened}");
    }

    #[test]
    fn chains_of_differences_end_where_they_would_become_too_long() {
        let content = set("a", 0..100);
        for height in [0, 1, MAX_CHAIN - 1, MAX_CHAIN] {
            let mut versions = Versions::default();
            let shorten =
                |n: u64| versions.shorten(Kind::Blob, content.clone(), 12 + 1_000 * n, height).is_some();
            let shortened: Vec<bool> = (0..200).map(shorten).collect();
            let longest = shortened.split(|is_shortened| !is_shortened).map(<[_]>::len).max();
            assert_eq!(longest, Some(MAX_CHAIN - height), "upon each there are {height}");
        }
    }

    #[test]
    fn sets_of_the_same_keys_on_different_files_do_not_come_between_each_other() {
        let mut versions = Versions::default();
        let mut shortened = 0;
        for n in 100..116 {
            for file in ["signers", "metadata"] {
                shortened += usize::from(is_shortened(&mut versions, Kind::Blob, &set(file, 0..n)));
            }
        }
        assert!(shortened >= 24, "{shortened}");
        assert!(versions.newest.len() <= 8);
    }

    #[test]
    fn a_difference_is_to_an_object_of_its_own_kind() {
        let mut versions = Versions::default();
        let same = set("a", 0..100);
        assert!(!is_shortened(&mut versions, Kind::Blob, &same));
        assert!(!is_shortened(&mut versions, Kind::Tree, &same));
        assert!(is_shortened(&mut versions, Kind::Blob, &same));
        assert!(is_shortened(&mut versions, Kind::Tree, &same));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut versions = Versions::default();
        for n in 0..100 {
            let unlike = set(&n.to_string(), 0..5_000);
            assert!(unlike.len() > 800_000);
            is_shortened(&mut versions, Kind::Blob, &unlike);
            assert!(versions.bytes <= MAX_BYTES + unlike.len());
            assert_eq!(
                versions.bytes,
                versions.newest.values().map(|version| version.content.len()).sum::<usize>()
            );
        }
        assert!(versions.newest.len() < 100);
    }
}
