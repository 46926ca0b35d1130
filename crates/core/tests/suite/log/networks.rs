//! Lists of logs (`logs/v0`): what is read, what is refused as a whole, and that a list only adds.

use countersign_core::log::network::{KnownLogs, ListedLog, LogList, LogListFault, NotTaken, SkippedLog};
use countersign_core::values::bounds::{LISTED_LOGS, LOG_CONTACT_BYTES, LOG_LIST_BYTES};
use countersign_core::values::key::SecretKey;
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};

fn key(origin: &str, seed: u8) -> VerifierKey {
    VerifierKey::new(origin, KeyKind::Log, SecretKey::from_seed(&[seed; 32]).public_key()).unwrap()
}

fn listed(origin: &str, seed: u8, per_day: u32) -> ListedLog {
    ListedLog { key: key(origin, seed), per_day, contact: "alice@example.org".to_owned() }
}

fn entry(log: &ListedLog) -> String {
    format!("vkey {}\nqpd {}\ncontact {}\n", log.key, log.per_day, log.contact)
}

fn fault(text: &str) -> (usize, LogListFault) {
    let error = LogList::parse(text.as_bytes()).unwrap_err();
    (error.line, error.fault)
}

#[test]
fn a_list_is_read_with_comments_blanks_and_origins() {
    let (one, two) = (listed("one.example/log", 1, 86_400), listed("two.example", 2, 24));
    let text = format!(
        "#\n# List: 10qps\n\n  logs/v0\t\r\n\n# the first\n  vkey {}  \r\nqpd {}\n# between\ncontact  {}\n\n\
         vkey {}\norigin two.example\nqpd 24\ncontact {}",
        one.key, one.per_day, one.contact, two.key, two.contact
    );
    let list = LogList::parse(text.as_bytes()).unwrap();
    assert_eq!(list, LogList { logs: vec![one, two], skipped: Vec::new() });
    assert_eq!(LogList::parse(b"logs/v0\n").unwrap(), LogList::default());
    // As the testing list of witness-network.org has one.
    let published = "logs/v0\n\nvkey vindex.gopherwatch.org+af4f4f3a+AYlEp21ErzmKZa+aqhjC8BQteyEtsVwmLzblkzHxn8et\nqpd 288\n\
                     contact admin@gopherwatch.org\n";
    let list = LogList::parse(published.as_bytes()).unwrap();
    assert_eq!((list.logs[0].key.name(), list.logs[0].per_day), ("vindex.gopherwatch.org", 288));
}

#[test]
fn a_list_with_a_wrong_line_is_refused_as_a_whole() {
    let good = entry(&listed("one.example", 1, 24));
    let list = |rest: &str| fault(&format!("logs/v0\n{good}{rest}"));
    for text in ["", "\n# nothing\n", "logs/v1\n", "<html>logs/v0", &good] {
        assert_eq!(fault(text), (0, LogListFault::Header), "{text:?}");
    }
    for (rest, line) in [
        ("vkey\n", 5),
        ("qpd 24\n", 5),
        ("log x\n", 5),
        ("vkey x\n", 5),
        ("vkey x\ncontact y\nqpd 1\n", 6),
        ("vkey x\nqpd 1\n", 5),
        ("vkey x\nqpd 1\nvkey y\n", 7),
        ("vkey x\nqpd 1\norigin z\ncontact y\n", 7),
        ("vkey x\nqpd 1\ncontact\n", 7),
        ("VKEY x\nqpd 1\ncontact y\n", 5),
    ] {
        assert_eq!(list(rest), (line, LogListFault::Form), "{rest:?}");
    }
    for count in ["0", "-1", "+1", "01", "1.5", "2147483648", "99999999999999999999", "many"] {
        assert_eq!(list(&format!("vkey x\nqpd {count}\ncontact y\n")), (6, LogListFault::PerDay), "{count}");
    }
    assert!(
        LogList::parse(format!("logs/v0\n{good}").replace("qpd 24", "qpd 2147483647").as_bytes()).is_ok()
    );
    assert_eq!(LogList::parse(b"logs/v0\n\xff").unwrap_err().fault, LogListFault::NotText);
}

#[test]
fn a_log_that_is_of_no_use_is_passed_over_alone() {
    let good = listed("one.example", 1, 24);
    let witness = VerifierKey::new("two.example", KeyKind::Witness, good.key.ed25519().unwrap()).unwrap();
    let long = "x".repeat(LOG_CONTACT_BYTES + 1);
    let text = format!(
        "logs/v0\n{}vkey {witness}\nqpd 1\ncontact y\nvkey nonsense\nqpd 1\ncontact y\nvkey {}\norigin three\nqpd 1\ncontact y\n\
         vkey {}\nqpd 1\ncontact {long}\nvkey {}\nqpd 1\ncontact a\u{202e}b\n{}",
        entry(&good),
        key("three.example", 3),
        key("four.example", 4),
        key("five.example", 5),
        entry(&ListedLog { contact: "x".repeat(LOG_CONTACT_BYTES), ..listed("six.example", 6, 1) }),
    );
    let list = LogList::parse(text.as_bytes()).unwrap();
    let names: Vec<&str> = list.logs.iter().map(|log| log.key.name()).collect();
    assert_eq!(names, ["one.example", "six.example"]);
    let lines: Vec<usize> = list.skipped.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [5, 8, 11, 15, 18]);
    assert!(matches!(&list.skipped[2].1, SkippedLog::OtherOrigin(origin) if origin == "three"));
}

#[test]
fn a_list_has_a_largest_size_and_most_logs() {
    let head = "logs/v0\n#";
    let padded = |size: usize| format!("{head}{}", "x".repeat(size - head.len()));
    assert!(LogList::parse(padded(LOG_LIST_BYTES).as_bytes()).is_ok());
    assert_eq!(fault(&padded(LOG_LIST_BYTES + 1)), (0, LogListFault::TooLarge));
    let log = listed("one.example", 1, 24);
    let many = |count: usize| format!("logs/v0\n{}", entry(&log).repeat(count));
    assert_eq!(LogList::parse(many(LISTED_LOGS).as_bytes()).unwrap().logs.len(), LISTED_LOGS);
    assert_eq!(fault(&many(LISTED_LOGS + 1)), (0, LogListFault::TooMany));
}

#[test]
fn what_is_known_stays_as_it_is_whatever_lists_say() {
    let mut known = KnownLogs::default();
    let first = listed("one.example", 1, 24);
    assert_eq!(known.take(&first), Ok(true));
    let changed = ListedLog { per_day: 1, contact: "bob".to_owned(), ..first.clone() };
    assert_eq!(known.take(&changed), Ok(false));
    let other = listed("one.example", 9, 24);
    let refused = NotTaken::OtherKey { listed: other.key.clone().into(), known: first.key.clone().into() };
    assert_eq!(known.take(&other), Err(refused));
    assert_eq!(known.logs().collect::<Vec<_>>(), [&first]);
    let new = listed("two.example", 2, 24);
    assert_eq!(known.take(&new), Ok(true));
    known.forget_new(&new);
    assert_eq!(known.logs().collect::<Vec<_>>(), [&first]);
    assert_eq!(KnownLogs::parse(known.write().as_bytes()).unwrap(), known);
    // What it has written itself it must understand.
    assert!(KnownLogs::parse(b"logs/v0\nvkey x\nqpd 1\ncontact y\n").is_err());
    assert!(KnownLogs::parse(b"").is_err());
}

#[test]
fn a_witness_knows_only_so_many_logs_and_can_write_them_down() {
    let mut known = KnownLogs::default();
    let key = SecretKey::from_seed(&[1; 32]).public_key();
    let name = |number: usize| format!("{number:05}{}", "n".repeat(250));
    let log = |number: usize| ListedLog {
        key: VerifierKey::new(&name(number), KeyKind::Log, key).unwrap(),
        per_day: u32::MAX >> 1,
        contact: "c".repeat(LOG_CONTACT_BYTES),
    };
    for number in 0..LISTED_LOGS {
        assert_eq!(known.take(&log(number)), Ok(true), "{number}");
    }
    assert_eq!(known.take(&log(LISTED_LOGS)), Err(NotTaken::Full));
    assert_eq!(known.take(&log(0)), Ok(false), "one that is known is served as before");
    let text = known.write();
    assert!(text.len() <= KnownLogs::MAX_BYTES, "{}", text.len());
    assert_eq!(KnownLogs::parse(text.as_bytes()).unwrap().logs().len(), LISTED_LOGS);
}
