//! How far a monitor is: one readable JSON document.

use std::{collections::BTreeMap, collections::BTreeSet, path::PathBuf};

use countersign_core::values::json::{Field, FromField as _, ParseError, read, write_versioned};
use countersign_core::values::{digest::Sha256, path::RepoPath, verifier_key::VerifierKey};
use countersign_core::{documents::transparency::Transparency, json_fields};
use serde::Serialize;

use super::replay::ReplayMark;
use crate::files::{read_bounded, write};
use crate::paths::{add_suffix, shown_path};
use crate::{args::MonitorArgs, config_dir::ConfigDir, error::CliError};

const VERSION: u64 = 1;
const MAX_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct MonitorState {
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
        read(&bytes).map(Some).map_err(|error| self.unusable(error.to_string()))
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

json_fields!(object MonitorState version VERSION {
    key: text(VerifierKey::parse_log), checkpoint, commit, projects: with(parse_projects), transparency, replay: maybe,
});

fn parse_projects(list: &Field<'_>) -> Result<BTreeSet<RepoPath>, ParseError> {
    list.list(RepoPath::parse_field)
}
