//! The user's configuration directory, and how files are read and written: one process at a time, whole or not at all.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::{env, fs, io, path::Path, path::PathBuf, thread, time::Duration, time::Instant};

use tempfile::{Builder, NamedTempFile};

use crate::words::{error::CliError, error::shown_path, output::quote};

const LOCK: &str = "trust.lock";
/// How long another process may hold the lock before we say so, and before we give up.
const LOCK_SILENCE: Duration = Duration::from_secs(1);
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(crate) struct ConfigDir {
    dir: PathBuf,
}

impl ConfigDir {
    pub(crate) fn locate() -> Result<Self, CliError> {
        // A relative directory would mean another one in each place that the program is started from.
        let set = |name| env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
        let base = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
        let own = Self::chosen();
        if let Some(own) = own.as_ref().filter(|own| !own.is_absolute()) {
            return Err(CliError::usage(
                format!("COUNTERSIGN_CONFIG_DIR is {}, which is not a full path", shown_path(own)),
                "set it to a full path, such as \"$PWD/config\"",
            ));
        }
        let dir = own.or_else(|| base.map(|base| base.join("countersign")));
        let dir = dir.ok_or_else(|| {
            CliError::usage(
                "there is no place to remember which projects were accepted: HOME is not set, or not absolute",
                "set COUNTERSIGN_CONFIG_DIR to the full path of a directory of yours",
            )
        })?;
        Ok(Self { dir })
    }

    /// The directory that the user chose.
    pub(crate) fn chosen() -> Option<PathBuf> {
        env::var_os("COUNTERSIGN_CONFIG_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Reads a file, or `None` if it does not exist.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, CliError> {
        let path = self.file(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CliError::file("read", &path, error)),
        }
    }

    /// Locks the directory. Until the lock is dropped, no other process changes a file here.
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
        if begin.elapsed() >= LOCK_TIMEOUT {
            return Err(CliError::other(
                format!(
                    "{shown} is locked by another countersign process, for more than {} seconds",
                    LOCK_TIMEOUT.as_secs()
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

// Functions that write a file as a whole, or leave it as it was.

/// A temporary file in the directory of `target`, so that it can be renamed; removed again unless it is.
pub(crate) fn create_part(target: &Path) -> Result<NamedTempFile, CliError> {
    let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any program's new file, once it has its name; the user's umask still applies.
    let permissions = std::fs::Permissions::from_mode(0o666);
    let mut builder = Builder::new();
    builder.prefix(".countersign-").suffix(".part").permissions(permissions);
    builder.tempfile_in(dir).map_err(|error| CliError::file("written to", dir, error))
}

/// What is there is replaced by renaming, which must not take the place of a device or a pipe.
pub(crate) fn check_replaceable(target: &Path) -> Result<(), CliError> {
    if std::fs::metadata(target).is_ok_and(|found| !found.is_file()) {
        return Err(CliError::usage(
            format!("{} is there, and is not a plain file", shown_path(target)),
            "name another file with -o FILE",
        ));
    }
    Ok(())
}

/// A link in the place of a directory or file of ours would let what we write take the place of something elsewhere.
pub(crate) fn refuse_link(path: &Path) -> Result<(), CliError> {
    // With a slash behind it, a link is followed.
    let path: PathBuf = path.components().collect();
    if path.is_symlink() {
        return Err(CliError::usage(
            format!("{} is a symbolic link, and nothing is written through links", shown_path(&path)),
            "remove it, or name another directory with -o DIR",
        ));
    }
    Ok(())
}

/// Refuses links in each directory between `dir` and this file, and in place of the file itself.
pub(crate) fn refuse_links_below(dir: &Path, name: &Path) -> Result<(), CliError> {
    let mut path = dir.to_owned();
    for part in name {
        path.push(part);
        refuse_link(&path)?;
    }
    Ok(())
}

/// Whether a directory is not there yet, or has nothing in it.
pub(crate) fn is_free(dir: &Path) -> io::Result<bool> {
    match std::fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        found => found,
    }
}

/// Reads at most a byte more than `max_bytes`, which is enough to see that the file is too long.
pub(crate) fn read_bounded(path: &Path, max_bytes: usize) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(max_bytes as u64 + 1).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| CliError::file("read", path, error))
}

/// Writes a file that must not be there yet.
pub(crate) fn write_new(path: &Path, content: &[u8], mode: u32) -> Result<(), CliError> {
    let open = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = open.map_err(|error| CliError::file("written", path, error))?;
    file.write_all(content).map_err(|error| {
        // Ours since a moment ago, and not whole.
        let _ = std::fs::remove_file(path);
        CliError::file("written", path, error)
    })
}

/// Gives the temporary file its name. It is not synced to disk, which would take as long as the download: after a power
/// cut a file that is not whole may be found, as after any program's; verify it again.
pub(crate) fn finish(part: NamedTempFile, target: &Path) -> Result<(), CliError> {
    part.persist(target).map(|_| ()).map_err(|error| CliError::file("written", target, error.error))
}

/// Writes a result of ours whole or not at all, in the place of what was there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    check_replaceable(path)?;
    let mut part = create_part(path)?;
    let written: io::Result<()> = part.write_all(bytes);
    written.map_err(|error| CliError::file("written", path, error))?;
    finish(part, path)
}
