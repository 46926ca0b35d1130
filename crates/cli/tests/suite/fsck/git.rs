//! `countersign fsck`: tampering with the commits themselves.

use crate::support::{Person, fsck::Tampering, fsck::assert_found};

const V1: &str = "acme/app/v1/svc.index.json";
const V3: &str = "acme/app/v3/svc.index.json";
const PENDING: &str = "acme/app/svc.signers.pending/svc.signers.json";

#[test]
fn commits_are_in_their_order_and_each_is_there() {
    assert_found(&[
        Tampering {
            name: "two commits are swapped",
            tamper: |past, commits| {
                let at = past.find("Sign", PENDING);
                commits.swap(at, at + 1);
                (at, format!("{}.signatures.json.pending", past.path(PENDING)), "not what the rules produce")
            },
        },
        Tampering {
            name: "a signature comes before what it signs",
            tamper: |past, commits| {
                let at = past.find("Add", V1);
                commits.swap(at, at + 1);
                (at, past.path(V1), "File not found")
            },
        },
        Tampering {
            name: "a commit is left out",
            tamper: |past, commits| {
                let at = past.find("Add", V3);
                commits.remove(at);
                (at, past.path(V3), "File not found")
            },
        },
        Tampering {
            name: "two commits are one",
            tamper: |past, commits| {
                let at = past.find("Register", "acme/lib");
                let second = commits.remove(at + 1);
                commits[at].files.extend(second.files);
                let set = "acme/lib/svc.signers.pending/svc.signers.json.signatures.json.pending";
                (at, past.path(set), "not what the rules produce")
            },
        },
        Tampering {
            name: "a commit is there twice",
            tamper: |past, commits| {
                let at = past.find("Add", V3);
                commits.insert(at, commits[at].clone());
                (at + 1, String::new(), "changes nothing")
            },
        },
        Tampering {
            name: "the first commit is missing",
            tamper: |past, commits| {
                commits.remove(0);
                let path = "acme/app/svc.signers.pending/svc.signers.json";
                (0, past.path(path), "the first commit of a history")
            },
        },
        Tampering {
            name: "the repository is created again",
            tamper: |past, commits| {
                let mut again = commits[0].clone();
                let time = String::from_utf8(past.content(0, "svc.repository.json")).unwrap();
                again.write("svc.repository.json", time.replace("\"20", "\"19"));
                commits.push(again);
                (commits.len() - 1, "svc.repository.json".to_owned(), "no other commit does")
            },
        },
        Tampering {
            name: "the repository is older than its first commit",
            tamper: |_, commits| {
                commits[0].edit("svc.repository.json", "\"created_at\": \"20", "\"created_at\": \"19");
                (0, "svc.repository.json".to_owned(), "the commit was made at")
            },
        },
        Tampering {
            name: "a merge",
            tamper: |past, commits| {
                let at = past.find("Add", V3);
                commits[at].merges = Some(at - 3);
                (at, String::new(), "it is a merge")
            },
        },
    ]);
}

#[test]
fn a_message_says_what_happened_and_a_time_when() {
    assert_found(&[
        Tampering {
            name: "another message",
            tamper: |past, commits| {
                let at = past.find("Sign", V1);
                commits[at].message = "Update files\n".to_owned();
                (at, format!("{}.signatures.json.pending", past.path(V1)), "nothing that the server says")
            },
        },
        Tampering {
            name: "a message with one more line",
            tamper: |past, commits| {
                let at = past.find("Sign", V1);
                commits[at].message.push_str("Approved-by: the operator\n");
                (at, format!("{}.signatures.json.pending", past.path(V1)), "the message is not the one")
            },
        },
        Tampering {
            name: "someone else is said to have signed",
            tamper: |past, commits| {
                let at = past.find("Sign", V1);
                let keys = (Person::named("alice").key(), Person::named("carol").key());
                commits[at].message = commits[at].message.replace(&keys.0, &keys.1);
                (at, format!("{}.signatures.json.pending", past.path(V1)), "holds no signature of")
            },
        },
        Tampering {
            name: "a replacement that says to be a first proposal",
            tamper: |past, commits| {
                let at = past.find("Replace the proposed signers of", "acme/app");
                let old = "Replace the proposed signers of";
                commits[at].message = commits[at].message.replace(old, "Propose signers for");
                (at, past.path(PENDING), "the message is not the one")
            },
        },
        Tampering {
            name: "another number of files",
            tamper: |past, commits| {
                let at = past.find("Add", V3);
                commits[at].message = commits[at].message.replace("Files: 1", "Files: 2");
                (at, past.path(V3), "the message is not the one")
            },
        },
        Tampering {
            name: "a commit is dated a day later",
            tamper: |past, commits| {
                let at = past.find("Sign", V1);
                commits[at].delay(24 * 60 * 60);
                (at, format!("{}.signatures.json.pending", past.path(V1)), "the commit was made at")
            },
        },
        Tampering {
            name: "a registration is dated a year back",
            tamper: |past, commits| {
                let at = past.find("Register", "acme/lib");
                commits[at].delay(-365 * 24 * 60 * 60);
                let metadata = "acme/lib/svc.signers.pending/svc.signers.json.metadata.json";
                (at, past.path(metadata), "the commit was made at")
            },
        },
    ]);
}

#[test]
fn there_are_plain_files_that_the_rules_give_and_nothing_else() {
    assert_found(&[
        Tampering {
            name: "a file at the root",
            tamper: |past, commits| {
                let at = past.find("Sign", V1);
                commits[at].write("README.md", "Hello\n");
                (at, "README.md".to_owned(), "it was added")
            },
        },
        Tampering {
            name: "a file beside an index, named like ours",
            tamper: |past, commits| {
                let (at, path) = (past.find("Sign", V3), format!("{}.signatures.json", past.path(V3)));
                commits[at].write(&path, "{\n  \"entries\": {}\n}\n");
                (at, path, "it was added")
            },
        },
        Tampering {
            name: "an executable",
            tamper: |past, commits| {
                let (at, path) = (past.find("Add", V3), past.path(V3));
                commits[at].write_as("100755", &path, past.content(at, &path));
                (at, path, "an executable")
            },
        },
        Tampering {
            name: "a file becomes executable without a change of content",
            tamper: |past, commits| {
                let (at, path) = (past.find("Sign", V3), past.path(V3));
                commits[at].write_as("100755", &path, past.content(at, &path));
                (at, path, "an executable")
            },
        },
        Tampering {
            name: "a link",
            tamper: |past, commits| {
                let at = past.find("Sign", V3);
                commits[at].write_as("120000", "link", "/etc/passwd");
                (at, "link".to_owned(), "it is a link")
            },
        },
        Tampering {
            name: "a name that no path can spell",
            tamper: |past, commits| {
                let at = past.find("Sign", V3);
                commits[at].write("back\\slash", "");
                (at, "back\\slash".to_owned(), "no path can spell")
            },
        },
        Tampering {
            name: "a file in the place of a directory",
            tamper: |past, commits| {
                let (at, dir) = (past.find("Register", "acme/new"), past.path("acme/app/v1"));
                let below: Vec<String> = commits
                    .iter()
                    .flat_map(|commit| commit.files.keys())
                    .filter(|path| path.starts_with(&format!("{dir}/")))
                    .cloned()
                    .collect();
                let commit = &mut commits[at];
                below.iter().for_each(|path| commit.remove(path));
                commit.write(&dir, "");
                (at, dir, "a file became a directory")
            },
        },
    ]);
}
