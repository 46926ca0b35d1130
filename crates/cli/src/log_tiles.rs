//! Hashes of a log from its tiles (c2sp.org/tlog-tiles), and whether one tree continues another by them.

use std::collections::BTreeMap;

use countersign_core::log::range::{CompactTree, Subtree, fold_subtrees, subtrees, verify_continuation};
use countersign_core::log::tile::{TILE_HEIGHT, TILE_WIDTH, TileKind, TileName};
use countersign_core::log::tree::{BadProof, Hash, TreeHead, inclusion_siblings, node_hash};

use crate::{client::ServerClient, error::CliError};

const HASH_BYTES: usize = 32;
const TILE_BYTES: usize = HASH_BYTES << TILE_HEIGHT;

/// Why a log is not shown to continue another state of it.
#[derive(Debug)]
pub(crate) enum NotContinued {
    /// The log's own tiles say otherwise.
    Contradiction(BadProof),
    /// Nothing can be said.
    Unknown(CliError),
}

/// The tiles of a log of a certain size, read as they are needed.
#[derive(Debug)]
pub(crate) struct LogTiles<'a> {
    client: &'a ServerClient,
    size: u64,
    read: BTreeMap<(u8, u64), Vec<Hash>>,
}

impl<'a> LogTiles<'a> {
    pub(crate) fn of(client: &'a ServerClient, size: u64) -> Self {
        Self { client, size, read: BTreeMap::new() }
    }

    /// The tree at `head`, whose hashes must give its root.
    pub(crate) async fn open(&mut self, head: &TreeHead) -> Result<CompactTree, NotContinued> {
        let hashes = self.hashes(&subtrees(0..head.size)).await.map_err(NotContinued::Unknown)?;
        CompactTree::open(head, &hashes).map_err(NotContinued::Contradiction)
    }

    /// The proof that the leaf `index` is in the log, by what the tiles show.
    pub(crate) async fn inclusion(&mut self, index: u64) -> Result<Vec<Hash>, CliError> {
        let mut proof = Vec::new();
        for leaves in inclusion_siblings(index, self.size) {
            proof.push(fold_subtrees(&self.hashes(&subtrees(leaves)).await?));
        }
        Ok(proof)
    }

    async fn hashes(&mut self, parts: &[Subtree]) -> Result<Vec<Hash>, CliError> {
        let mut hashes = Vec::new();
        for part in parts {
            hashes.push(self.hash(*part).await?);
        }
        Ok(hashes)
    }

    /// The hash of a subtree. Inside a tile lie eight levels of the tree; the hashes of the lowest give the others.
    async fn hash(&mut self, part: Subtree) -> Result<Hash, CliError> {
        let (level, rest) = (level_of(part.height), part.height % TILE_HEIGHT);
        let (begin, count) = (part.index << rest, 1_u64 << rest);
        let number = begin / TILE_WIDTH;
        let tile = self.tile(level, number).await?;
        let (begin, count) = (index_in_tile(begin), usize::try_from(count).unwrap_or(usize::MAX));
        let mut hashes = tile.get(begin..begin + count).unwrap_or_default().to_vec();
        while hashes.len() > 1 {
            hashes = hashes.chunks_exact(2).map(|pair| node_hash(&pair[0], &pair[1])).collect();
        }
        hashes.first().copied().ok_or_else(|| self.missing(level, number))
    }

    async fn tile(&mut self, level: u8, number: u64) -> Result<Vec<Hash>, CliError> {
        if let Some(known) = self.read.get(&(level, number)) {
            return Ok(known.clone());
        }
        let bytes = self.client.log_tile(&self.name(level, number), TILE_BYTES).await?;
        let hash = |bytes: &[u8]| bytes.try_into().ok().map(Hash::from_bytes);
        let hashes: Option<Vec<Hash>> = bytes.and_then(|bytes| bytes.chunks(HASH_BYTES).map(hash).collect());
        let hashes = hashes.ok_or_else(|| self.missing(level, number))?;
        self.read.insert((level, number), hashes.clone());
        Ok(hashes)
    }

    fn name(&self, level: u8, number: u64) -> String {
        let there = self.size.checked_shr(TILE_HEIGHT * u32::from(level)).unwrap_or(0);
        TileName::new(TileKind::Hashes { level }, number, there).to_string()
    }

    fn missing(&self, level: u8, number: u64) -> CliError {
        missing_tile(self.client, &self.name(level, number))
    }
}

pub(crate) fn missing_tile(client: &ServerClient, name: &str) -> CliError {
    CliError::unverified(
        format!("the log of {} does not show its tile {name}", client.address()),
        "without it nothing proves that the log continues what this computer has seen. Run it again in a minute, and ask \
         the server's operator if that does not help",
    )
}

/// Asks the log's tiles whether the tree `to` begins with the tree `from`.
pub(crate) async fn check_continuation(
    client: &ServerClient,
    from: &TreeHead,
    to: &TreeHead,
) -> Result<(), NotContinued> {
    let mut tiles = LogTiles::of(client, to.size);
    let unknown = NotContinued::Unknown;
    let old = tiles.hashes(&subtrees(0..from.size)).await.map_err(unknown)?;
    let more = tiles.hashes(&subtrees(from.size..to.size)).await.map_err(unknown)?;
    verify_continuation(from, to, &old, &more).map_err(NotContinued::Contradiction)
}

fn index_in_tile(index: u64) -> usize {
    usize::try_from(index % TILE_WIDTH).expect("below 256")
}

fn level_of(height: u32) -> u8 {
    u8::try_from(height / TILE_HEIGHT).expect("a tree is lower than 64")
}
