//! What is written is read back, and `git fast-import` reads it as well (CLI `journal/` checks that).

use std::{collections::BTreeMap, sync::Arc};

use countersign_core::{rules::snapshot::Change, values::path::RepoPath};
use countersign_store::journal::write_entries;
use proptest::{collection, option, prelude::*, sample};

use super::{entry, id, read_in_pieces};
use crate::support::{change, path};

#[test]
fn an_entry_is_what_git_reads() {
    let mut second =
        change(&["+https/a/443/b=new\n", "+https/a/443/copy=new\n", "-https/a/443/gone", "+\"q\"/x=1"]);
    second.message = "Sign it\n\nBy: me".to_owned();
    let entries = [entry(id('a'), Some(id('0')), change(&["+x="])), entry(id('b'), Some(id('a')), second)];
    let stream = String::from_utf8(write_entries(&entries)).unwrap();
    let expected = "\
commit refs/heads/main
original-oid aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
author Countersign <countersign@localhost> 1700000000 +0000
committer Countersign <countersign@localhost> 1700000000 +0000
data 11
Change +x=
from 0000000000000000000000000000000000000000
M 100644 inline x
data 0


commit refs/heads/main
original-oid bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
author Countersign <countersign@localhost> 1700000000 +0000
committer Countersign <countersign@localhost> 1700000000 +0000
data 16
Sign it

By: me
M 100644 inline \"\\\"q\\\"/x\"
data 1
1
M 100644 inline https/a/443/b
data 4
new

M 100644 3e757656cf36eca53338e520d134963a44f793f8 https/a/443/copy
D https/a/443/gone

";
    assert_eq!(stream, expected);
    assert_eq!(read_in_pieces(stream.as_bytes(), 7).unwrap(), entries);
}

fn paths() -> impl Strategy<Value = RepoPath> {
    let names = sample::select(vec![
        "a", "b.json", "\"", "a\"b", " ", "a b", "ü", "日本", "'", "x~", "M 100644", "-",
    ]);
    collection::vec(names, 1..4).prop_map(|names| path(&names.join("/")))
}

fn changes() -> impl Strategy<Value = Change> {
    // Few contents, so that some are repeated; with whatever could end a line or look like a command.
    let contents =
        sample::select(vec!["", "\n", "x", "data 3\n", "\n\ncommit refs/heads/main\n", "\0\u{ff}"]);
    let contents = prop_oneof![contents.prop_map(|text| text.as_bytes().to_vec()), any::<Vec<u8>>()];
    let files = collection::btree_map(paths(), option::of(contents), 0..6);
    (files, ".{0,40}\n?.{0,40}").prop_map(|(files, message)| {
        let files: BTreeMap<_, _> =
            files.into_iter().map(|(path, content)| (path, content.map(Arc::<[u8]>::from))).collect();
        Change { files, message }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        changes in collection::vec(changes(), 0..4),
        parent in option::of(Just(id('f'))),
        piece in 1_usize..300,
    ) {
        let mut last = parent;
        let mut entries = Vec::new();
        for (digit, change) in "0123".chars().zip(changes) {
            entries.push(entry(id(digit), last, change));
            last = Some(id(digit));
        }
        let read = read_in_pieces(&write_entries(&entries), piece);
        prop_assert_eq!(read.unwrap(), entries);
    }
}
