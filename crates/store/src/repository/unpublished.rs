//! A pack that the branch does not reach yet. From before it has its name until the branch has moved, a file
//! `pack-….keep` lies beside it (D200). Git leaves packs with such a file alone, so `git gc` beside us does not remove
//! a pack whose commits it cannot see yet. And the file says from which commit to which the branch was to move. So a
//! start that finds it knows whether it did, and removes the pack if not.
//!
//! Git would leave the objects of such a pack out of a new one, and then the new one would lack what both have. So the
//! repository's configuration tells it not to (`repack.packKeptObjects`), and the pack can go at any moment.
//!
//! The file is not synced by itself, since that would cost every change as much as its pack does. Its name is durable
//! with the pack's. After a power cut it may be cut off: then it goes, and the pack stays. If nothing is left of it, it
//! is taken for an operator's. Neither does harm: an object counts as there only if the branch reaches it.

use std::{fs, io::Write as _, path::Path, path::PathBuf};

use gix::ObjectId;

use crate::machine::disk::{Disk, DiskError, list_dir, unfinished};

const ENDING: &str = "keep";
const BEGINNING: &str = "countersign: the branch moves to this pack";
/// The beginning of a mark of ours. It is enough to know whose mark it is: a power cut may leave anything behind that.
const OURS: &str = "countersign: ";
/// What stands for a commit before the first one.
const NO_COMMIT: &str = "none";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnpublishedPack {
    /// The file without `.pack` or `.idx`.
    pub(crate) stem: PathBuf,
    /// The commit at which the branch was.
    pub(crate) from: Option<ObjectId>,
    pub(crate) to: ObjectId,
}

impl UnpublishedPack {
    /// Comes before the pack.
    pub(crate) fn mark(&self, disk: &Disk) -> Result<(), DiskError> {
        let path = self.stem.with_extension(ENDING);
        let from = self.from.map_or_else(|| NO_COMMIT.to_owned(), |from| from.to_string());
        // One may be there that a power cut left empty.
        disk.remove(&path)?;
        let mut file = disk.create_new(&path)?;
        let written = file.write_all(format!("{BEGINNING}\n{from}\n{}\n", self.to).as_bytes());
        written.map_err(|source| DiskError::new("write", &path, source))
    }

    /// Removes the mark, because the branch has moved.
    pub(crate) fn unmark(&self, disk: &Disk) -> Result<(), DiskError> {
        disk.remove(&self.stem.with_extension(ENDING))
    }

    /// The branch has not moved, and the pack may be on disk in part. The mark goes last: a crash on the way leaves
    /// what the next start removes.
    pub(crate) fn remove(&self, disk: &Disk) -> Result<(), DiskError> {
        let dir = self.stem.parent().expect("a pack lies in a directory");
        // It may name the pack; Git does without it.
        let mut removed = disk.remove(&dir.join("multi-pack-index"));
        // One that fails keeps no other from going.
        for ending in ["pack", "idx"] {
            removed = removed.and(disk.remove(&unfinished(&self.stem, ending)));
        }
        for ending in ["pack", "idx", "rev", "bitmap"] {
            removed = removed.and(disk.remove(&self.stem.with_extension(ending)));
        }
        removed?;
        disk.sync_dir(dir)?;
        self.unmark(disk)
    }
}

/// A mark of ours that a crash left.
#[derive(Debug)]
pub(crate) enum LeftMark {
    Whole(UnpublishedPack),
    /// A power cut has taken a part of it.
    Torn(PathBuf),
}

impl LeftMark {
    /// Finds all marks in a directory of packs.
    pub(crate) fn find_all(dir: &Path) -> Result<Vec<Self>, DiskError> {
        let marks =
            list_dir(dir)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == ENDING));
        Ok(marks.filter_map(Self::read).collect())
    }

    fn read(path: PathBuf) -> Option<Self> {
        let bytes = fs::read(&path).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        if let Some(whole) = parse(&path, &text) {
            return Some(Self::Whole(whole));
        }
        let is_ours = text.starts_with(OURS) || !text.is_empty() && OURS.starts_with(&*text);
        is_ours.then_some(Self::Torn(path))
    }
}

fn parse(mark: &Path, text: &str) -> Option<UnpublishedPack> {
    let [BEGINNING, from, to] = text.strip_suffix('\n')?.split('\n').collect::<Vec<_>>()[..] else {
        return None;
    };
    let from = if from == NO_COMMIT { None } else { Some(parse_id(from)?) };
    Some(UnpublishedPack { stem: mark.with_extension(""), from, to: parse_id(to)? })
}

fn parse_id(hex: &str) -> Option<ObjectId> {
    ObjectId::from_hex(hex.as_bytes()).ok()
}

/// What the configuration of the repository must have.
pub(crate) const CONFIG_LINES: &str = "[repack]\n\tpackKeptObjects = true\n";
