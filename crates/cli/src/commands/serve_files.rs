//! `countersign serve-files`: a plain file server for trying things out.

use std::{io::Write as _, path::Path, path::PathBuf, sync::Arc};

use axum::http::{StatusCode, Uri, header::CONTENT_LENGTH};
use axum::{Router, body::Body, extract::State, response::IntoResponse as _, response::Response};
use tokio::net::TcpListener;

use crate::{args::ServeFilesArgs, words::error::CliError, words::error::shown_path};

pub(crate) async fn run(args: &ServeFilesArgs) -> Result<(), CliError> {
    if !args.listen.ip().is_loopback() {
        return Err(CliError::usage(
            format!("{} is not an address of this computer alone", args.listen),
            "this server is for trying things out: use a real one for others",
        ));
    }
    let (dir, listen) = (&args.dir, args.listen);
    let root = std::fs::canonicalize(dir).map_err(|error| CliError::file("read", dir, error))?;
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        CliError::other(format!("cannot listen on {listen}"), "choose another with --listen").because(error)
    })?;
    let address = listener.local_addr().map_err(broken)?;
    let line = format!("Serving {} on http://{address}\n", shown_path(dir));
    let mut out = std::io::stdout();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(broken)?;
    let router = Router::new().fallback(answer).with_state(Arc::new(root));
    let stop = async {
        let _ = crate::commands::serve::wait_for_signal().await;
    };
    axum::serve(listener, router).with_graceful_shutdown(stop).await.map_err(broken)
}

fn broken(error: std::io::Error) -> CliError {
    CliError::other("the file server ended with an error", "start it again").because(error)
}

async fn answer(State(root): State<Arc<PathBuf>>, uri: Uri) -> Response {
    let found = tokio::task::spawn_blocking(move || read(&root, uri.path())).await.ok().flatten();
    match found {
        Some(bytes) => {
            let length = bytes.len().to_string();
            ([(CONTENT_LENGTH, length)], Body::from(bytes)).into_response()
        }
        None => (StatusCode::NOT_FOUND, "there is no such file\n").into_response(),
    }
}

fn read(root: &Path, path: &str) -> Option<Vec<u8>> {
    let path = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    // Links are resolved before the file is looked for below the directory.
    let file = std::fs::canonicalize(root.join(path.trim_start_matches('/'))).ok()?;
    if file.starts_with(root) && file.is_file() { std::fs::read(file).ok() } else { None }
}
