//! How far a monitor is: one readable JSON document.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use countersign_core::documents::{fields::parse_by_path, transparency::Transparency};
use countersign_core::values::json::{Field, Json, ParseError, write_versioned};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{digest::Sha256, path::RepoPath};
use serde::{Serialize, Serializer};

use super::replay::ReplayMark;
use crate::files::{read_bounded, write};
use crate::paths::{add_suffix, shown_path};
use crate::{args::MonitorArgs, config_dir::ConfigDir, error::CliError};

const VERSION: u64 = 1;
const MAX_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct MonitorState {
    #[serde(serialize_with = "write_key")]
    pub(super) key: VerifierKey,
    /// The whole note.
    pub(super) checkpoint: String,
    /// The last one that it covers.
    pub(super) commit: String,
    /// All that were ever watched: new signers must not be able to end the watch.
    pub(super) projects: BTreeSet<RepoPath>,
    /// What their signers files demand of the log.
    pub(super) transparency: BTreeMap<RepoPath, Transparency>,
    /// The state that all commits up to here give; `None` if an earlier version of this program wrote the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replay: Option<ReplayMark>,
}

#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
}

impl StateFile {
    /// One for each server and set of projects.
    pub(super) fn locate(
        args: &MonitorArgs,
        url: &str,
        projects: &BTreeSet<RepoPath>,
    ) -> Result<Self, CliError> {
        let path = match &args.state {
            Some(path) => path.clone(),
            None => {
                let dir = ConfigDir::locate()?;
                // Makes the directory.
                drop(dir.lock()?);
                let projects: BTreeSet<&str> = projects.iter().map(RepoPath::as_str).collect();
                let what = format!("{url}\n{projects:?}");
                dir.file(&format!("monitor-{}.json", &Sha256::of(what.as_bytes()).to_string()[..16]))
            }
        };
        Ok(Self { path })
    }

    /// `None` before the first look.
    pub(super) fn read(&self) -> Result<Option<MonitorState>, CliError> {
        if !self.path.exists() {
            return Ok(None);
        }
        let bytes = read_bounded(&self.path, MAX_BYTES)?;
        parse(&bytes).map(Some).map_err(|error| self.unusable(error.to_string()))
    }

    pub(super) fn write(&self, state: &MonitorState) -> Result<(), CliError> {
        write(&self.path, &write_versioned(VERSION, state))
    }

    /// For what was derived.
    pub(super) fn replay_file(&self) -> PathBuf {
        add_suffix(&self.path, ".map")
    }

    pub(super) fn shown(&self) -> String {
        shown_path(&self.path)
    }

    pub(super) fn unusable(&self, reason: String) -> CliError {
        CliError::other(
            format!("{} cannot be used", self.shown()),
            "move it away to begin anew: what happened meanwhile is then not reported",
        )
        .because(reason)
    }
}

fn parse(bytes: &[u8]) -> Result<MonitorState, ParseError> {
    let json = Json::parse(bytes)?;
    let object = json.root().object(&[
        "version",
        "key",
        "checkpoint",
        "commit",
        "projects",
        "transparency",
        "replay",
    ])?;
    object.require_version(VERSION)?;
    let project = |field: &Field<'_>| field.parsed(RepoPath::parse);
    Ok(MonitorState {
        key: object.required("key")?.parsed(|text| VerifierKey::parse_kind(text, KeyKind::Log))?,
        checkpoint: object.required("checkpoint")?.string()?.to_owned(),
        commit: object.required("commit")?.string()?.to_owned(),
        projects: object.required("projects")?.array()?.iter().map(project).collect::<Result<_, _>>()?,
        transparency: parse_by_path(&object.required("transparency")?, Transparency::parse)?,
        replay: object.optional("replay").map(|field| ReplayMark::parse(&field)).transpose()?,
    })
}

fn write_key<S: Serializer>(key: &VerifierKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(key)
}
