//! The file that remembers which projects this computer has accepted, one readable JSON document.

use std::{
    env,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use countersign_core::trust::TrustStore;

use crate::error::CliError;

const FILE: &str = "trust.json";
const LOCK: &str = "trust.lock";

#[derive(Debug, Clone)]
pub(crate) struct TrustFile {
    dir: PathBuf,
}

impl TrustFile {
    /// In the user's configuration directory.
    pub(crate) fn locate() -> Result<Self, CliError> {
        // A relative directory would mean another one in each place that the program is started from.
        let set = |name| env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
        let base = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
        let dir = set("COUNTERSIGN_CONFIG_DIR").or_else(|| base.map(|base| base.join("countersign")));
        let dir = dir.ok_or_else(|| {
            CliError::usage(
                "there is no place to remember which projects were accepted: HOME is not set, or not absolute",
                "set COUNTERSIGN_CONFIG_DIR to the full path of a directory of yours",
            )
        })?;
        Ok(Self { dir })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    pub(crate) fn read(&self) -> Result<TrustStore, CliError> {
        let path = self.path();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TrustStore::default()),
            Err(error) => return Err(CliError::file("read", &path, error)),
        };
        TrustStore::parse(&bytes).map_err(|error| {
            CliError::other(
                format!("{} cannot be used", path.display()),
                "correct it, or move it away to begin anew: every project is then met for the first time",
            )
            .because(error)
        })
    }

    /// Reads, changes and writes the file, with nobody in between. A crash leaves the old file or the new one.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut TrustStore) -> T) -> Result<T, CliError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(|error| CliError::file("created", &self.dir, error))?;
        let lock_path = self.dir.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock_path);
        let lock = lock.and_then(|file| file.lock().map(|()| file));
        let _lock: File = lock.map_err(|error| CliError::file("locked", &lock_path, error))?;
        let before = self.read()?;
        let mut store = before.clone();
        let result = change(&mut store);
        if store != before {
            write_anew(&self.dir, &self.path(), &store.write())
                .map_err(|error| CliError::file("written", &self.path(), error))?;
        }
        Ok(result)
    }
}

fn write_anew(dir: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(dir)?.sync_all()
}
