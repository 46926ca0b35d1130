//! `countersign fsck`: tampering with the commits themselves. That any change beside what the rules give is found is proven
//! for every commit in the store's own suite (`audit/replay`).

use crate::support::fsck::assert_found;

const V1: &str = "acme/app/v1/svc.index.json";
const V3: &str = "acme/app/v3/svc.index.json";
const PENDING: &str = "acme/app/svc.signers.pending/svc.signers.json";

#[test]
fn each_commit_is_there_once_in_its_place_and_says_what_happened_and_when() {
    assert_found(|past, commits| {
        let at = past.find("Sign", PENDING);
        commits.swap(at, at + 1);
        (at, format!("{}.signatures.json.pending", past.path(PENDING)), "not what the rules produce")
    });
    assert_found(|past, commits| {
        let at = past.find("Add", V3);
        commits.remove(at);
        (at, past.path(V3), "File not found")
    });
    assert_found(|past, commits| {
        let at = past.find("Add", V3);
        commits.insert(at, commits[at].clone());
        (at + 1, String::new(), "changes nothing")
    });
    assert_found(|past, commits| {
        commits.remove(0);
        (0, past.path(PENDING), "the first commit of a history")
    });
    assert_found(|past, commits| {
        let at = past.find("Add", V3);
        commits[at].merges = Some(at - 3);
        (at, String::new(), "it is a merge")
    });
    assert_found(|past, commits| {
        let at = past.find("Sign", V1);
        commits[at].message = "Update files\n".to_owned();
        (at, format!("{}.signatures.json.pending", past.path(V1)), "nothing that the server says")
    });
    assert_found(|past, commits| {
        let at = past.find("Sign", V1);
        commits[at].delay(24 * 60 * 60);
        (at, format!("{}.signatures.json.pending", past.path(V1)), "the commit was made at")
    });
}

#[test]
fn there_are_plain_files_that_the_rules_give_and_nothing_else() {
    assert_found(|past, commits| {
        let at = past.find("Sign", V1);
        commits[at].write("README.md", "Hello\n");
        (at, "README.md".to_owned(), "it was added")
    });
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
