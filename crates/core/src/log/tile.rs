//! Tiles and bundles of entries (c2sp.org/tlog-tiles): how many hashes they have, and what they are called.

use std::{fmt, ops::Range};

use crate::log::note::parse_plain;

/// Each hash of a tile stands for a whole tile of the level below.
pub const TILE_HEIGHT: u32 = 8;
/// Hashes or entries in a full tile.
pub const TILE_WIDTH: u64 = 1 << TILE_HEIGHT;
const MAX_LEVEL: u8 = 63;
const ENTRIES: &str = "entries";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TileKind {
    Hashes { level: u8 },
    Entries,
}

/// The name of a tile, such as `0/x001/067.p/8`, or of a bundle, such as `entries/000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileName {
    kind: TileKind,
    /// The place of the tile in its level.
    number: u64,
    width: u64,
}

impl TileName {
    /// The tile with this number, as far as it is filled by a level that has `there` hashes or entries.
    pub fn new(kind: TileKind, number: u64, there: u64) -> Self {
        let filled = there.saturating_sub(number.saturating_mul(TILE_WIDTH));
        let width = if (1..TILE_WIDTH).contains(&filled) { filled } else { TILE_WIDTH };
        Self { kind, number, width }
    }

    /// Parses a name in exactly the spelling of the specification.
    pub fn parse(name: &str) -> Option<Self> {
        let (kind, rest) = name.split_once('/')?;
        let kind = match kind {
            ENTRIES => TileKind::Entries,
            level => TileKind::Hashes { level: parse_plain(level).filter(|level| *level <= MAX_LEVEL)? },
        };
        let (number, width) = match rest.split_once(".p/") {
            Some((number, width)) => {
                (number, u64::from(parse_plain::<u8>(width).filter(|width| *width > 0)?))
            }
            None => (rest, TILE_WIDTH),
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

    pub fn kind(&self) -> TileKind {
        self.kind
    }

    /// Which hashes of its level, or which entries, it has.
    pub fn range(&self) -> Range<u64> {
        let begin = self.number.saturating_mul(TILE_WIDTH);
        begin..begin.saturating_add(self.width)
    }

    /// How many leaves there must be for this tile.
    pub fn needed(&self) -> Option<u64> {
        let level = match self.kind {
            TileKind::Hashes { level } => u32::from(level),
            TileKind::Entries => 0,
        };
        self.range().end.checked_mul(TILE_WIDTH.checked_pow(level)?)
    }
}

impl fmt::Display for TileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TileKind::Hashes { level } => write!(f, "{level}/")?,
            TileKind::Entries => write!(f, "{ENTRIES}/")?,
        }
        let mut thousands = 1_000_u64;
        while self.number / thousands >= 1_000 {
            thousands *= 1_000;
        }
        while self.number >= 1_000 && thousands >= 1_000 {
            write!(f, "x{:03}/", self.number / thousands % 1_000)?;
            thousands /= 1_000;
        }
        write!(f, "{:03}", self.number % 1_000)?;
        if self.width < TILE_WIDTH { write!(f, ".p/{}", self.width) } else { Ok(()) }
    }
}

fn parse_three(text: &str) -> Option<&str> {
    (text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}
