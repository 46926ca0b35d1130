//! Asking a running server over the socket in its data directory.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::{os::unix::net::UnixStream, path::Path, time::Duration};

use countersign_core::values::shown::shown_text;
use countersign_server::admin::{AdminEnd, AdminRequest};
use countersign_store::data_dir::DataDir;
use serde_json::Value;

use crate::error::CliError;

pub(super) const HINT: &str = "`countersign admin projects` lists projects and what is pending; `countersign admin --help` lists all commands";
/// More than the server takes for an answer.
const PATIENCE: Duration = Duration::from_secs(70);
/// Far more than the longest answer.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// The items of the answer; `None` if no server listens there.
pub(super) fn ask(data_dir: &Path, request: &AdminRequest) -> Result<Option<Vec<Value>>, CliError> {
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
    converse(stream, request).map_err(|error| CliError::file("asked", &path, error))?.map(Some)
}

fn converse(mut stream: UnixStream, request: &AdminRequest) -> io::Result<Result<Vec<Value>, CliError>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{}\n", serde_json::to_string(request)?).as_bytes())?;
    let mut items = Vec::new();
    for line in BufReader::new(stream.take(MAX_ANSWER_BYTES)).lines() {
        let item: Value = serde_json::from_str(&line?)?;
        match item.get("end").map(|end| serde_json::from_value(end.clone())).transpose()? {
            None => items.push(item),
            Some(AdminEnd::Done) => return Ok(Ok(items)),
            Some(AdminEnd::Failed(reason)) => return Ok(Err(CliError::other(shown_text(&reason), HINT))),
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}
