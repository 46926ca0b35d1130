//! The file that remembers which projects this computer has accepted, one readable JSON document.

use std::{
    env,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use countersign_core::proof::trust::TrustStore;

use crate::{error::CliError, output::quote, paths::shown_path};

const FILE: &str = "trust.json";
const LOCK: &str = "trust.lock";
/// How long another process may hold the lock before we say so, and before we give up.
const LOCK_SILENCE: Duration = Duration::from_secs(1);
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

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

    /// Reads, changes and writes the file, with no other process in between. A crash leaves the old file or the new one.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut TrustStore) -> T) -> Result<T, CliError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(|error| CliError::file("created", &self.dir, error))?;
        let _lock = take_lock(&self.dir.join(LOCK))?;
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

/// Other commands hold the lock for an instant only. One that was stopped, or that hangs, holds it for ever.
fn take_lock(path: &Path) -> Result<File, CliError> {
    let failed = |error| CliError::file("locked", path, error);
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
    let file = file.map_err(failed)?;
    let begin = Instant::now();
    let mut has_told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let shown = shown_path(path);
        if begin.elapsed() >= LOCK_PATIENCE {
            return Err(CliError::other(
                format!(
                    "{shown} is locked by another countersign process, for more than {} seconds",
                    LOCK_PATIENCE.as_secs()
                ),
                format!(
                    "find the process with `fuser {}` and end it, then run this again",
                    quote(&path.display().to_string())
                ),
            ));
        }
        if begin.elapsed() >= LOCK_SILENCE && !has_told {
            has_told = true;
            // A user who asked for silence also wants to know why nothing happens.
            let _ = writeln!(io::stderr(), "Waiting for another countersign process, which holds {shown}");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn write_anew(dir: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(dir)?.sync_all()
}
