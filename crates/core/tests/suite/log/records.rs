//! Leaves and records: texts of one spelling each.

use countersign_core::log::record::{
    Leaf, LoggedState, NotALeaf, NotARecord, ProjectRecord, Record, ReleaseRecord, digest_changes,
    parse_bundle, project_key, release_key, write_bundle,
};
use countersign_core::log::{tree, trie};
use countersign_core::rules::snapshot::Change;
use countersign_core::values::{bounds::NEWEST_RELEASES, digest::Sha256, digest::Sha512};
use countersign_testing::{INDEX, PROJECT, path};

fn leaf() -> Leaf {
    Leaf {
        commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        object: Sha256::of(b"object"),
        changes: Sha256::of(b"changes"),
        state: Sha256::of(b"state"),
    }
}

fn release(state: LoggedState) -> ReleaseRecord {
    ReleaseRecord { path: path(INDEX), number: 12, index: Sha512::of(b"index"), state }
}

fn project(completed: u32) -> ProjectRecord {
    let indexes = (1..=completed).rev().take(NEWEST_RELEASES);
    ProjectRecord {
        path: path(PROJECT),
        signers: Sha512::of(b"signers"),
        history: 3,
        completed,
        newest: indexes.map(|n| path(&INDEX.replace("/v1/", &format!("/v {n}/")))).collect(),
    }
}

#[test]
fn a_leaf_is_these_lines() {
    let text = leaf().text();
    let expected = format!(
        "countersign/leaf/v1\ncommit 0123456789abcdef0123456789abcdef01234567\nobject {}\nchanges {}\nstate {}\n",
        Sha256::of(b"object"),
        Sha256::of(b"changes"),
        Sha256::of(b"state")
    );
    assert_eq!(text, expected);
    assert_eq!(Leaf::parse(&text), Ok(leaf()));
    assert_eq!(leaf().hash(), tree::leaf_hash(text.as_bytes()));
}

/// The text with each line left out, repeated, or exchanged with the next; with each byte left out; and a few more.
fn near_misses(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut all: Vec<String> = (0..text.len())
        .filter(|n| text.is_char_boundary(*n) && text.is_char_boundary(n + 1))
        .map(|n| format!("{}{}", &text[..n], &text[n + 1..]))
        .collect();
    for n in 0..lines.len() {
        let edited = |edit: &dyn Fn(&mut Vec<&str>)| {
            let mut lines = lines.clone();
            edit(&mut lines);
            lines.concat()
        };
        all.push(edited(&|lines| _ = lines.remove(n)));
        all.push(edited(&|lines| lines.insert(n, lines[n])));
        let next = (n + 1) % lines.len();
        all.push(edited(&|lines| lines.swap(n, next)));
        all.push(edited(&|lines| lines.insert(n, "\n")));
        all.push(edited(&|lines| lines.insert(n, "more\n")));
    }
    all.extend([
        format!("{text}\n"),
        format!("\n{text}"),
        format!(" {text}"),
        text.replace('\n', "\r\n"),
        String::new(),
    ]);
    all.push(text.to_uppercase());
    all.push(text.replacen(' ', "  ", 1));
    all.retain(|miss| miss != text);
    all
}

#[test]
fn a_leaf_has_one_spelling() {
    for miss in near_misses(&leaf().text()) {
        assert_eq!(Leaf::parse(&miss), Err(NotALeaf), "{miss}");
    }
}

#[test]
fn a_bundle_has_each_leaf_behind_its_length() {
    let other = Leaf { state: Sha256::of(b"another state"), ..leaf() };
    let bundle = write_bundle(&[leaf(), other.clone()]);
    let [first, second] = [leaf().text(), other.text()];
    let length = u16::try_from(first.len()).unwrap().to_be_bytes();
    let expected = [&length[..], first.as_bytes(), &length[..], second.as_bytes()].concat();
    assert_eq!(bundle, expected);
    assert_eq!(parse_bundle(&bundle), Ok(vec![leaf(), other]));
    assert_eq!(parse_bundle(b""), Ok(Vec::new()));
    for cut in (1..bundle.len()).filter(|cut| *cut != bundle.len() / 2) {
        assert_eq!(parse_bundle(&bundle[..cut]), Err(NotALeaf), "{cut} bytes");
    }
}

#[test]
fn records_are_these_lines() {
    let (index, revocation) = (Sha512::of(b"index"), Sha512::of(b"revocation"));
    let complete = release(LoggedState::Complete).text();
    assert_eq!(
        complete,
        format!("countersign/release/v1\npath {INDEX}\nnumber 12\nindex {index}\nstate complete\n")
    );
    let revoked = release(LoggedState::Revoked(revocation)).text();
    assert_eq!(revoked, complete.replace("complete", &format!("revoked {revocation}")));
    let signers = Sha512::of(b"signers");
    assert_eq!(
        project(2).text(),
        format!(
            "countersign/project/v1\npath {PROJECT}\nsigners {signers}\nhistory 3\ncompleted 2\n\
             newest 2 {PROJECT}/releases/tag/v 2/svc.index.json\nnewest 1 {PROJECT}/releases/tag/v 1/svc.index.json\n"
        )
    );
    let long = project(12).text();
    assert!(long.contains("newest 12 ") && long.contains("newest 5 ") && !long.contains("newest 4 "));
}

#[test]
fn a_record_has_one_spelling() {
    let releases = [LoggedState::Complete, LoggedState::Revoked(Sha512::of(b""))].map(release);
    for record in
        releases.map(Record::Release).into_iter().chain([0, 1, 2, 8, 9, 12].map(project).map(Record::Project))
    {
        let text = record.text();
        assert_eq!(Record::parse(&text).as_ref(), Ok(&record));
        assert_eq!(record.leaf(), (record.key(), trie::leaf_hash(&record.key(), text.as_bytes())));
        for miss in near_misses(&text) {
            // A letter less in a path is another path, and a digit less another number: a record all the same.
            if let Ok(other) = Record::parse(&miss) {
                assert_eq!(other.text(), miss);
                assert_ne!(other, record);
            }
        }
    }
    for wrong in [
        project(2).text().replace("completed 2", "completed 3"),
        project(2).text().replace("newest 2 ", "newest 3 "),
        project(2).text().replace("completed 2", "completed 4294967296"),
        project(2).text().replace("history 3", "history 0"),
        project(2).text().replace("/v 2/", "/./"),
        project(2).text().replace("path https", "path HTTPS"),
        release(LoggedState::Complete).text().replace("number 12", "number 0"),
        release(LoggedState::Complete).text().replace("number 12", "number 012"),
        release(LoggedState::Complete).text().replace("complete", "pending"),
        release(LoggedState::Complete).text().replace("release/v1", "project/v1"),
        release(LoggedState::Complete).text().replace("release/v1", "release/v2"),
    ] {
        assert_eq!(Record::parse(&wrong), Err(NotARecord), "{wrong}");
    }
    assert_eq!(ReleaseRecord::parse(&project(1).text()), Err(NotARecord));
    assert_eq!(ProjectRecord::parse(&release(LoggedState::Complete).text()), Err(NotARecord));
}

#[test]
fn keys_are_the_digest_of_kind_and_path() {
    let key = |text: &str| *Sha256::of(text.as_bytes()).as_bytes();
    assert_eq!(release_key(&path(INDEX)), key(&format!("release\0{INDEX}")));
    assert_eq!(project_key(&path(PROJECT)), key(&format!("project\0{PROJECT}")));
    assert_eq!(Record::Release(release(LoggedState::Complete)).key(), release_key(&path(INDEX)));
    assert_eq!(Record::Project(project(0)).key(), project_key(&path(PROJECT)));
}

#[test]
fn a_change_list_has_every_path_in_byte_order() {
    let mut change = Change::new("the message does not count");
    change.write(path("https/h/443/b"), b"new".as_slice());
    change.delete(path("https/h/443/a/deep"));
    change.write(path("https/h/443/a-b"), b"".as_slice());
    let (new, empty) = (Sha256::of(b"new"), Sha256::of(b""));
    let list = format!("https/h/443/a-b\0{empty}\nhttps/h/443/a/deep\0-\nhttps/h/443/b\0{new}\n");
    assert_eq!(digest_changes(&change), Sha256::of(list.as_bytes()));
    assert_eq!(digest_changes(&Change::new("")), Sha256::of(b""));
}
