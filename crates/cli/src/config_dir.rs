//! The user's configuration directory, and how its files are changed: one process at a time, whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::{error::CliError, output::quote, paths::shown_path};

const LOCK: &str = "trust.lock";
/// How long another process may hold the lock before we say so, and before we give up.
const LOCK_SILENCE: Duration = Duration::from_secs(1);
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(crate) struct ConfigDir {
    dir: PathBuf,
}

impl ConfigDir {
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

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// `None` where the file is not there.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, CliError> {
        let path = self.file(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CliError::file("read", &path, error)),
        }
    }

    /// Until the lock is dropped, no other process changes a file here.
    pub(crate) fn lock(&self) -> Result<File, CliError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(|error| CliError::file("created", &self.dir, error))?;
        take_lock(&self.dir.join(LOCK))
    }

    /// A crash leaves the old file or the new one.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), CliError> {
        let path = self.file(name);
        write_anew(&self.dir, &path, bytes).map_err(|error| CliError::file("written", &path, error))
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
