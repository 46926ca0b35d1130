//! Tiles and bundles of entries (c2sp.org/tlog-tiles), as far as the newest checkpoint covers them.

use std::{ops::Range, sync::atomic::Ordering};

use countersign_core::log::leaf::write_bundle;
use thiserror::Error;

use crate::{cache::CachedLeaf, error::LogError, state::LogState};

/// Hashes or entries in a full tile.
const WIDTH: u64 = 256;
const MAX_LEVEL: u8 = 63;

/// The name of a tile, such as `0/x001/067.p/8`, or of a bundle, such as `entries/000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileName {
    kind: TileKind,
    /// Its place in its level.
    number: u64,
    width: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TileKind {
    Hashes { level: u8 },
    Entries,
}

#[derive(Debug, Clone, Error)]
pub enum NoTile {
    #[error("the newest checkpoint of the log does not cover this tile")]
    NotCovered,
    #[error("the log is catching up with the repository")]
    CatchingUp,
    #[error(transparent)]
    Unreadable(LogError),
}

impl TileName {
    /// Exactly the spelling of the specification.
    pub fn parse(name: &str) -> Option<Self> {
        let (kind, rest) = name.split_once('/')?;
        let kind = match kind {
            "entries" => TileKind::Entries,
            level => TileKind::Hashes { level: parse_plain(level).filter(|level| *level <= MAX_LEVEL)? },
        };
        let (number, width) = match rest.split_once(".p/") {
            Some((number, width)) => {
                (number, u64::from(parse_plain::<u8>(width).filter(|width| *width > 0)?))
            }
            None => (rest, WIDTH),
        };
        let (first, last) =
            number.rsplit_once('/').map_or((None, number), |(first, last)| (Some(first), last));
        let mut digits = String::new();
        for part in first.iter().flat_map(|first| first.split('/')) {
            digits.push_str(parse_three(part.strip_prefix('x')?)?);
        }
        // `x000/001` is another spelling of `001`.
        if first.is_some() && digits.starts_with("000") {
            return None;
        }
        digits.push_str(parse_three(last)?);
        // At most 18 digits: any more is no number of ours.
        let number = (digits.len() <= 18).then(|| digits.parse().ok()).flatten()?;
        Some(Self { kind, number, width })
    }

    fn range(&self) -> Range<u64> {
        let begin = self.number.saturating_mul(WIDTH);
        begin..begin.saturating_add(self.width)
    }

    /// How many leaves there must be for this tile.
    fn needed(&self) -> Option<u64> {
        let level = match self.kind {
            TileKind::Hashes { level } => u32::from(level),
            TileKind::Entries => 0,
        };
        self.range().end.checked_mul(WIDTH.checked_pow(level)?)
    }
}

impl LogState {
    pub(crate) fn tile(&self, name: &TileName) -> Result<Vec<u8>, NoTile> {
        let covered = self.covered.load(Ordering::Acquire);
        if covered == 0 {
            return Err(NoTile::CatchingUp);
        }
        let needed = name.needed().filter(|needed| *needed <= covered).ok_or(NoTile::NotCovered)?;
        match name.kind {
            TileKind::Hashes { level } => {
                let tree = self.tree();
                let hashes = tree.tile_hashes(usize::from(level), name.range());
                let hashes = hashes.ok_or(NoTile::CatchingUp)?;
                Ok(hashes.iter().flat_map(|hash| hash.as_bytes()).copied().collect())
            }
            TileKind::Entries => {
                if self.tree().len() < needed {
                    return Err(NoTile::CatchingUp);
                }
                self.entries(name.range())
            }
        }
    }

    fn entries(&self, range: Range<u64>) -> Result<Vec<u8>, NoTile> {
        let leaves = self.leaves.get().ok_or(NoTile::CatchingUp)?.read(range).map_err(NoTile::Unreadable)?;
        Ok(write_bundle(&leaves.iter().map(CachedLeaf::leaf).collect::<Vec<_>>()))
    }
}

/// A number without leading zeros or a sign.
fn parse_plain<T: std::str::FromStr + ToString>(text: &str) -> Option<T> {
    text.parse().ok().filter(|number: &T| number.to_string() == text)
}

fn parse_three(text: &str) -> Option<&str> {
    (text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}
