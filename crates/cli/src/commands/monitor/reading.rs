//! New commits of a log: their leaves must give the root of the checkpoint, the journal must be what the leaves say,
//! and the state that the journal gives must be the one that they have.

use countersign_core::documents::{history::Agreement, layout, layout::Signable};
use countersign_core::documents::{signers::SignersFile, statement::Veto};
use countersign_core::log::record::{Leaf, digest_changes, parse_bundle};
use countersign_core::log::tile::{TILE_WIDTH, TileKind, TileName};
use countersign_core::log::{note::Note, tree::BadProof, tree::TreeHead};
use countersign_core::rules::snapshot::Change;
use countersign_core::values::{
    digest::Sha512, json::ParseError, key::PublicKey, path::RepoPath, shown::quoted, time::Timestamp, wire,
};
use countersign_store::{ObjectId, journal::JournalEntry};
use serde::Serialize;

use crate::client::{ServerClient, log::Commits, log::NoCommit};
use crate::commands::monitor::{replay::StateReplay, state::MonitorState};
use crate::evidence::log_memory::{LogTiles, NotContinued, missing_tile};
use crate::words::error::CliError;

/// The most bytes of a bundle of entries. A leaf has some 330 bytes.
const ENTRIES_BYTES: usize = 256 << 10;

/// What is looked for in the commits, and what was found.
pub(super) struct Watching {
    /// The projects, and how far the commits were read.
    pub(super) state: MonitorState,
    /// A project whose signers list this key is watched from then on.
    pub(super) key: Option<PublicKey>,
    pub(super) changes: Vec<WatchedChange>,
}

/// The commits between two states of a log.
pub(super) struct LogPart<'a> {
    pub(super) client: &'a ServerClient,
    /// The checkpoint at its end.
    pub(super) note: &'a Note,
    /// The tree that was replayed last.
    pub(super) from: TreeHead,
    pub(super) to: TreeHead,
    /// How many commits of the log were told before.
    pub(super) told: u64,
}

#[derive(Serialize)]
pub(super) struct WatchedChange {
    #[serde(flatten)]
    kind: ChangeKind,
    #[serde(rename = "project_id")]
    project: RepoPath,
    /// The path of the signers file or the index.
    path: RepoPath,
    commit: String,
    time: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum ChangeKind {
    Signers {
        #[serde(rename = "signers_digest")]
        digest: Sha512,
        lists_key: Option<bool>,
    },
    /// New signers have all consent, and wait.
    Agreed {
        due: Timestamp,
    },
    /// One master's signature on a veto.
    Veto {
        reason: String,
    },
    Vetoed {
        reason: String,
    },
    Complete,
    Revoked,
}

/// The first leaf whose state is not the one that its commit gives. The replay stands before it.
#[derive(Debug)]
pub(super) struct FoundLie {
    pub(super) index: u64,
    pub(super) leaf: Leaf,
    pub(super) change: Change,
}

impl LogPart<'_> {
    /// Reads all commits. The replay is at `to` afterwards, or before the lie that is returned.
    pub(super) async fn read(
        &self,
        watching: &mut Watching,
        replay: &mut StateReplay,
    ) -> Result<Option<FoundLie>, NotContinued> {
        let mut tree = LogTiles::of(self.client, self.to.size).open(&self.from).await?;
        let after = Some(&watching.state.commit).filter(|id| !id.is_empty());
        let after = after.map(|id| ObjectId::from_hex(id.as_bytes())).transpose();
        let after = after.map_err(|_| untrue_journal(self.client, "no commit is known"))?;
        let mut commits = Commits::after(self.client, after);
        while tree.size() < self.to.size {
            for leaf in read_leaves(self.client, tree.size(), self.to.size).await? {
                let index = tree.size();
                tree.push_leaf(leaf.hash());
                let entry = next_commit(&mut commits).await?;
                self.compare(&leaf, &entry)?;
                let is_right = replay.advance(&entry.change, leaf.state).map_err(|error| {
                    let why = format!("no state follows from the commit {}", leaf.commit);
                    untrue_journal(self.client, &why).because(error)
                })?;
                if !is_right {
                    return Ok(Some(FoundLie { index, leaf, change: entry.change }));
                }
                if index >= self.told {
                    watching.find(&entry);
                }
                watching.state.commit = leaf.commit;
            }
        }
        if tree.root() != self.to.root {
            return Err(NotContinued::Contradiction(BadProof));
        }
        Ok(None)
    }

    /// A commit of the journal must be the one in the log.
    fn compare(&self, leaf: &Leaf, entry: &JournalEntry) -> Result<(), CliError> {
        let id = entry.id.to_string();
        let why = if id != leaf.commit {
            format!("its journal shows {id} where the log has {}", leaf.commit)
        } else if digest_changes(&entry.change) != leaf.changes {
            format!("its journal shows other files in the commit {id}")
        } else {
            return Ok(());
        };
        Err(untrue_journal(self.client, &why))
    }
}

/// The leaves of a log of this size from `from` on, to the end of a tile.
pub(super) async fn read_leaves(client: &ServerClient, from: u64, size: u64) -> Result<Vec<Leaf>, CliError> {
    let number = from / TILE_WIDTH;
    let name = TileName::new(TileKind::Entries, number, size).to_string();
    let bytes = client.log_tile(&name, ENTRIES_BYTES).await?;
    let bytes = bytes.ok_or_else(|| missing_tile(client, &name))?;
    let bundle = parse_bundle(&bytes).map_err(|_| {
        client.unusable_content(&format!("the tile {name}"), ParseError::new("", "it has no leaves"))
    })?;
    let skipped = usize::try_from(from - number * TILE_WIDTH).unwrap_or(usize::MAX);
    if bundle.len() as u64 != size.min((number + 1) * TILE_WIDTH) - number * TILE_WIDTH {
        return Err(missing_tile(client, &name));
    }
    Ok(bundle.into_iter().skip(skipped).collect())
}

impl Watching {
    fn find(&mut self, entry: &JournalEntry) {
        let MonitorState { projects, transparency, .. } = &mut self.state;
        let mut found = Vec::new();
        for (path, content) in &entry.change.files {
            let Some(content) = content else { continue };
            let Some(project) = layout::project_of_active_signers(path) else {
                found.extend(find_change(path, content));
                continue;
            };
            let signers = SignersFile::parse(content).ok();
            let lists =
                |key: PublicKey| signers.as_ref().is_some_and(|signers| signers.keys().contains(&key));
            let lists_key = self.key.map(lists);
            if lists_key == Some(true) {
                projects.insert(project.clone());
            }
            if projects.contains(&project) {
                transparency.remove(&project);
                let demand = signers.as_ref().and_then(SignersFile::transparency).cloned();
                transparency.extend(demand.map(|demand| (project, demand)));
            }
            found.push((ChangeKind::Signers { digest: Sha512::of(content), lists_key }, path.clone()));
        }
        let (commit, time) = (entry.id.to_string(), entry.time);
        self.changes.extend(found.into_iter().filter_map(|(kind, path)| {
            let project = path.self_and_ancestors().find(|dir| projects.contains(dir))?;
            Some(WatchedChange { kind, project, path, commit: commit.clone(), time })
        }));
    }
}

/// What a file says that a commit writes, if it is no signers file in force; and about which index or pending signers
/// file.
fn find_change(path: &RepoPath, content: &[u8]) -> Option<(ChangeKind, RepoPath)> {
    let reason = || Veto::parse(content).ok().map(|veto| veto.veto);
    if path.file_name() == wire::VETO_FILE {
        let vetoed = path.parent()?.parent().filter(|dir| dir.file_name() == wire::VETOED_DIR)?;
        return Some((ChangeKind::Vetoed { reason: reason()? }, layout::pending_signers(&vetoed.parent()?)));
    }
    let file = layout::signable_behind(path)?;
    let kind = match layout::signable(&file)? {
        Signable::Index if *path == layout::signatures_of(&file) => ChangeKind::Complete,
        Signable::Index if *path == layout::revocation_of(&file) => ChangeKind::Revoked,
        Signable::PendingSigners { .. } if *path == layout::agreement_of(&file) => {
            ChangeKind::Agreed { due: Agreement::parse(content).ok()?.due_at }
        }
        Signable::PendingSigners { .. } if *path == layout::pending_veto_of(&file) => {
            ChangeKind::Veto { reason: reason()? }
        }
        Signable::Index | Signable::PendingSigners { .. } => return None,
    };
    Some((kind, file))
}

impl WatchedChange {
    pub(super) fn text(&self) -> String {
        let Self { project, path, time, commit, .. } = self;
        let what = match &self.kind {
            ChangeKind::Signers { digest, lists_key } => {
                let without = if *lists_key == Some(false) { ", WITHOUT your key" } else { "" };
                format!("new signers of {project}{without}: {}", digest.to_prefixed())
            }
            ChangeKind::Agreed { due } => format!(
                "NEW SIGNERS of {project} are agreed to, and take effect at {due} unless the masters veto them: \
                 `countersign status {project}`"
            ),
            ChangeKind::Veto { reason } => {
                format!("a veto of the new signers of {project} was begun: {}", quoted(reason))
            }
            ChangeKind::Vetoed { reason } => {
                format!("the new signers of {project} were vetoed: {}", quoted(reason))
            }
            ChangeKind::Complete => format!("release completed: {path}"),
            ChangeKind::Revoked => format!("release revoked: {path}"),
        };
        format!("{time}  {what}  (commit {commit})")
    }
}

/// The next commit of the journal, which the log says to have.
pub(super) async fn next_commit(commits: &mut Commits<'_>) -> Result<JournalEntry, CliError> {
    let client = commits.client;
    let error = loop {
        match commits.next().await {
            Ok(Some(entry)) => return Ok(entry),
            // A node that is behind its log has more in a while.
            Ok(None) => match commits.pause("it ends".to_owned()).await {
                Ok(()) => {}
                Err(error) => break error,
            },
            Err(error) => break error,
        }
    };
    Err(match error {
        NoCommit::Broken(_) => CliError::unreachable(
            format!("the journal of {} breaks off", client.address()),
            "run it again: it continues where it stopped",
        ),
        NoCommit::Rewritten => untrue_journal(client, "its journal does not have the last commit"),
        NoCommit::Unreadable(error) => untrue_journal(client, "its journal is none").because(error),
        NoCommit::Unasked(error) => error,
    })
}

pub(super) fn untrue_journal(client: &ServerClient, why: &str) -> CliError {
    CliError::unverified(
        format!("the server {} shows other commits than its log: {why}", client.address()),
        "it lies or is broken: compare with a mirror or another client, and tell its operator",
    )
}
