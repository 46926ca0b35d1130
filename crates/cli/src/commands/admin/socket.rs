//! A server's data directory: asking a running server over its socket, and opening that of a stopped one as its owner.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::{fs::MetadataExt as _, net::UnixStream};
use std::{fs, io, path::Path, path::PathBuf, time::Duration};

use countersign_core::values::shown::shown_text;
use countersign_forge::forges::speaks_for;
use countersign_server::serve::admin::{AdminEnd, AdminRequest};
use countersign_server::{follow::mirror::memory::MirrorMemory, operate::config::GivenSettings};
use countersign_store::machine::{clock::Clock, data_dir::DataDir, data_dir::DataDirError};
use countersign_store::{StoreRole, store::OpenSettings, store::OpenedData, store::open_repository};
use serde_json::Value;

use crate::{args::FileArgs, words::error::CliError};

pub(super) const HINT: &str = "`countersign admin projects` lists projects and what is pending; `countersign admin --help` lists all commands";
pub(super) const BLOCKS_HINT: &str = "`countersign admin blocks` lists what is blocked";
/// The longest wait for an answer, which is more than the server takes.
const TIMEOUT: Duration = Duration::from_secs(70);
/// The most bytes of an answer, which is far more than the longest one has.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// The items of the answer; `None` if no server listens there. `hint`: what to do if the server refuses.
pub(super) fn ask(
    data_dir: &Path,
    request: &AdminRequest,
    hint: &str,
) -> Result<Option<Vec<Value>>, CliError> {
    let path = DataDir::admin_socket_at(data_dir);
    let stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        // The path is too long for a socket, so the server has none.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
        Err(error) => {
            let hint = "run this as the server's user, or as root";
            return Err(CliError::file("asked", &path, error).with_hint(hint));
        }
    };
    let answered = converse(stream, request).map_err(|error| CliError::file("asked", &path, error))?;
    answered.map(Some).map_err(|reason| CliError::other(shown_text(&reason), hint))
}

/// The items of the answer, or why the server refuses.
fn converse(mut stream: UnixStream, request: &AdminRequest) -> io::Result<Result<Vec<Value>, String>> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(format!("{}\n", serde_json::to_string(request)?).as_bytes())?;
    let mut items = Vec::new();
    for line in BufReader::new(stream.take(MAX_ANSWER_BYTES)).lines() {
        let item: Value = serde_json::from_str(&line?)?;
        match item.get("end").map(|end| serde_json::from_value(end.clone())).transpose()? {
            None => items.push(item),
            Some(AdminEnd::Done) => return Ok(Ok(items)),
            Some(AdminEnd::Failed(reason)) => return Ok(Err(reason)),
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

// The data directory of a server that is stopped.

/// Opens the repository without a budget, so that an operator can always clean up.
pub(super) fn open_stopped(file: &GivenSettings, path: &Path) -> Result<(DataDir, OpenedData), CliError> {
    let data_dir = lock_stopped(path)?;
    // A mirror makes no commits of its own, and keeps no nonces.
    let role = if is_mirror(&data_dir)? { StoreRole::Mirror } else { StoreRole::Single };
    let settings =
        OpenSettings { author: file.author()?, clock: Clock::system(), budget: None, speaks_for, role };
    let opened = open_repository(&data_dir, settings)?;
    Ok((data_dir, opened))
}

pub(super) fn is_mirror(data_dir: &DataDir) -> Result<bool, CliError> {
    let origin = MirrorMemory::at(data_dir.path()).origin();
    Ok(origin.map_err(|error| CliError::other(error.to_string(), "check the disk").because(error))?.is_some())
}

pub(super) fn lock_stopped(path: &Path) -> Result<DataDir, CliError> {
    refuse_other_user(path)?;
    DataDir::lock(path).map_err(|error| match error {
        DataDirError::InUse { .. } => CliError::other(
            error.to_string(),
            "a server that runs without its socket (its log says why), or another command: stop it first",
        ),
        DataDirError::NotADirectory { .. }
        | DataDirError::NotWritable { .. }
        | DataDirError::Unusable { .. } => error.into(),
    })
}

/// Where packages put the configuration file.
const PACKAGED_CONFIG: &str = "/etc/countersign/countersign.toml";

/// Reads the configuration file. If the operator names neither it nor the data directory, and no server keeps its state
/// in the directory that `serve` uses by default, the packaged file counts (D248).
pub(super) fn read_settings(files: &FileArgs) -> Result<GivenSettings, CliError> {
    let is_named = files.config.is_some() || files.data_dir.is_some();
    let is_packaged = !is_named
        && !DataDir::has_repository_at(&GivenSettings::default().data_dir())
        && Path::new(PACKAGED_CONFIG).exists();
    let packaged = is_packaged.then_some(Path::new(PACKAGED_CONFIG));
    Ok(GivenSettings::read(files.config.as_deref().or(packaged))?)
}

/// The configuration, and the directory in which a server has kept its state.
pub(super) fn find_data_dir(files: FileArgs) -> Result<(GivenSettings, PathBuf), CliError> {
    let file = read_settings(&files)?;
    let path = files.data_dir.unwrap_or_else(|| file.data_dir());
    if !DataDir::has_repository_at(&path) {
        let message = format!("there is no repository in the data directory {}", path.display());
        return Err(CliError::other(message, "name it with --data-dir"));
    }
    Ok((file, path))
}

// The owner of a data directory. Files of root, or of another user, would stop a server that cannot read them.

/// The server made its repository, so it runs as the repository's owner. Before there is one, the directory's owner
/// counts. A directory that is missing will be the caller's.
pub(super) fn refuse_other_user(data_dir: &Path) -> Result<(), CliError> {
    let repository = DataDir::repository_at(data_dir);
    let dir = if repository.exists() { &repository } else { data_dir };
    let owner = match fs::metadata(dir) {
        Ok(found) => found.uid(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(CliError::file("read", dir, error)),
    };
    let own = rustix::process::geteuid().as_raw();
    if owner == own {
        return Ok(());
    }
    let message = format!(
        "{} belongs to the user with the id {owner}, and this command runs as {own}. The server could not use files \
         that it makes there",
        dir.display()
    );
    Err(CliError::other(
        message,
        "run it as the server's user, as in `sudo -u countersign countersign admin …`",
    ))
}
