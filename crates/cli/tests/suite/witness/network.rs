//! A witness and the lists of logs that networks publish (D272, D273): it takes what is new, forgets nothing, and keeps
//! to the rate of each log.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::{fs, path::PathBuf};

use countersign_core::values::bounds::LOG_LIST_BYTES;

use crate::support::client::text;
use crate::support::listening::{Heard, listen};
use crate::support::metrics::{Page, free_address};
use crate::support::witnesses::{OwnLog, TestWitness};

const NEW: &str = "the witness serves logs that are new on a list";
const NOT_TAKEN: &str = "the witness does not take a log from a list";
const BROKEN: &str = "the witness cannot use a list of logs";

/// A log of 40 leaves.
fn log(origin: &str, seed: u8) -> OwnLog {
    let mut log = OwnLog::named(origin, seed);
    log.grow("leaf", 40);
    log
}

fn entry(log: &OwnLog, per_day: u32) -> String {
    format!("\nvkey {}\nqpd {per_day}\ncontact alice@example.org\n", log.key)
}

fn list(logs: &[(&OwnLog, u32)]) -> String {
    let entries: String = logs.iter().map(|(log, per_day)| entry(log, *per_day)).collect();
    format!("# of a test\nlogs/v0\n{entries}")
}

/// A witness that reads this list. It knows the log of its own server, which is not there.
struct Listening {
    witness: TestWitness,
    list: PathBuf,
    own: OwnLog,
}

impl Listening {
    fn prepare(list_at: Option<&str>) -> Self {
        let own = log("own.example/log", 1);
        let mut witness = TestWitness::prepare(free_address(), "witness.example", &[]);
        let list = witness.server.data_dir().with_extension("list");
        let (list_at, key) = (list_at.unwrap_or(text(&list)).to_owned(), own.key.to_string());
        let launch = witness.server.launch().clone().with_metrics();
        let launch = launch.args(["--log-key", &key, "--log-list", &list_at]);
        witness.server.change_launch(|_| launch);
        Self { witness, list, own }
    }

    fn start(text: &str) -> Self {
        let mut begun = Self::prepare(None);
        fs::write(&begun.list, text).unwrap();
        begun.witness.server.start_again();
        begun
    }

    /// Shows another list, and waits until the witness has said these words so many times.
    fn show(&self, text: impl AsRef<[u8]>, words: &str, times: usize) {
        fs::write(&self.list, text).unwrap();
        self.witness.server.signal("HUP");
        self.witness.server.await_log(words, times);
    }

    fn status(&self, log: &OwnLog, old: u64, size: u64) -> u16 {
        self.witness.add_checkpoint(&log.request(old, size)).status
    }

    fn count(&self) -> f64 {
        Page::read(self.witness.server.metrics_address()).value("countersign_witness_listed_logs")
    }
}

#[test]
fn a_witness_takes_what_is_new_on_a_list_and_never_forgets_a_log() {
    let (one, two, three) = (log("one.example", 2), log("two.example/log", 3), log("three.example", 4));
    let mut begun = Listening::start(&list(&[(&one, 86_400), (&two, 86_400)]));
    begun.witness.server.await_log(NEW, 1);
    assert_eq!(
        [begun.status(&one, 0, 5), begun.status(&two, 0, 5), begun.status(&three, 0, 5)],
        [200, 200, 404]
    );
    // One is gone, and the key of the other has changed.
    let changed = log("two.example/log", 9);
    begun.show(list(&[(&changed, 86_400), (&three, 86_400)]), NEW, 2);
    begun.witness.server.await_log(NOT_TAKEN, 1);
    begun.witness.server.await_log(&format!("the list has the key {}", changed.key), 1);
    assert_eq!([begun.status(&one, 5, 9), begun.status(&two, 5, 9), begun.status(&three, 0, 9)], [200; 3]);
    assert_eq!(begun.status(&changed, 9, 12), 403, "its key stays");
    // Nothing that is wrong with a list takes anything away, or adds a part of it.
    let fourth = log("four.example", 5);
    let whole = list(&[(&fourth, 86_400)]);
    let too_large = [whole.as_bytes(), &vec![b'#'; LOG_LIST_BYTES]].concat();
    let half = format!("{whole}vkey {}\nqpd 0\n", one.key);
    for (number, broken) in
        [too_large, half.into_bytes(), b"\xff\xfe".to_vec(), Vec::new()].into_iter().enumerate()
    {
        begun.show(broken, BROKEN, number + 1);
        begun.show(list(&[]), "the witness can use the list of logs again", number + 1);
        assert_eq!(begun.status(&fourth, 0, 5), 404);
    }
    assert_eq!(begun.count(), 3.0);
    // Without any list, also after a kill.
    fs::remove_file(&begun.list).unwrap();
    begun.witness.server.kill9();
    begun.witness.server.start_again();
    assert_eq!([begun.status(&one, 9, 12), begun.status(&two, 9, 12), begun.status(&three, 9, 12)], [200; 3]);
    assert_eq!(begun.count(), 3.0);
    // What it knows is a list as well. It does not start with one that is damaged: it would forget.
    begun.witness.server.stop();
    let known = begun.witness.server.data_dir().join("witness/known-logs");
    let written = fs::read_to_string(&known).unwrap();
    assert!(written.starts_with("logs/v0\n") && written.contains(&one.key.to_string()), "{written}");
    fs::write(&known, written.replace("qpd 86400", "qpd")).unwrap();
    let refused = begun.witness.server.launch().refusal();
    assert!(refused.contains("known-logs does not say which logs this witness knows"), "{refused}");
}

#[test]
fn a_list_cannot_take_the_name_of_another_log() {
    let (one, policy) = (log("one.example", 2), log("policy.example", 3));
    let mut begun = Listening::prepare(None);
    let file = begun.list.with_extension("logs");
    fs::write(&file, format!("log {}\n", policy.key)).unwrap();
    let launch = begun.witness.server.launch().clone().args(["--policy", text(&file)]);
    begun.witness.server.change_launch(|_| launch);
    // The same name twice, the witness's own log, and a log of its operator.
    let (twin, own, other) = (log("one.example", 8), log("own.example/log", 8), log("policy.example", 8));
    let hostile =
        list(&[(&own, 1), (&one, 86_400), (&twin, 86_400), (&other, 1), (&policy, 1), (&begun.own, 1)]);
    fs::write(&begun.list, hostile).unwrap();
    begun.witness.server.start_again();
    begun.witness.server.await_log(NOT_TAKEN, 3);
    assert_eq!([begun.status(&one, 0, 5), begun.status(&policy, 0, 5)], [200; 2]);
    for stranger in [&twin, &own, &other] {
        assert_eq!(begun.status(stranger, 0, 5), 403);
    }
    assert_eq!(begun.count(), 1.0);
    // What the operator serves is bound by no list.
    for size in 6..=30 {
        assert_eq!(begun.status(&policy, size - 1, size), 200);
    }
    // A log that the operator does not serve any more keeps its record, so a list gives it no other key.
    begun.witness.server.stop();
    fs::write(&file, "").unwrap();
    begun.witness.server.start_again();
    begun.witness.server.await_log("this witness has cosigned a log of this name with another key before", 1);
    begun.witness.server.restart();
    assert_eq!(
        [begun.status(&one, 5, 6), begun.status(&other, 0, 5), begun.status(&policy, 30, 31)],
        [200, 403, 200]
    );
}

#[test]
fn a_log_is_cosigned_as_often_as_its_list_says() {
    let (rare, often) = (log("rare.example", 2), log("often.example", 3));
    let begun = Listening::start(&list(&[(&rare, 24), (&often, 17_280)]));
    begun.witness.server.await_log(NEW, 1);
    assert_eq!(begun.status(&rare, 0, 1), 200);
    // A refused request does not count.
    for _ in 0..20 {
        assert_eq!(begun.status(&rare, 0, 5), 409);
        let mut wrong = rare.request(1, 5);
        wrong.proof.clear();
        assert_eq!(begun.witness.add_checkpoint(&wrong).status, 422);
    }
    // Anyone can send the newest checkpoint again. That uses up its own share.
    let again = |size: u64| begun.witness.add_checkpoint(&rare.request(size, size));
    for _ in 0..10 {
        assert_eq!(again(1).status, 200);
    }
    assert_eq!(again(1).status, 429);
    for size in 2..=10 {
        assert_eq!(begun.status(&rare, size - 1, size), 200, "{size}");
    }
    let refused = begun.witness.add_checkpoint(&rare.request(10, 11));
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (429, Some("rate_limited")),
        "{}",
        refused.text()
    );
    let wait: u64 = refused.header("retry-after").expect("a wait").parse().unwrap();
    assert!((3_500..=3_600).contains(&wait), "24 a day are one an hour: {wait}");
    assert_eq!(begun.witness.cosigned(&rare.key).unwrap().checkpoint().size, 10);
    // The rate of another log is its own, and an hour of it can come at once.
    for size in 1..=40 {
        assert_eq!(begun.status(&often, size - 1, size), 200, "{size}");
    }
}

#[test]
fn a_published_list_is_fetched_again_only_if_it_is_new() {
    let (one, two) = (log("one.example", 2), log("two.example", 3));
    let shown = Arc::new(Mutex::new((list(&[(&one, 24)]), 1)));
    let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
    let address = {
        let (shown, heard) = (Arc::clone(&shown), Arc::clone(&heard));
        listen("127.0.0.1:0", move |asked, mut stream| {
            let (text, version) = shown.lock().unwrap().clone();
            let etag = format!("\"{version}\"");
            let is_known = asked.header("if-none-match") == Some(&etag);
            heard.lock().unwrap().push(asked);
            match is_known {
                true => {
                    write!(stream, "HTTP/1.1 304 Not Modified\r\netag: {etag}\r\nconnection: close\r\n\r\n")
                }
                false => write!(
                    stream,
                    "HTTP/1.1 200 OK\r\netag: {etag}\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\
                     content-length: {}\r\nconnection: close\r\n\r\n{text}",
                    text.len()
                ),
            }
        })
    };
    let mut begun = Listening::prepare(Some(&format!("http://{address}/log-list.1")));
    begun.witness.server.start_again();
    begun.witness.server.await_log(NEW, 1);
    begun.witness.server.signal("HUP");
    crate::support::waiting::wait_until("it does not ask again", || heard.lock().unwrap().len() == 2);
    *shown.lock().unwrap() = (list(&[(&one, 24), (&two, 24)]), 2);
    begun.witness.server.signal("HUP");
    begun.witness.server.await_log(NEW, 2);
    let asked = heard.lock().unwrap().clone();
    let seen: Vec<_> =
        asked.iter().map(|asked| asked.header("if-none-match").map(ToOwned::to_owned)).collect();
    assert_eq!(seen, [None, Some("\"1\"".to_owned()), Some("\"1\"".to_owned())]);
    assert_eq!(asked[1].header("if-modified-since"), Some("Thu, 01 Jan 2026 00:00:00 GMT"));
    assert_eq!([begun.status(&one, 0, 5), begun.status(&two, 0, 5)], [200; 2]);
}

#[test]
fn a_list_comes_over_https_from_others() {
    for address in ["http://lists.example/log-list.1", "ftp://lists.example/x", "https://"] {
        let begun = Listening::prepare(Some(address));
        let refused = begun.witness.server.launch().refusal();
        assert!(refused.contains("write it as https://HOST/PATH"), "{address}: {refused}");
    }
    let mut begun = Listening::prepare(None);
    let launch =
        (0..8).fold(begun.witness.server.launch().clone(), |launch, _| launch.args(["--log-list", "x"]));
    begun.witness.server.change_launch(|_| launch);
    let refused = begun.witness.server.launch().refusal();
    assert!(refused.contains("at most 8 lists"), "{refused}");
}
