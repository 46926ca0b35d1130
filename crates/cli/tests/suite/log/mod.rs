//! The log of all commits (D82–D90).

use std::{fs, path::Path, path::PathBuf, time::Duration, time::Instant};

use countersign_core::log::{checkpoint::Checkpoint, checkpoint::SignedCheckpoint, note::Note};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};

use crate::support::{FileServer, World, server::Launch, server::TestServer};

mod kills;
mod operator;
mod restored;
mod served;

const ORIGIN: &str = "sign.example.org/log";

/// `admin log init`, and the table that it prints, in the configuration file with some more.
pub(crate) fn init(data_dir: &Path, more: &str) -> PathBuf {
    let init = Launch::default().args(["--json", "admin", "log", "init", "--origin", ORIGIN]);
    let made = init.args(["--data-dir", data_dir.to_str().unwrap()]).output();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let config = data_dir.parent().unwrap().join("countersign.toml");
    fs::write(&config, format!("{}{more}", made["table"].as_str().unwrap())).unwrap();
    config
}

/// A server with a log that makes a checkpoint every second.
pub(crate) fn prepare() -> TestServer {
    let mut server = TestServer::prepare(|launch| launch);
    let config = init(&server.data_dir(), "checkpoint_seconds = 1\n");
    let config = config.to_str().unwrap().to_owned();
    server.change_launch(|dir| Launch::serve(dir).args(["--dev", "--config", &config]).with_metrics());
    server
}

fn start() -> World {
    let mut server = prepare();
    server.start_again();
    World { server, files: FileServer::start() }
}

pub(crate) fn log_key(server: &TestServer) -> VerifierKey {
    let reply = server.get("/log/key");
    assert_eq!(reply.status, 200, "{}", reply.text());
    VerifierKey::parse_kind(reply.text().trim_end(), KeyKind::Log).unwrap()
}

/// The checkpoint in a note that the log has signed.
fn open(note: &[u8], key: &VerifierKey) -> Checkpoint {
    let note = Note::parse(note).unwrap();
    let signed = SignedCheckpoint::open(&note, std::slice::from_ref(key), &[]).unwrap();
    assert_eq!(signed.checkpoint().origin, ORIGIN);
    signed.checkpoint().clone()
}

/// The newest checkpoint, if there is one.
pub(crate) fn checkpoint(server: &TestServer, key: &VerifierKey) -> Option<Checkpoint> {
    let reply = server.get("/log/checkpoint");
    if reply.status == 503 {
        assert!(reply.header("retry-after").is_some());
        return None;
    }
    assert_eq!(reply.status, 200, "{}", reply.text());
    Some(open(&reply.body, key))
}

/// The newest checkpoint, once it covers all commits.
#[track_caller]
fn await_all(world: &World) -> Checkpoint {
    let size: u64 = world.git().run(&["rev-list", "--count", "main"]).trim().parse().unwrap();
    let key = log_key(&world.server);
    await_that("a checkpoint of all commits", || {
        checkpoint(&world.server, &key).filter(|checkpoint| checkpoint.size >= size)
    })
}

#[track_caller]
fn await_that<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}
