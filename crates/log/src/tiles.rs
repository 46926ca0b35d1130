//! Tiles and bundles of entries (c2sp.org/tlog-tiles), as far as the newest checkpoint covers them.

use std::{io::Write as _, sync::Arc, sync::atomic::Ordering};

use countersign_core::log::tile::{TILE_WIDTH, TileKind, TileName};
use countersign_core::log::{record::write_bundle, tree::Hash};
use countersign_core::values::bounds::PACKED_BUNDLES_BYTES;
use countersign_store::objects::spot::ByBytes;
use flate2::{Compression, write::GzEncoder};
use quick_cache::sync::Cache;
use thiserror::Error;

use crate::{cache::CachedLeaf, error::LogError, state::LogState};

/// Bytes of a full bundle, compressed. Compressing one takes some 2 milliseconds.
const USUAL_BYTES: usize = 32 << 10;

#[derive(Debug, Clone, Error)]
pub enum NoTile {
    #[error("the newest checkpoint of the log does not cover this tile")]
    NotCovered,
    #[error("the log still catches up with what is stored: try again in a moment")]
    CatchingUp,
    #[error(transparent)]
    Unreadable(LogError),
}

impl LogState {
    pub(crate) fn tile(&self, name: &TileName) -> Result<Vec<u8>, NoTile> {
        let needed = self.find_covered(name)?;
        match name.kind() {
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
                let leaves = self.leaves.read(name.range()).map_err(NoTile::Unreadable)?;
                Ok(write_bundle(&leaves.iter().map(CachedLeaf::leaf).collect::<Vec<_>>()))
            }
        }
    }

    /// How many leaves there must be for this tile, if the newest checkpoint covers so many.
    fn find_covered(&self, name: &TileName) -> Result<u64, NoTile> {
        match self.covered.load(Ordering::Acquire) {
            0 => Err(NoTile::CatchingUp),
            covered => name.needed().filter(|needed| *needed <= covered).ok_or(NoTile::NotCovered),
        }
    }

    /// The hash of all entries of a full bundle; `None` of a partial one.
    fn hash_full(&self, name: &TileName) -> Option<Hash> {
        let range = name.range();
        let number = range.start / TILE_WIDTH;
        let is_full = range.end - range.start == TILE_WIDTH;
        self.tree().tile_hashes(1, number..number + 1).filter(|_| is_full).map(|hashes| hashes[0])
    }

    /// A bundle of entries in gzip.
    pub(crate) fn packed_bundle(&self, packed: &PackedBundles, name: &TileName) -> Result<Arc<[u8]>, NoTile> {
        self.find_covered(name)?;
        packed.find(self.hash_full(name), || self.tile(name))
    }
}

/// Compressed bundles, by the hash of their entries: such a bundle never changes, and is compressed once while it is
/// kept.
#[derive(Debug)]
pub struct PackedBundles(Cache<Hash, Arc<[u8]>, ByBytes>);

impl Default for PackedBundles {
    fn default() -> Self {
        Self(Cache::with_weighter(PACKED_BUNDLES_BYTES / USUAL_BYTES, PACKED_BUNDLES_BYTES as u64, ByBytes))
    }
}

impl PackedBundles {
    /// Compresses what `read` gives. What has a hash is kept; requests for the same wait while it is made.
    pub fn find(
        &self,
        hash: Option<Hash>,
        read: impl FnOnce() -> Result<Vec<u8>, NoTile>,
    ) -> Result<Arc<[u8]>, NoTile> {
        let pack = || Ok(compress(&read()?).into());
        match hash {
            Some(hash) => self.0.get_or_insert_with(&hash, pack),
            None => pack(),
        }
    }

    /// How many bytes are kept.
    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }
}

/// Compresses to the same bytes on every machine: gzip can carry a time and a name, and here has neither.
fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::default());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("memory takes all that is written to it")
}
