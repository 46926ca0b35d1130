//! The file that remembers which projects this computer has accepted, one readable JSON document.

use std::path::PathBuf;

use countersign_core::proof::trust::TrustStore;

use crate::{config_dir::ConfigDir, error::CliError};

const FILE: &str = "trust.json";

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

    /// Reads, changes and writes the file, with no other process in between.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut TrustStore) -> T) -> Result<T, CliError> {
        self.try_change(|store| Ok(change(store)))
    }

    /// Changes the file, unless the change is refused: then the file stays as it is.
    pub(crate) fn try_change<T>(
        &self,
        change: impl FnOnce(&mut TrustStore) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let _lock = self.dir.lock()?;
        let before = self.read()?;
        let mut store = before.clone();
        let result = change(&mut store)?;
        if store != before {
            self.dir.write(FILE, &store.write())?;
        }
        Ok(result)
    }
}
