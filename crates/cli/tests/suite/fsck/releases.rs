//! `countersign fsck`: tampering with releases, their signatures and their revocations.

use countersign_core::values::time::Timestamp;
use serde_json::{Value, json};

use crate::support::{
    Person,
    fsck::{Tampering, assert_found},
    past::Past,
    rewriting::Commit,
};

const V1: &str = "acme/app/v1/svc.index.json";
const V2: &str = "acme/app/v2/svc.index.json";
const V3: &str = "acme/app/v3/svc.index.json";
const V4: &str = "acme/app/v4/svc.index.json";
const LIB: &str = "acme/lib/v1/svc.index.json";

fn append(past: &Past, commits: &mut Vec<Commit>, message: &str, fill: impl FnOnce(&mut Commit)) -> usize {
    let mut commit = past.commits[past.last()].beside(message);
    fill(&mut commit);
    commits.push(commit);
    commits.len() - 1
}

/// The signatures file with one more entry, made when the newest commit was.
fn with_signature(past: &Past, set: &str, person: &Person, content: &[u8]) -> String {
    let commit = &past.commits[past.last()];
    let seconds = commit.who.rsplit(' ').nth(1).unwrap().parse().unwrap();
    let collected_at = Timestamp::from_unix_seconds(seconds).unwrap().to_string();
    let mut set: Value = serde_json::from_slice(&past.content(past.last(), set)).unwrap();
    let entry =
        format!(r#"{{"signature": "{}", "collected_at": "{collected_at}"}}"#, person.sign_bytes(content));
    set["entries"][person.key()] = json!("HERE");
    let entry: String = entry.replace(", ", ",\n      ").replace('{', "{\n      ").replace('}', "\n    }");
    format!("{set:#}\n").replace("\"HERE\"", &entry)
}

fn flip_digest(text: &str) -> (String, String) {
    let at = text.find("\"sha256\": \"").expect("a digest") + "\"sha256\": \"".len();
    let old = text[at..at + 64].to_owned();
    let new: String = old.chars().rev().collect();
    (old, new)
}

#[test]
fn an_index_is_what_was_signed() {
    assert_found(&[
        Tampering {
            name: "an index is rewritten before anyone signs",
            tamper: |past, commits| {
                let (at, path) = (past.find("Add", V1), past.path(V1));
                let (old, new) = flip_digest(&String::from_utf8(past.content(at, &path)).unwrap());
                commits[at].edit(&path, &old, &new);
                (past.find("Sign", V1), path, "does not verify")
            },
        },
        Tampering {
            name: "an index is rewritten after it is complete",
            tamper: |past, commits| {
                let (at, path) = (past.find("Register", "acme/lib"), past.path(V1));
                let text = String::from_utf8(past.content(at, &path)).unwrap();
                let (old, new) = flip_digest(&text);
                commits[at].write(&path, text.replace(&old, &new));
                (at, path, "not part of what the commit claims")
            },
        },
        Tampering {
            name: "a complete index is corrected",
            tamper: |past, commits| {
                let path = past.path(V4);
                let text = String::from_utf8(past.content(past.last(), &path)).unwrap();
                let (old, new) = flip_digest(&text);
                let message = format!("Correct {path}\n\nBy: {}\nFiles: 1\n", Person::named("alice").key());
                let at =
                    append(past, commits, &message, |commit| commit.write(&path, text.replace(&old, &new)));
                (at, path, "already registered")
            },
        },
        Tampering {
            name: "a correction keeps the signatures",
            tamper: |past, commits| {
                let at = past.find("Correct", V2);
                let path = format!("{}.signatures.json.pending", past.path(V2));
                commits[at].files.remove(&path);
                (at, path, "not what the rules produce")
            },
        },
        Tampering {
            name: "an index speaks of another directory",
            tamper: |past, commits| {
                let (at, path) = (past.find("Add", V3), past.path(V3));
                commits[at].edit(&path, "/acme/app/v3/", "/acme/app/v1/");
                (at, path, "comes from another place")
            },
        },
        Tampering {
            name: "an index is added by someone who is no signer",
            tamper: |past, commits| {
                let (at, path) = (past.find("Add", V3), past.path(V3));
                let keys = (Person::named("alice").key(), Person::named("mallory").key());
                commits[at].message = commits[at].message.replace(&keys.0, &keys.1);
                (at, path, "is not in the current signers file")
            },
        },
        Tampering {
            name: "the governing copy is swapped when it is made",
            tamper: |past, commits| {
                let (at, path) = (past.find("Add", V3), format!("{}.signers.json", past.path(V3)));
                commits[at].write(
                    &path,
                    past.content(past.find("Add", V1), &format!("{}.signers.json", past.path(V1))),
                );
                (at, path, "not what the rules produce")
            },
        },
        Tampering {
            name: "the governing copy is swapped later",
            tamper: |past, commits| {
                let (at, path) =
                    (past.find("Register", "acme/new"), format!("{}.signers.json", past.path(V4)));
                commits[at].write(
                    &path,
                    past.content(past.find("Add", V1), &format!("{}.signers.json", past.path(V1))),
                );
                (at, path, "not part of what the commit claims")
            },
        },
        Tampering {
            name: "a rotation leaves an index under the old signers",
            tamper: |past, commits| {
                let at = past.nth(1, "Activate the signers of", "acme/app");
                let path = format!("{}.signers.json", past.path(V2));
                commits[at].files.remove(&path).expect("the rotation replaces it");
                (at, path, "not what the rules produce")
            },
        },
        Tampering {
            name: "a rotation keeps the signatures of an index",
            tamper: |past, commits| {
                let at = past.nth(1, "Activate the signers of", "acme/app");
                let path = format!("{}.signatures.json.pending", past.path(V2));
                commits[at].files.remove(&path).expect("the rotation replaces it");
                (at, path, "not what the rules produce")
            },
        },
    ]);
}

#[test]
fn signatures_are_those_that_were_given() {
    fn sign_v3(past: &Past, commits: &mut Vec<Commit>, person: &Person, content: &[u8]) -> usize {
        let (path, set) = (past.path(V3), format!("{}.signatures.json.pending", past.path(V3)));
        let text = with_signature(past, &set, person, content);
        let message = format!("Sign {path}\n\nBy: {}\n", person.key());
        append(past, commits, &message, |commit| commit.write(&set, text))
    }
    assert_found(&[
        Tampering {
            name: "a stranger signs",
            tamper: |past, commits| {
                let content = past.content(past.last(), &past.path(V3));
                let at = sign_v3(past, commits, &Person::named("mallory"), &content);
                (at, past.path(V3), "may not sign")
            },
        },
        Tampering {
            name: "a revoker signs, who is no artifact signer",
            tamper: |past, commits| {
                let content = past.content(past.last(), &past.path(V3));
                let at = sign_v3(past, commits, &Person::named("erin"), &content);
                (at, past.path(V3), "may not sign")
            },
        },
        Tampering {
            name: "a signature is over something else",
            tamper: |past, commits| {
                let at = sign_v3(past, commits, &Person::named("bob"), b"something else");
                (at, past.path(V3), "does not verify")
            },
        },
        Tampering {
            name: "a release is complete with too few",
            tamper: |past, commits| {
                let at = past.find("Sign", V4);
                let (pending, complete) = (
                    format!("{}.signatures.json.pending", past.path(V4)),
                    format!("{}.signatures.json", past.path(V4)),
                );
                let set = past.content(at, &pending);
                commits[at].remove(&pending);
                commits[at].write(&complete, set);
                commits[at].message = commits[at].message.replacen("Sign", "Sign and complete", 1);
                (at, complete, "do not reach the threshold")
            },
        },
        Tampering {
            name: "a release that has enough stays incomplete",
            tamper: |past, commits| {
                let at = past.find("Sign and complete", V4);
                let (pending, complete) = (
                    format!("{}.signatures.json.pending", past.path(V4)),
                    format!("{}.signatures.json", past.path(V4)),
                );
                let set = past.content(at, &complete);
                commits[at].files.clear();
                commits[at].write(&pending, set);
                commits[at].message = commits[at].message.replacen("Sign and complete", "Sign", 1);
                (at, pending, "is not made complete")
            },
        },
        Tampering {
            name: "a signature is taken out of a complete release",
            tamper: |past, commits| {
                let (at, path) =
                    (past.find("Register", "acme/new"), format!("{}.signatures.json", past.path(V4)));
                let mut set: Value = serde_json::from_slice(&past.content(at, &path)).unwrap();
                set["entries"].as_object_mut().unwrap().remove(&Person::named("bob").key());
                commits[at].write(&path, format!("{set:#}\n"));
                (at, path, "not part of what the commit claims")
            },
        },
        Tampering {
            name: "a signature is dated back",
            tamper: |past, commits| {
                let (at, path) =
                    (past.find("Sign", V3), format!("{}.signatures.json.pending", past.path(V3)));
                let set: Value = serde_json::from_slice(&past.content(at, &path)).unwrap();
                let time =
                    set["entries"][Person::named("alice").key()]["collected_at"].as_str().unwrap().to_owned();
                commits[at].edit(&path, &time, "2026-01-02T03:04:05Z");
                (at, path, "the commit was made at")
            },
        },
        Tampering {
            name: "two sign in one commit",
            tamper: |past, commits| {
                let (at, path) =
                    (past.find("Sign", V3), format!("{}.signatures.json.pending", past.path(V3)));
                let content = past.content(past.last(), &past.path(V3));
                let text = with_signature(past, &path, &Person::named("bob"), &content);
                commits[at].write(&path, text);
                (at, path, "not what the rules produce")
            },
        },
    ]);
}

#[test]
fn a_revocation_stays_and_is_made_by_those_who_may() {
    fn restore(past: &Past, commit: &mut Commit) -> String {
        let path = past.path(V1);
        let revoked = format!("{path}.signatures.json.revoked");
        commit.write(&format!("{path}.signatures.json"), past.content(past.last(), &revoked));
        commit.remove(&revoked);
        for suffix in ["", ".signatures.json", ".signers.json"] {
            commit.remove(&format!("{path}.revocation.json{suffix}"));
        }
        format!("{path}.revocation.json")
    }
    assert_found(&[
        Tampering {
            name: "a revocation is removed by a commit of its own",
            tamper: |past, commits| {
                let mut file = String::new();
                let at = append(past, commits, "Tidy up\n", |commit| file = restore(past, commit));
                (at, file, "nothing that the server says")
            },
        },
        Tampering {
            name: "a revocation is removed in passing",
            tamper: |past, commits| {
                let at = past.find("Register", "acme/new");
                let file = restore(past, &mut commits[at]);
                (at, file, "it was removed")
            },
        },
        Tampering {
            name: "one revokes where two must",
            tamper: |past, commits| {
                let at = past.find("Record a revocation signature on", V1);
                let mut revoked = commits[past.find("Revoke", V1)].clone();
                let set = format!("{}.revocation.json.signatures.json", past.path(V1));
                revoked.write(&set, past.content(at, &format!("{set}.pending")));
                revoked.files.retain(|path, _| !path.ends_with(".pending"));
                revoked.message = commits[at].message.replace("Record a revocation signature on", "Revoke");
                commits[at] = revoked;
                (at, set, "do not reach the threshold")
            },
        },
        Tampering {
            name: "the reason is another one",
            tamper: |past, commits| {
                let (at, path) = (past.find("Record a revocation signature on", V1), past.path(V1));
                commits[at].edit(&format!("{path}.revocation.json.pending"), "key leaked", "no reason");
                (at, path, "does not verify")
            },
        },
        Tampering {
            name: "the governing copy of a revocation is another one",
            tamper: |past, commits| {
                let at = past.find("Revoke", V1);
                let path = format!("{}.revocation.json.signers.json", past.path(V1));
                commits[at].write(
                    &path,
                    past.content(past.find("Add", V1), &format!("{}.signers.json", past.path(V1))),
                );
                (at, path, "not what the rules produce")
            },
        },
        Tampering {
            name: "the request behind a revocation is for another file",
            tamper: |past, commits| {
                let at = past.find("Revoke", LIB);
                let path = format!("{}.revocation.json.request.json", past.path(LIB));
                commits[at].edit(&path, "/acme/lib/v1/", "/acme/lib/v2/");
                (at, path, "another revocation")
            },
        },
        Tampering {
            name: "the request behind a revocation is missing",
            tamper: |past, commits| {
                let at = past.find("Revoke", LIB);
                let path = format!("{}.revocation.json.request.json", past.path(LIB));
                commits[at].files.remove(&path);
                (at, path, "not written")
            },
        },
        Tampering {
            name: "a pending revocation is withdrawn",
            tamper: |past, commits| {
                let (at, path) = (past.find("Register", "acme/new"), past.path(V4));
                commits[at].remove(&format!("{path}.revocation.json.pending"));
                (at, format!("{path}.revocation.json.pending"), "it was removed")
            },
        },
    ]);
}

#[test]
fn an_index_says_what_a_server_can_know() {
    const V3: &str = "acme/app/v3/svc.index.json";
    assert_found(&[
        Tampering {
            name: "a size, which checksums files do not tell",
            tamper: |past, commits| {
                let at = past.find("Add", V3);
                commits[at].edit(&past.path(V3), "\"size\": null", "\"size\": 5");
                (at, past.path(V3), "checksums files do not tell")
            },
        },
        Tampering {
            name: "a time of publication, which they do not tell either",
            tamper: |past, commits| {
                let at = past.find("Add", V3);
                let told = "\"published_on\": \"2001-01-01T00:00:00Z\"";
                commits[at].edit(&past.path(V3), "\"published_on\": null", told);
                (at, past.path(V3), "checksums files do not tell")
            },
        },
        Tampering {
            name: "no files",
            tamper: |past, commits| {
                let (at, path) = (past.find("Add", V3), past.path(V3));
                let text = String::from_utf8(past.content(at, &path)).unwrap();
                let begin = text.find("\"published_files\"").unwrap();
                commits[at].write(&path, format!("{}\"published_files\": []\n}}\n", &text[..begin]));
                (at, path, "lists no file")
            },
        },
    ]);
}
