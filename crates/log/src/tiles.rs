//! Tiles and bundles of entries (c2sp.org/tlog-tiles), as far as the newest checkpoint covers them.

use std::{ops::Range, sync::atomic::Ordering};

use countersign_core::log::{
    leaf::write_bundle,
    tile::{TileKind, TileName},
};
use thiserror::Error;

use crate::{cache::CachedLeaf, error::LogError, state::LogState};

#[derive(Debug, Clone, Error)]
pub enum NoTile {
    #[error("the newest checkpoint of the log does not cover this tile")]
    NotCovered,
    #[error("the log is catching up with the repository")]
    CatchingUp,
    #[error(transparent)]
    Unreadable(LogError),
}

impl LogState {
    pub(crate) fn tile(&self, name: &TileName) -> Result<Vec<u8>, NoTile> {
        let covered = self.covered.load(Ordering::Acquire);
        if covered == 0 {
            return Err(NoTile::CatchingUp);
        }
        let needed = name.needed().filter(|needed| *needed <= covered).ok_or(NoTile::NotCovered)?;
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
                self.entries(name.range())
            }
        }
    }

    fn entries(&self, range: Range<u64>) -> Result<Vec<u8>, NoTile> {
        let leaves = self.leaves.get().ok_or(NoTile::CatchingUp)?.read(range).map_err(NoTile::Unreadable)?;
        Ok(write_bundle(&leaves.iter().map(CachedLeaf::leaf).collect::<Vec<_>>()))
    }
}
