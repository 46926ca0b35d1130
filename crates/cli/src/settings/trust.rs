//! The file that remembers which projects this computer has accepted, one readable JSON document, and the histories of
//! their signers beside it.

use std::path::PathBuf;

use countersign_core::values::{digest::Sha256, path::RepoPath};
use countersign_core::{documents::history::History, proof::trust::TrustStore};

use crate::{settings::config_dir::ConfigDir, words::error::CliError};

const FILE: &str = "trust.json";

/// What a server need not show again.
#[derive(Debug, Default)]
pub(crate) struct KnownPast {
    /// All entries that were accepted; empty if they are not here.
    pub(crate) history: History,
    /// How large the log was that showed the state of the project.
    pub(crate) log_size: Option<u64>,
}

/// Names in the file system are shorter than projects can be.
fn history_file(project: &RepoPath) -> String {
    format!("history-{}.json", &Sha256::of(project.as_str().as_bytes()).to_string()[..32])
}

#[derive(Debug, Clone)]
pub(crate) struct TrustFile {
    dir: ConfigDir,
}

impl TrustFile {
    pub(crate) fn locate() -> Result<Self, CliError> {
        Ok(Self { dir: ConfigDir::locate()? })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.file(FILE)
    }

    pub(crate) fn read(&self) -> Result<TrustStore, CliError> {
        let Some(bytes) = self.dir.read(FILE)? else { return Ok(TrustStore::default()) };
        TrustStore::parse(&bytes).map_err(|error| {
            CliError::other(
                format!("{} cannot be used", self.path().display()),
                "correct it, or move it away to begin anew: every project is then met for the first time",
            )
            .because(error)
        })
    }

    /// What this computer has accepted of the project in which a path lies. It only saves the server work, so that what
    /// cannot be read is nothing.
    pub(crate) fn find_past(&self, path: &RepoPath) -> KnownPast {
        let Ok(store) = self.read() else { return KnownPast::default() };
        let found = store.projects.iter().find(|(project, _)| path == *project || path.is_inside(project));
        let Some((project, pin)) = found else { return KnownPast::default() };
        let log = pin.log.as_ref().and_then(|key| store.log_pin(key));
        let kept = self.dir.read(&history_file(project)).ok().flatten();
        let kept = kept.and_then(|bytes| History::parse(&bytes).ok()).filter(|kept| pin.has(kept));
        KnownPast {
            history: kept.unwrap_or_default(),
            log_size: log.and_then(|log| log.head().ok()).map(|head| head.size),
        }
    }

    /// Keeps a history that was accepted, so that the server need not send it again. It is a convenience: a directory
    /// that cannot be written to is no reason to fail.
    pub(crate) fn keep_history(&self, project: &RepoPath, history: &History) {
        let (name, bytes) = (history_file(project), history.write());
        let is_kept = self.dir.read(&name).is_ok_and(|kept| kept.as_ref() == Some(&bytes));
        if !is_kept && self.dir.lock().is_ok() {
            let _ = self.dir.write(&name, &bytes);
        }
    }

    /// Forgets the history of a project.
    pub(crate) fn forget_history(&self, project: &RepoPath) {
        let _ = std::fs::remove_file(self.dir.file(&history_file(project)));
    }

    /// Reads, changes and writes the file, with no other process in between.
    pub(crate) fn change<T>(&self, change: impl Fn(&mut TrustStore) -> T) -> Result<T, CliError> {
        self.try_change(|store| Ok(change(store)))
    }

    /// Changes the file, unless the change is refused: then the file stays as it is. Another process may have learned
    /// more since the file was read, so `change` decides on the file as it is now: under its lock, unless there is
    /// nothing to write (D207).
    pub(crate) fn try_change<T>(
        &self,
        change: impl Fn(&mut TrustStore) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let changed = || {
            let before = self.read()?;
            let mut store = before.clone();
            let result = change(&mut store)?;
            Ok::<_, CliError>((result, (store != before).then_some(store)))
        };
        // The file may have been put there for reading only.
        if let (result, None) = changed()? {
            return Ok(result);
        }
        let _lock = self.dir.lock()?;
        let (result, store) = changed()?;
        if let Some(store) = store {
            self.dir.write(FILE, &store.write())?;
        }
        Ok(result)
    }
}
