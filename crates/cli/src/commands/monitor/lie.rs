//! A log that lies about the state (D214): the evidence is made, kept in a file, and checked by anyone who gets it.
//! Whether enough witnesses have seen the log.

use std::{collections::BTreeMap, path::Path, path::PathBuf, sync::Arc};

use countersign_core::log::checkpoint::{InclusionProof, SignedCheckpoint};
use countersign_core::log::{status::completed_indexes, tree::write_hash};
use countersign_core::proof::freshness::is_too_old;
use countersign_core::proof::state_lie::{LeafBefore, NoLie, ProvenLie, StateLie};
use countersign_core::rules::snapshot::Change;
use countersign_core::values::{
    bounds::STATE_LIE_BYTES, json::ParseError, path::RepoPath, time::Timestamp, verifier_key::VerifierKey,
    wire::routes,
};
use countersign_explain::words::{shown_record, shown_verifier_key};
use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{ServerClient, log::Commits, now};
use crate::commands::monitor::reading::{FoundLie, LogPart, next_commit, read_leaves, untrue_journal};
use crate::commands::monitor::{replay::StateReplay, state::MonitorState};
use crate::evidence::log_memory::{LogSighting, LogTiles};
use crate::settings::config_dir::{ConfigDir, read_bounded, write};
use crate::words::{error::CliError, error::shown_path, output::Output};

impl LogPart<'_> {
    /// The error that names the lie, with the evidence in a file.
    pub(super) async fn accuse(
        &self,
        key: &VerifierKey,
        found: FoundLie,
        replay: &StateReplay,
    ) -> Result<CliError, CliError> {
        let lie = self.gather(key, found, replay).await?;
        let proven = match lie.verify() {
            Ok(proven) => proven,
            // The log has signed no such leaf: then it is the server that shows something else.
            Err(NoLie::NotInTheLog) => {
                return Ok(untrue_journal(self.client, "the entries that it shows are not in the log"));
            }
            Err(error) => {
                let error = format!("the state of the log is not the one that its commits give, but {error}");
                return Ok(untrue_journal(self.client, &error));
            }
        };
        let kept = keep(&lie).map(|file| shown_path(&file));
        let hint = match &kept {
            Ok(file) => format!(
                "believe no proof of this log. The evidence is in {file}: send it to the project, the server's operator and the \
                 witnesses, who check it with `countersign monitor --check FILE`"
            ),
            Err(error) => format!(
                "believe no proof of this log. The evidence could not be written to a file ({error}): make room, and run it \
                 again"
            ),
        };
        let error = CliError::unverified(describe(&lie.log, &proven), hint);
        Ok(error.with_detail("evidence", json!(kept.ok())).with_detail("lie", to_json(&lie.log, &proven)))
    }

    /// The evidence. `replay` is at the state before the lie.
    async fn gather(
        &self,
        key: &VerifierKey,
        found: FoundLie,
        replay: &StateReplay,
    ) -> Result<StateLie, CliError> {
        let FoundLie { index, leaf, change } = found;
        let mut tiles = LogTiles::of(self.client, self.to.size);
        let before = match index.checked_sub(1) {
            None => None,
            Some(index) => {
                let leaf = read_leaves(self.client, index, self.to.size).await?.into_iter().next();
                let leaf = leaf.ok_or_else(|| untrue_journal(self.client, "an entry is missing"))?;
                Some(LeafBefore { leaf, hashes: tiles.inclusion(index).await? })
            }
        };
        let hashes = tiles.inclusion(index).await?;
        let paths = replay.statuses().decisive_paths(&change);
        let mut records = replay.find_records(&paths.iter().map(|(key, _)| *key).collect())?;
        let records = paths.into_iter().filter_map(|(key, path)| Some((records.remove(&key)?, path)));
        Ok(StateLie {
            log: key.clone(),
            proof: InclusionProof { index, hashes, note: self.note.clone() },
            before,
            records: records.collect(),
            indexes: self.read_indexes(index, &change).await?,
            leaf,
            change,
        })
    }

    /// The indexes that the commit completes, as far as earlier commits wrote them: the journal is read once more.
    async fn read_indexes(
        &self,
        number: u64,
        change: &Change,
    ) -> Result<BTreeMap<RepoPath, Arc<[u8]>>, CliError> {
        let is_written = |path: &RepoPath| change.files.get(path).is_some_and(Option::is_some);
        let completed = completed_indexes(change).map(|(index, _)| index);
        let wanted: Vec<RepoPath> = completed.filter(|index| !is_written(index)).collect();
        let mut found = BTreeMap::new();
        if wanted.is_empty() {
            return Ok(found);
        }
        let mut commits = Commits::after(self.client, None);
        for _ in 0..number {
            let entry = next_commit(&mut commits).await?;
            for index in &wanted {
                if let Some(Some(bytes)) = entry.change.files.get(index) {
                    found.insert(index.clone(), Arc::clone(bytes));
                }
            }
        }
        Ok(found)
    }
}

/// Writes the evidence into the configuration directory, one file for each leaf.
fn keep(lie: &StateLie) -> Result<PathBuf, CliError> {
    let dir = ConfigDir::locate()?;
    // With the directory, which may not be there yet.
    drop(dir.lock()?);
    let path = dir.file(&format!("log-lie-{}.json", &lie.leaf.hash().to_string()[..16]));
    write(&path, &lie.write())?;
    Ok(path)
}

/// `monitor --check`: whether a file proves a lie. It needs no network, and believes no one.
pub(super) fn check(file: &Path, output: Output) -> Result<(), CliError> {
    let no_evidence = |reason: String| {
        CliError::unverified(
            format!("{} does not prove that a log has lied", shown_path(file)),
            "it says nothing about the log, for or against",
        )
        .because(reason)
    };
    let bytes = read_bounded(file, STATE_LIE_BYTES)?;
    let lie = StateLie::parse(&bytes).map_err(|error| no_evidence(error.to_string()))?;
    let proven = lie.verify().map_err(|error| no_evidence(error.to_string()))?;
    let text = format!(
        "PROVEN: {}\nCompare the key with the one that the project's signers file names, or that you know.",
        describe(&lie.log, &proven)
    );
    output.answer(&text, &to_json(&lie.log, &proven))
}

fn describe(log: &VerifierKey, proven: &ProvenLie) -> String {
    let ProvenLie { checkpoint, index, commit, records, .. } = proven;
    let given = match records.as_slice() {
        [] => "the commit changes no state".to_owned(),
        records => records.iter().map(shown_record).collect::<Vec<_>>().join("; "),
    };
    format!(
        "THE LOG {} LIES ABOUT THE STATE: in its checkpoint of {} commits, the leaf {index} has another state than the commit \
         {commit} gives. By the commit: {given}",
        shown_verifier_key(log),
        checkpoint.size,
    )
}

fn to_json(log: &VerifierKey, proven: &ProvenLie) -> Value {
    let ProvenLie { checkpoint, index, commit, signed, derived, records } = proven;
    json!({
        "log": log.to_string(),
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "root": write_hash(&checkpoint.root),
        "leaf": index,
        "commit": commit,
        "signed_state": signed.to_string(),
        "derived_state": derived.to_string(),
        "derived_records": records.iter().map(|record| record.text()).collect::<Vec<_>>(),
    })
}

// The check that enough witnesses have seen the log that the monitor is shown (D119). Without them a server could show
// this computer a log of its own, in which nothing happens.

/// A project whose witnesses have not cosigned the log for too long.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "unwitnessed")]
pub(super) struct Unwitnessed {
    #[serde(rename = "project_id")]
    pub(super) project: RepoPath,
    /// The last time; `None` if too few have cosigned at all.
    since: Option<Timestamp>,
}

/// The projects whose demands of the log are not met.
pub(super) async fn find_unwitnessed(
    client: &ServerClient,
    state: &MonitorState,
) -> Result<Vec<Unwitnessed>, CliError> {
    let (key, pin) = (&state.key, state.pin()?);
    let mut demands = state.transparency.iter().filter(|(_, demand)| demand.log() == key).peekable();
    if demands.peek().is_none() {
        return Ok(Vec::new());
    }
    let note = client.checkpoint(routes::LOG_COSIGNED).await?;
    let (mut unwitnessed, now) = (Vec::new(), now()?);
    for (project, demand) in demands {
        let Some(max_age) = demand.max_age() else { continue };
        let policy = demand.policy();
        let witnesses = policy.witness_keys();
        let mut since = None;
        if let Some(note) = &note {
            let witnesses = &witnesses[..];
            let sighting = LogSighting { key, note, witnesses, is_timed: true, consistency: None };
            sighting.check_against(&pin, Some(client)).await?;
            let signed = SignedCheckpoint::open(note, std::slice::from_ref(key), witnesses);
            let signed = signed.map_err(|error| {
                let error = ParseError::new("", error.to_string());
                client.unusable_content(&"its cosigned checkpoint", error)
            })?;
            let times = signed.cosignatures().map(|of| (of.witness.clone(), of.time));
            let time = policy.as_of(times).and_then(|time| i64::try_from(time).ok());
            since = time.and_then(|time| Timestamp::from_unix_seconds(time).ok());
        }
        if since.is_none_or(|since| is_too_old(since, now, max_age)) {
            unwitnessed.push(Unwitnessed { project: project.clone(), since });
        }
    }
    Ok(unwitnessed)
}

impl Unwitnessed {
    pub(super) fn text(&self) -> String {
        let since = match self.since {
            Some(since) => format!("not since {since}, which is longer ago than its signers file allows"),
            None => "too few have cosigned it".to_owned(),
        };
        format!(
            "the witnesses of {} do not confirm this log: {since}. They are down, or this computer is shown another log than \
             they are",
            self.project
        )
    }
}
