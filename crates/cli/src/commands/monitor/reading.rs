//! New commits of a log: their leaves must give the root of the checkpoint, and the journal must be what the leaves say.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use countersign_core::{
    documents::{agreement::Agreement, layout, signers::SignersFile, transparency::Transparency, veto::Veto},
    log::{
        leaf::{Leaf, digest_changes, parse_bundle},
        tile::{TILE_WIDTH, TileKind, TileName},
        tree::{BadProof, TreeHead},
    },
    proof::log_pin::LogPin,
    values::{
        digest::Sha512, json::ParseError, key::PublicKey, path::RepoPath, shown::quoted, time::Timestamp,
        wire,
    },
};
use countersign_store::{
    ObjectId,
    journal::{entry::JournalEntry, read::JournalReader},
};
use serde_json::{Value, json};

use crate::{
    client::ServerClient,
    error::CliError,
    log_memory::LogSighting,
    log_tiles::{LogTiles, NotContinued, missing_tile},
};

/// Of a bundle of entries. A leaf has some 330 bytes.
const ENTRIES_BYTES: usize = 256 << 10;
/// A server that sends nothing for so long has gone.
const SILENCE: Duration = Duration::from_secs(60);

/// What is looked for in the commits.
pub(super) struct Watching {
    pub(super) projects: BTreeSet<RepoPath>,
    /// A project whose signers list this key is watched from then on.
    pub(super) key: Option<PublicKey>,
    /// What the signers files of these projects demand of logs.
    pub(super) transparency: BTreeMap<RepoPath, Transparency>,
}

/// The commits between two states of a log.
pub(super) struct LogPart<'a> {
    pub(super) client: &'a ServerClient,
    pub(super) from: TreeHead,
    pub(super) to: TreeHead,
    /// The last commit that is known.
    pub(super) after: String,
}

pub(super) struct ReadPart {
    pub(super) changes: Vec<WatchedChange>,
    pub(super) projects: BTreeSet<RepoPath>,
    pub(super) transparency: BTreeMap<RepoPath, Transparency>,
    pub(super) newest: String,
}

pub(super) struct WatchedChange {
    kind: ChangeKind,
    project: RepoPath,
    /// Of the signers file or the index.
    path: RepoPath,
    commit: ObjectId,
    time: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ChangeKind {
    Signers {
        digest: Sha512,
        lists_key: Option<bool>,
    },
    /// New signers have all consent, and wait.
    Agreed {
        due: Timestamp,
    },
    /// One master's signature on a veto, or the veto.
    Veto {
        reason: String,
        is_vetoed: bool,
    },
    Complete,
    Revoked,
}

pub(super) enum LogReadError {
    Contradiction(BadProof),
    Other(CliError),
}

impl From<CliError> for LogReadError {
    fn from(error: CliError) -> Self {
        Self::Other(error)
    }
}

impl From<NotContinued> for LogReadError {
    fn from(error: NotContinued) -> Self {
        match error {
            NotContinued::Contradiction(proof) => Self::Contradiction(proof),
            NotContinued::Unknown(error) => Self::Other(error),
        }
    }
}

impl LogReadError {
    pub(super) fn into_cli(self, sighting: &LogSighting<'_>, pin: &LogPin) -> CliError {
        match self {
            Self::Contradiction(BadProof) => {
                sighting.forked(pin, "by its own tiles, the log does not continue what was seen of it")
            }
            Self::Other(error) => error,
        }
    }
}

impl LogPart<'_> {
    pub(super) async fn read(self, mut watching: Watching) -> Result<ReadPart, LogReadError> {
        let mut tree = LogTiles::of(self.client, self.to.size).open(&self.from).await?;
        let leaves = read_leaves(self.client, self.from.size, self.to.size).await?;
        leaves.iter().for_each(|leaf| tree.push_leaf(leaf.hash()));
        if tree.root() != self.to.root {
            return Err(LogReadError::Contradiction(BadProof));
        }
        let changes = self.read_commits(&leaves, &mut watching).await?;
        let newest = leaves.last().map_or(self.after, |leaf| leaf.commit.clone());
        let Watching { projects, transparency, .. } = watching;
        Ok(ReadPart { changes, projects, transparency, newest })
    }

    /// The journal, of which each commit must be the one in the log.
    async fn read_commits(
        &self,
        leaves: &[Leaf],
        watching: &mut Watching,
    ) -> Result<Vec<WatchedChange>, CliError> {
        let after =
            ObjectId::from_hex(self.after.as_bytes()).map_err(|_| self.untrue("no commit is known"))?;
        let stream = self.client.journal(Some(after)).await?;
        let mut response =
            stream.ok_or_else(|| self.untrue("its journal does not have the last commit"))?.response;
        let (mut reader, mut changes, mut awaited) = (JournalReader::default(), Vec::new(), leaves.iter());
        let mut next = awaited.next();
        while next.is_some() {
            let chunk = tokio::time::timeout(SILENCE, response.chunk()).await;
            let Ok(Ok(Some(bytes))) = chunk else {
                return Err(CliError::unreachable(
                    format!("the journal of {} breaks off", self.client.address()),
                    "run it again: it continues where it stopped",
                ));
            };
            reader.push(&bytes);
            while let Some(leaf) = next
                && let Some(entry) =
                    reader.next().map_err(|error| self.untrue("its journal is none").because(error))?
            {
                let id = entry.id.to_string();
                if id != leaf.commit {
                    let why = format!("its journal shows {id} where the log has {}", leaf.commit);
                    return Err(self.untrue(&why));
                }
                if digest_changes(&entry.change) != leaf.changes {
                    return Err(self.untrue(&format!("its journal shows other files in the commit {id}")));
                }
                changes.extend(watching.find(&entry));
                next = awaited.next();
            }
        }
        Ok(changes)
    }

    fn untrue(&self, why: &str) -> CliError {
        CliError::unverified(
            format!("the server {} shows other commits than its log: {why}", self.client.address()),
            "it lies or is broken: compare with a mirror or another client, and tell its operator",
        )
    }
}

/// The commit of the last leaf of a log of this size.
pub(super) async fn commit_at(client: &ServerClient, size: u64) -> Result<String, CliError> {
    let begin = size.saturating_sub(1);
    let leaves = read_leaves(client, begin, size).await?;
    let leaf = leaves.last();
    leaf.map(|leaf| leaf.commit.clone()).ok_or_else(|| missing_tile(client, "entries/000"))
}

async fn read_leaves(client: &ServerClient, from: u64, to: u64) -> Result<Vec<Leaf>, CliError> {
    let mut leaves = Vec::new();
    let mut begin = from;
    while begin < to {
        let number = begin / TILE_WIDTH;
        let name = TileName::new(TileKind::Entries, number, to).to_string();
        let bytes = client.log_tile(&name, ENTRIES_BYTES).await?;
        let bytes = bytes.ok_or_else(|| missing_tile(client, &name))?;
        let bundle = parse_bundle(&bytes).map_err(|_| {
            client.unusable_content(&format!("the tile {name}"), ParseError::new("", "it has no leaves"))
        })?;
        let skipped = usize::try_from(begin - number * TILE_WIDTH).unwrap_or(usize::MAX);
        let end = to.min((number + 1) * TILE_WIDTH);
        if bundle.len() as u64 != end - number * TILE_WIDTH {
            return Err(missing_tile(client, &name));
        }
        leaves.extend(bundle.into_iter().skip(skipped));
        begin = end;
    }
    Ok(leaves)
}

impl Watching {
    fn find(&mut self, entry: &JournalEntry) -> Vec<WatchedChange> {
        let mut found = Vec::new();
        for (path, content) in &entry.change.files {
            let Some(content) = content else { continue };
            if let Some(project) = layout::project_of_active_signers(path) {
                let signers = SignersFile::parse(content).ok();
                let lists =
                    |key: PublicKey| signers.as_ref().is_some_and(|signers| signers.keys().contains(&key));
                let lists_key = self.key.map(lists);
                if lists_key == Some(true) {
                    self.projects.insert(project.clone());
                }
                if self.projects.contains(&project) {
                    self.transparency.remove(&project);
                    let demand = signers.as_ref().and_then(SignersFile::transparency).cloned();
                    self.transparency.extend(demand.map(|demand| (project.clone(), demand)));
                }
                let kind = ChangeKind::Signers { digest: Sha512::of(content), lists_key };
                found.push((kind, project, path.clone()));
                continue;
            }
            if let Some((kind, project)) = find_waiting(path, content) {
                found.push((kind, project.clone(), layout::pending_signers(&project)));
                continue;
            }
            let Some(index) = path.parent().map(|dir| layout::index_in(&dir)) else { continue };
            let project = index.self_and_ancestors().find(|dir| self.projects.contains(dir));
            let Some(project) = project else { continue };
            if *path == layout::signatures_of(&index) {
                found.push((ChangeKind::Complete, project, index));
            } else if *path == layout::revocation_of(&index) {
                found.push((ChangeKind::Revoked, project, index));
            }
        }
        found.retain(|(_, project, _)| self.projects.contains(project));
        let (commit, time) = (entry.id, entry.time);
        found
            .into_iter()
            .map(|(kind, project, path)| WatchedChange { kind, project, path, commit, time })
            .collect()
    }
}

/// Of signers that wait, or are vetoed.
fn find_waiting(path: &RepoPath, content: &[u8]) -> Option<(ChangeKind, RepoPath)> {
    let dir = path.parent()?;
    if dir.file_name() == wire::PENDING_DIR {
        let project = dir.parent()?;
        let pending = layout::pending_signers(&project);
        if *path == layout::agreement_of(&pending) {
            return Some((ChangeKind::Agreed { due: Agreement::parse(content).ok()?.due_at }, project));
        }
        let is_begun = *path == layout::pending_veto_of(&pending);
        let reason = Veto::parse(content).ok().filter(|_| is_begun)?.veto;
        return Some((ChangeKind::Veto { reason, is_vetoed: false }, project));
    }
    let project = dir.parent().filter(|dir| dir.file_name() == wire::VETOED_DIR)?.parent()?;
    let reason = Veto::parse(content).ok().filter(|_| path.file_name() == wire::VETO_FILE)?.veto;
    Some((ChangeKind::Veto { reason, is_vetoed: true }, project))
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
            ChangeKind::Veto { reason, is_vetoed: false } => {
                format!("a veto of the new signers of {project} was begun: {}", quoted(reason))
            }
            ChangeKind::Veto { reason, is_vetoed: true } => {
                format!("the new signers of {project} were vetoed: {}", quoted(reason))
            }
            ChangeKind::Complete => format!("release completed: {path}"),
            ChangeKind::Revoked => format!("release revoked: {path}"),
        };
        format!("{time}  {what}  (commit {commit})")
    }

    pub(super) fn json(&self) -> Value {
        let mut value = json!({
            "project_id": self.project.as_str(),
            "path": self.path.as_str(),
            "commit": self.commit.to_string(),
            "time": self.time.to_string(),
        });
        match &self.kind {
            ChangeKind::Signers { digest, lists_key } => {
                value["kind"] = json!("signers");
                value["signers_digest"] = json!(digest.to_prefixed());
                value["lists_key"] = json!(lists_key);
            }
            ChangeKind::Agreed { due } => {
                value["kind"] = json!("agreed");
                value["due"] = json!(due.to_string());
            }
            ChangeKind::Veto { reason, is_vetoed } => {
                value["kind"] = json!(if *is_vetoed { "vetoed" } else { "veto" });
                value["reason"] = json!(reason);
            }
            ChangeKind::Complete => value["kind"] = json!("complete"),
            ChangeKind::Revoked => value["kind"] = json!("revoked"),
        }
        value
    }
}
