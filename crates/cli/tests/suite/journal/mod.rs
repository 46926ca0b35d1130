use std::path::Path;

use countersign_store::{ObjectId, journal::JournalEntry, journal::read::JournalReader};

use crate::support::{Git, TestServer};

mod broken;
mod served;
mod slow;

/// Everything in a journal that arrived whole.
pub(crate) fn read_journal(stream: &[u8]) -> Vec<JournalEntry> {
    let mut reader = JournalReader::default();
    reader.push(stream);
    let entries = std::iter::from_fn(|| reader.next().expect("a journal")).collect();
    reader.finish().expect("a whole journal");
    entries
}

pub(super) fn head_of(server: &TestServer) -> String {
    Git::at(server.repository()).run(&["rev-parse", "main"])
}

/// An empty bare repository.
pub(super) fn new_copy(dir: &Path) -> Git {
    Git::init_bare(dir)
}

pub(super) fn import(copy: &Git, journal: &[u8]) {
    assert_eq!(copy.run_with_input(&["fast-import", "--quiet"], journal), "");
}

/// A server that has these commits behind its first one: of each, the path of a file and its content.
pub(super) fn start_with_commits<'a>(commits: impl IntoIterator<Item = (&'a str, Vec<u8>)>) -> TestServer {
    let mut server = TestServer::start_with(|launch| launch.arg("--dev").with_metrics());
    server.stop();
    let mut stream = Vec::new();
    let who = "Countersign <countersign@localhost> 1800000000 +0000";
    let mut from = format!("from {}\n", head_of(&server));
    for (path, content) in commits {
        let quoted = format!("\"{}\"", path.replace('"', "\\\""));
        let head = format!("commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata 6\nNotes\n{from}");
        from.clear();
        stream.extend(format!("{head}M 100644 inline {quoted}\ndata {}\n", content.len()).bytes());
        stream.extend(content);
        stream.extend(b"\n\n");
    }
    import(&Git::at(server.repository()), &stream);
    server.start_again();
    server
}

/// More than the buffers of a connection hold.
pub(super) const LARGE: usize = 24;

pub(super) fn start_with_much() -> TestServer {
    // One mebibyte each, and no two are the same.
    let content =
        |number: usize| number.to_string().into_bytes().repeat((1 << 20) / number.to_string().len());
    start_with_commits((0..LARGE).map(|number| ("notes/large", content(number + 10))))
}

pub(super) fn id(text: &str) -> ObjectId {
    ObjectId::from_hex(text.as_bytes()).expect("the id of a commit")
}
