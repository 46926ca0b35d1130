//! `countersign fsck`: tampering with the commits themselves. That any change beside what the rules give is found is
//! proven for every commit in the store's own suite (`audit/replay`).

use crate::support::fsck::assert_found;

const V3: &str = "acme/app/v3/svc.index.json";
const PENDING: &str = "acme/app/svc.signers.pending/svc.signers.json";

#[test]
fn a_history_begins_with_its_first_commit_and_has_no_merges() {
    assert_found(|past, commits| {
        commits.remove(0);
        (0, past.path(PENDING), "the first commit of a history")
    });
    assert_found(|past, commits| {
        let at = past.find("Add", V3);
        commits[at].merges = Some(at - 3);
        (at, String::new(), "it is a merge")
    });
}

#[test]
fn there_are_plain_files_that_the_rules_give_and_nothing_else() {
    // An executable from the beginning, or without a change of content.
    for title in ["Add", "Sign"] {
        assert_found(|past, commits| {
            let (at, path) = (past.find(title, V3), past.path(V3));
            commits[at].write_as("100755", &path, past.content(at, &path));
            (at, path, "an executable")
        });
    }
    assert_found(|past, commits| {
        let at = past.find("Sign", V3);
        commits[at].write_as("120000", "link", "/etc/passwd");
        (at, "link".to_owned(), "it is a link")
    });
    assert_found(|past, commits| {
        let at = past.find("Sign", V3);
        commits[at].write("back\\slash", "");
        (at, "back\\slash".to_owned(), "no path can spell")
    });
    // A file in the place of a directory.
    assert_found(|past, commits| {
        let (at, dir) = (past.find("Register", "acme/new"), past.path("acme/app/v1"));
        let paths = commits.iter().flat_map(|commit| commit.files.keys());
        let below: Vec<String> = paths.filter(|path| path.starts_with(&format!("{dir}/"))).cloned().collect();
        below.iter().for_each(|path| commits[at].remove(path));
        commits[at].write(&dir, "");
        (at, dir, "a file became a directory")
    });
}
