//! The reader believes nothing.

use countersign_core::rules::snapshot::Change;
use countersign_store::journal::read::{JournalError, JournalFault, JournalReader};
use countersign_store::journal::write_entries;
use proptest::{prelude::*, sample::Index};

use super::{entry, fault, id, read_all, write_one};
use crate::support::change;

fn good() -> String {
    let entries = [
        entry(id('a'), None, change(&["+https/a/443/b=one", "+https/a/443/c=one"])),
        entry(id('b'), Some(id('a')), change(&["+https/a/443/b=two\n", "-https/a/443/c"])),
    ];
    String::from_utf8(write_entries(&entries)).unwrap()
}

fn fault_with(from: &str, to: &str) -> JournalFault {
    let good = good();
    assert!(good.contains(from), "{from}");
    fault(&good.replacen(from, to, 1))
}

#[test]
fn every_line_has_one_spelling() {
    for (from, to) in [
        ("commit refs/heads/main", "commit refs/heads/other"),
        ("commit refs/heads/main", "reset refs/heads/main"),
        ("commit refs/heads/main", "feature done\ncommit refs/heads/main"),
        ("commit refs/heads/main\n", "commit refs/heads/main\nmark :1\n"),
        ("commit refs/heads/main\n", "commit refs/heads/main\r\n"),
        ("commit refs/heads/main", "\ncommit refs/heads/main"),
        ("original-oid aaaa", "original-oid AAAA"),
        ("original-oid aaaa", "original-oid aaa"),
        ("original-oid aaaa", "original-oid aaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        ("author Countersign", "author  Countersign"),
        ("author Countersign <", "author <"),
        ("1700000000 +0000", "01700000000 +0000"),
        ("1700000000 +0000", "-1 +0000"),
        ("1700000000 +0000", "1700000000 +0100"),
        ("1700000000 +0000", "1700000000 -0000"),
        ("data 45\n", "data 045\n"),
        ("data 45\n", "data +45\n"),
        ("data 45\n", "data <<END\n"),
        ("M 100644 inline", "M 100755 inline"),
        ("M 100644 inline", "M 644 inline"),
        ("M 100644 inline", "M 120000 inline"),
        ("M 100644 inline", "M 100644 :1"),
        ("data 3\none", "data 03\none"),
        ("D https", "deleteall\nD https"),
        ("D https", "R https/a/443/b https/a/443/d\nD https"),
        ("D https", "N inline :1\nD https"),
    ] {
        let found = fault_with(from, to);
        let is_expected =
            matches!(found, JournalFault::Line { .. } | JournalFault::Path(_) | JournalFault::OtherCommitter);
        assert!(is_expected, "{to}: {found:?}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    assert_eq!(fault_with("committer Countersign", "committer Someone"), JournalFault::OtherCommitter);
    assert_eq!(
        fault_with(
            "committer Countersign <countersign@localhost> 17",
            "committer Countersign <countersign@localhost> 16"
        ),
        JournalFault::OtherCommitter
    );
    let unended = fault_with("data 3\none\n", "data 2\none\n");
    assert!(matches!(unended, JournalFault::Unended(_)), "{unended:?}");
    let second = fault_with("D https", &format!("from {}\nD https", id('a')));
    assert!(matches!(second, JournalFault::Line { .. }), "{second:?}");
    let text = good();
    let (first, last) = text.split_at(text.rfind("M 100644").unwrap());
    assert_eq!(fault(&format!("{first}from {}\n{last}", id('a'))), JournalFault::NamesParent);
    let unknown = fault_with("M 100644 43dd47", "M 100644 53dd47");
    assert!(matches!(unknown, JournalFault::UnknownContent { .. }), "{unknown:?}");
}

#[test]
fn only_paths_that_a_request_can_spell_are_read() {
    for path in [
        "", "/", "/x", "x/", "x//y", "./x", "x/..", ".git/config", "x/.GIT/y", "a\\b", "a\tb", "\u{7f}",
        "HTTPS/a/443/b", "https/A/443/b", "https/a/b", "\"a\"", "\"\"", "\"", "\"a\\\"", "\"a\\nb\"",
        "\"\\\"a\\\"", "\"\\\"\\\\\"",
    ] {
        let found = fault_with("D https/a/443/c", &format!("D {path}"));
        let is_expected = matches!(found, JournalFault::Path(_));
        assert!(is_expected, "{path}: {found:?}");
    }
}

#[test]
fn files_come_in_order_and_once() {
    for path in ["https/a/443/b", "https/a/443/a", "a"] {
        let found = fault_with("D https/a/443/c", &format!("D {path}"));
        assert!(matches!(found, JournalFault::Order(_)), "{path}: {found:?}");
    }
}

#[test]
fn a_message_is_as_a_server_records_it() {
    for message in ["", "no line break", "two\n\n", "space \n", "nul\0\n"] {
        let mut entry = entry(id('a'), None, Change::default());
        entry.change.message = message.to_owned();
        let read = read_all(&write_entries([&entry]));
        assert_eq!(read.unwrap_err().fault, JournalFault::OddMessage, "{message:?}");
    }
    let mut bytes = write_one(Change::new("x\u{ff}"));
    let at = bytes.windows(2).position(|pair| pair == "\u{ff}".as_bytes()).unwrap();
    bytes[at] = 0xff;
    assert_eq!(read_all(&bytes).unwrap_err().fault, JournalFault::OddMessage);
}

#[test]
fn an_error_says_after_which_commit_and_stays() {
    let text = good();
    let broken = text.replace("D https", "E https");
    let mut reader = JournalReader::default();
    reader.push(broken.as_bytes());
    assert_eq!(reader.next().unwrap().unwrap().id, id('a'));
    let error = reader.next().unwrap_err();
    assert_eq!(error.after, Some(id('a')));
    assert!(error.to_string().contains(&format!("after the commit {}", id('a'))), "{error}");
    assert!(error.to_string().contains("\"E https/a/443/c\""), "{error}");
    reader.push(text.as_bytes());
    assert_eq!(reader.next().unwrap_err(), error);
    assert_eq!(reader.finish().unwrap_err(), error);
}

#[test]
fn a_stream_that_is_cut_is_known_by_its_end() {
    let text = good();
    let first = text.find("\n\ncommit").unwrap() + 2;
    for end in 0..text.len() {
        let read = read_all(&text.as_bytes()[..end]);
        let after = (end >= first).then_some(id('a'));
        match read {
            Ok(entries) => {
                assert_eq!((end == 0 || end == first, entries.len()), (true, usize::from(end > 0)))
            }
            Err(error) => assert_eq!(error, JournalError { after, fault: JournalFault::Cut }, "{end}"),
        }
    }
}

proptest! {
    /// Never a panic, and never the same entries: each has one spelling.
    #[test]
    fn a_changed_byte_is_an_error_or_another_entry(at in any::<Index>(), to in any::<u8>()) {
        let good = good();
        let mut changed = good.clone().into_bytes();
        let at = at.index(changed.len());
        prop_assume!(changed[at] != to);
        changed[at] = to;
        if let Ok(entries) = read_all(&changed) {
            prop_assert_ne!(&entries, &read_all(good.as_bytes()).unwrap());
            prop_assert_eq!(write_entries(&entries), changed);
        }
    }

    #[test]
    fn removed_or_inserted_bytes_are_as_well(at in any::<Index>(), to in any::<Vec<u8>>(), removed in 0_usize..20) {
        let mut changed = good().into_bytes();
        let at = at.index(changed.len());
        let end = (at + removed).min(changed.len());
        changed.splice(at..end, to);
        if let Ok(entries) = read_all(&changed) {
            prop_assert_eq!(write_entries(&entries), changed);
        }
    }
}
