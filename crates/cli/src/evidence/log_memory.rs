//! Holds a log to what it has shown before (D98), with hashes from its tiles. If it contradicts itself, both
//! checkpoints are kept as evidence.

use std::{collections::BTreeMap, path::PathBuf};

use countersign_api::state::LogConsistency;
use countersign_core::log::tile::{TILE_HEIGHT, TILE_WIDTH, TileKind, TileName};
use countersign_core::log::tree::{
    BadProof, CompactTree, Hash, Subtree, TreeHead, fold_subtrees, inclusion_siblings, node_hash, subtrees,
    verify_consistency, verify_continuation,
};
use countersign_core::log::{checkpoint::SignedCheckpoint, note::Note};
use countersign_core::proof::log_pin::{Continuation, LogPin, LogPinFault};
use countersign_core::proof::trust::{OtherLog, TrustStore};
use countersign_core::values::{path::RepoPath, verifier_key::VerifierKey};
use countersign_explain::words::shown_verifier_key;
use serde_json::json;

use crate::settings::{config_dir::ConfigDir, config_dir::write_new, trust::TrustFile};
use crate::words::{
    error::CliError, error::SEEN_CHECKPOINT, error::shown_path, output::Output, output::quote,
};
use crate::{client::ServerClient, client::now, evidence::proof::behind};

/// How often other processes can see more of a log while this one compares.
const MAX_COMPARISONS: usize = 8;

/// A checkpoint that a log has signed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogSighting<'a> {
    pub(crate) key: &'a VerifierKey,
    pub(crate) note: &'a Note,
    /// Known witnesses, whose cosignatures verify.
    pub(crate) witnesses: &'a [VerifierKey],
    /// Whether enough of the witnesses prove the checkpoint's time.
    pub(crate) is_timed: bool,
    /// What the server says to prove that it is the log that was seen.
    pub(crate) consistency: Option<&'a LogConsistency>,
}

/// The project whose state a log shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedProject<'a> {
    pub(crate) project: &'a RepoPath,
    /// Whether a policy names the log, and so decides which log counts.
    pub(crate) has_policy: bool,
}

impl LogSighting<'_> {
    /// Checks that the log continues what was seen of it, and remembers what it shows. Without a client, checks only
    /// what needs no tiles.
    ///
    /// Tiles are asked for while the store is not locked. What another process has seen of the log meanwhile is
    /// compared as well, before anything is written (D207).
    pub(crate) async fn check(
        &self,
        trust: &TrustFile,
        client: Option<&ServerClient>,
        subject: LoggedProject<'_>,
        output: Output,
    ) -> Result<(), CliError> {
        for _ in 0..MAX_COMPARISONS {
            let store = trust.read()?;
            self.check_log(&store, subject)?;
            let seen = store.log_pin(self.key);
            if let Some(pin) = seen
                && !self.check_against(pin, client).await?
            {
                return Ok(());
            }
            match self.remember(trust, subject, seen) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // The continuity is proven, and the file cannot be written.
                Err(error) => {
                    output.note(&format!("note: the checkpoint of the log is not remembered: {error}"));
                    return Ok(());
                }
            }
        }
        Err(CliError::other(
            "other countersign processes change what is known of the log all the time",
            "run it again when they are done",
        ))
    }

    /// A log that no policy names must be the one that this computer knows.
    fn check_log(&self, store: &TrustStore, subject: LoggedProject<'_>) -> Result<(), CliError> {
        let LoggedProject { project, has_policy } = subject;
        if has_policy { Ok(()) } else { store.check_log(project, self.key).map_err(other_log) }
    }

    /// Checks that the log continues what was seen of it. Returns whether that is proven: without a network it can be
    /// unknown.
    pub(crate) async fn check_against(
        &self,
        pin: &LogPin,
        client: Option<&ServerClient>,
    ) -> Result<bool, CliError> {
        let unusable =
            |error| CliError::unverified("a checkpoint cannot be used", "report this").because(error);
        let shown = SignedCheckpoint::open(self.note, std::slice::from_ref(self.key), self.witnesses);
        let shown = shown.map_err(|error| unusable(error.to_string()))?;
        let compared = pin.compare(&shown, self.witnesses, self.is_timed);
        let is_behind = matches!(compared, Ok(Continuation::Shrunk { .. }));
        let (from, to) = match compared {
            Ok(Continuation::Same) => return Ok(true),
            Ok(Continuation::Grown { from, to }) => (from, to),
            Ok(Continuation::Shrunk { shown, seen }) => (shown, seen),
            Err(fault @ (LogPinFault::Fork(_) | LogPinFault::WitnessWentBack { .. })) => {
                return Err(self.forked(pin, &fault.to_string()));
            }
            Err(fault @ LogPinFault::Unusable(_)) => return Err(unusable(fault.to_string())),
            Err(LogPinFault::Smaller { .. }) if client.is_none() => return Ok(false),
            Err(fault @ LogPinFault::Smaller { .. }) => {
                return Err(behind(format!(
                    "the server is behind with the log {}: {fault}",
                    self.key.name()
                )));
            }
        };
        let shown = self.consistency.filter(|proof| proof.from == from.size && proof.to == to.size);
        if shown.is_some_and(|proof| verify_consistency(&from, &to, &proof.hashes).is_ok()) {
            return Ok(true);
        }
        // A proof that does not verify is no evidence of a fork. Tiles are.
        let Some(client) = client else { return Ok(false) };
        match check_continuation(client, &from, &to).await {
            Ok(()) => Ok(true),
            Err(NotContinued::Unknown(_)) if is_behind => Err(behind(format!(
                "the server is behind with the log {}: it shows size {}, and this computer has seen size {}",
                self.key.name(),
                from.size,
                to.size
            ))),
            Err(NotContinued::Unknown(error)) => Err(error),
            Err(NotContinued::Contradiction(BadProof)) => {
                let fault = format!(
                    "by the tiles that are shown, the log of size {} does not begin with the log of size {}. Either it has \
                     forked, or the tiles were changed on the way",
                    to.size, from.size
                );
                Err(self.forked(pin, &fault))
            }
        }
    }

    /// Remembers the log of a project and its checkpoint, if there is something new. Returns whether what is known of
    /// the log is still what was compared.
    fn remember(
        &self,
        trust: &TrustFile,
        subject: LoggedProject<'_>,
        compared: Option<&LogPin>,
    ) -> Result<bool, CliError> {
        let time = now()?;
        trust.change(|store| {
            let is_same = store.log_pin(self.key) == compared && self.check_log(store, subject).is_ok();
            if is_same {
                store.remember_log(subject.project, self.key, self.note, time);
            }
            is_same
        })
    }

    /// The error of a log that contradicts itself, with the evidence in a file.
    pub(crate) fn forked(&self, pin: &LogPin, fault: &str) -> CliError {
        let (seen, shown) = (pin.checkpoint.clone(), self.note.to_string());
        let hint = match write_evidence(self.key, fault, &pin.checkpoint, self.note) {
            Ok(file) => format!(
                "do not use the file. Both checkpoints are in {}: send them to the project, the server's operator and the \
                 witnesses",
                shown_path(&file)
            ),
            Err(error) => format!(
                "do not use the file. Both checkpoints could not be written to a file ({error}): copy them from here, and \
                 send them to the project, the server's operator and the witnesses"
            ),
        };
        CliError::unverified(
            format!(
                "THE LOG {} CONTRADICTS ITSELF: {fault}\nseen before:\n{}\nshown now:\n{}",
                self.key.name(),
                indented(&seen),
                indented(&shown)
            ),
            hint,
        )
        .with_detail(SEEN_CHECKPOINT, json!(seen))
        .with_detail("shown_checkpoint", json!(shown))
    }
}

fn indented(note: &str) -> String {
    note.trim_end().lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Writes the evidence to the configuration directory, under a name that is not taken.
fn write_evidence(key: &VerifierKey, fault: &str, seen: &str, shown: &Note) -> Result<PathBuf, CliError> {
    let time = now()?.to_whole_seconds();
    let text = format!(
        "Evidence of {time}: the log {} contradicts itself.\n{fault}\n\nIts key:\n{key}\n\nSeen before:\n\n{seen}\nShown \
         now:\n\n{shown}",
        key.name(),
    );
    let dir = ConfigDir::locate()?;
    // With the directory, which may not be there yet.
    drop(dir.lock()?);
    let stem = format!("log-fork-{}", time.to_string().replace(':', ""));
    let names = std::iter::once(format!("{stem}.txt")).chain((2..=100).map(|n| format!("{stem}-{n}.txt")));
    let free = names.map(|name| dir.file(&name)).find(|path| !path.exists());
    let path = free.unwrap_or_else(|| dir.file(&stem));
    write_new(&path, text.as_bytes(), 0o600)?;
    Ok(path)
}

/// The error for another log than the one that this computer knows, which no policy names.
pub(crate) fn other_log(error: OtherLog) -> CliError {
    let OtherLog { project, accepted, shown } = &error;
    CliError::unverified(
        format!(
            "THE LOG HAS CHANGED: the state of {project} was shown by the log {}, and is now shown by the log {}",
            shown_verifier_key(accepted),
            shown_verifier_key(shown)
        ),
        format!(
            "someone may want to show you another history. Only if the server's operator says, in a place that you trust, \
             that the log began anew: `countersign trust remove {}`",
            quote(accepted.name())
        ),
    )
    .with_detail("logs", json!([accepted.to_string(), shown.to_string()]))
}

// Hashes of a log from its tiles (c2sp.org/tlog-tiles). They show whether one tree continues another.

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

impl From<CliError> for NotContinued {
    fn from(error: CliError) -> Self {
        Self::Unknown(error)
    }
}

/// The tiles of a log of a certain size, read as they are needed.
#[derive(Debug)]
pub(crate) struct LogTiles<'a> {
    client: &'a ServerClient,
    size: u64,
    read: BTreeMap<String, Vec<Hash>>,
}

impl<'a> LogTiles<'a> {
    pub(crate) fn of(client: &'a ServerClient, size: u64) -> Self {
        Self { client, size, read: BTreeMap::new() }
    }

    /// The tree at `head`, whose hashes must give its root.
    pub(crate) async fn open(&mut self, head: &TreeHead) -> Result<CompactTree, NotContinued> {
        let hashes = self.hashes(&subtrees(0..head.size)).await?;
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
        let level = u8::try_from(part.height / TILE_HEIGHT).expect("a tree is lower than 64");
        let rest = part.height % TILE_HEIGHT;
        let (begin, count) = (part.index << rest, 1_u64 << rest);
        let there = self.size.checked_shr(TILE_HEIGHT * u32::from(level)).unwrap_or(0);
        let name = TileName::new(TileKind::Hashes { level }, begin / TILE_WIDTH, there).to_string();
        let tile = self.tile(&name).await?;
        let (begin, count) = (
            usize::try_from(begin % TILE_WIDTH).expect("below 256"),
            usize::try_from(count).unwrap_or(usize::MAX),
        );
        let mut hashes = tile.get(begin..begin + count).unwrap_or_default().to_vec();
        while hashes.len() > 1 {
            hashes = hashes.chunks_exact(2).map(|pair| node_hash(&pair[0], &pair[1])).collect();
        }
        hashes.first().copied().ok_or_else(|| missing_tile(self.client, &name))
    }

    async fn tile(&mut self, name: &str) -> Result<Vec<Hash>, CliError> {
        if let Some(known) = self.read.get(name) {
            return Ok(known.clone());
        }
        let bytes = self.client.log_tile(name, TILE_BYTES).await?;
        let hash = |bytes: &[u8]| bytes.try_into().ok().map(Hash::from_bytes);
        let hashes: Option<Vec<Hash>> = bytes.and_then(|bytes| bytes.chunks(HASH_BYTES).map(hash).collect());
        let hashes = hashes.ok_or_else(|| missing_tile(self.client, name))?;
        self.read.insert(name.to_owned(), hashes.clone());
        Ok(hashes)
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
    let old = tiles.hashes(&subtrees(0..from.size)).await?;
    let more = tiles.hashes(&subtrees(from.size..to.size)).await?;
    verify_continuation(from, to, &old, &more).map_err(NotContinued::Contradiction)
}
