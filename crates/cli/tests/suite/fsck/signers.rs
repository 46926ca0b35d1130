//! `countersign fsck`: tampering with signers files, and with what they were agreed to by.

use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use crate::support::{
    Person, Request, SignersFile,
    fsck::{Tampering, assert_found},
    past::Past,
    people::now,
    rewriting::Commit,
};

const APP: &str = "acme/app";
const ACTIVE: &str = "acme/app/svc.signers/svc.signers.json";
const PENDING: &str = "acme/app/svc.signers.pending/svc.signers.json";
const HISTORY: &str = "acme/app/svc.signers.history";

fn lower(text: &[u8]) -> String {
    let text = String::from_utf8(text.to_vec()).unwrap();
    assert!(text.contains("\"threshold\":2"), "{text}");
    text.replacen("\"threshold\":2", "\"threshold\":1", 1)
}

/// Adds a commit behind all others.
fn append(past: &Past, commits: &mut Vec<Commit>, message: &str, fill: impl FnOnce(&mut Commit)) -> usize {
    let mut commit = past.commits[past.last()].beside(message);
    fill(&mut commit);
    commits.push(commit);
    commits.len() - 1
}

/// The files of a registration by `person`, with a request that is rightly signed.
fn write_registration(
    commit: &mut Commit,
    project: &str,
    person: &Person,
    file: &SignersFile,
    payload: &Value,
) {
    let signed = person.sign(Request::post("/v1/register_repo", payload));
    let pending = format!("{project}/svc.signers.pending/svc.signers.json");
    let url = payload["signers_file_url"].as_str().unwrap();
    let metadata = json!({
        "version": 1,
        "origin": { "kind": "file_server", "url": url, "retrieval_url": url, "retrieved_at": now().to_whole_seconds().to_string() },
        "project_id": project,
        "signers_file_digest": Sha512::of(&file.bytes()).to_prefixed(),
        "previous": null,
    });
    let request = json!({
        "timestamp": signed.header("X-svc-timestamp"),
        "nonce": signed.header("X-svc-nonce"),
        "payload": payload.to_string(),
        "public_key": person.key(),
        "signature": format!("{}==", signed.header("X-svc-sig")),
    });
    let empty = "{\n  \"entries\": {}\n}\n";
    commit.write(&pending, file.bytes());
    commit.write(&format!("{pending}.metadata.json"), pretty(&metadata));
    commit.write(&format!("{pending}.registration.json"), pretty(&request));
    commit.write(&format!("{pending}.signatures.json.pending"), empty);
    commit.write(&format!("{pending}.metadata.json.signatures.json.pending"), empty);
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn url_of(past: &Past, name: &str) -> String {
    let path = past.path(name);
    let [scheme, host, port, rest] = path.splitn(4, '/').collect::<Vec<_>>()[..] else { panic!("{path}") };
    format!("{scheme}://{host}:{port}/{rest}/svc.signers.json")
}

fn register_evil(past: &Past, commits: &mut Vec<Commit>, project: &str, url: &str) -> usize {
    let mallory = Person::named("mallory");
    let id = past.path(project);
    let message = format!("Register {id}\n\nBy: {}\nFrom: {url}\n", mallory.key());
    let payload = json!({ "signers_file_url": url, "public_key": mallory.body_key() });
    let file = SignersFile::of(1, &[&mallory]);
    append(past, commits, &message, |commit| write_registration(commit, &id, &mallory, &file, &payload))
}

#[test]
fn an_active_signers_file_changes_only_by_its_signers() {
    assert_found(&[
        Tampering {
            name: "a threshold is lowered by a commit of its own",
            tamper: |past, commits| {
                let path = past.path(ACTIVE);
                let lowered = lower(&past.content(past.last(), &path));
                let at =
                    append(past, commits, "Lower the threshold\n", |commit| commit.write(&path, lowered));
                (at, path, "nothing that the server says")
            },
        },
        Tampering {
            name: "a threshold is lowered while it is activated",
            tamper: |past, commits| {
                let (at, path) = (past.find("Activate the signers of", APP), past.path(ACTIVE));
                commits[at].write(&path, lower(&past.content(at, &path)));
                (at, path, "not what the rules produce")
            },
        },
        Tampering {
            name: "a threshold is lowered in passing",
            tamper: |past, commits| {
                let (at, path) = (past.find("Add", "acme/app/v3/svc.index.json"), past.path(ACTIVE));
                commits[at].write(&path, lower(&past.content(at, &path)));
                (at, path, "not part of what the commit claims")
            },
        },
        Tampering {
            name: "a signer is put into a registration that is under way",
            tamper: |past, commits| {
                let (at, path) = (past.nth(1, "Sign", PENDING), past.path(PENDING));
                let text = String::from_utf8(past.content(at, &path)).unwrap();
                let keys = (Person::named("erin").key(), Person::named("mallory").key());
                commits[at].write(&path, text.replace(&keys.0, &keys.1));
                (at, path, "not part of what the commit claims")
            },
        },
        Tampering {
            name: "a threshold is lowered from the beginning on",
            tamper: |past, commits| {
                let at = past.find("Register", APP);
                for commit in commits.iter_mut() {
                    for path in [past.path(PENDING), past.path(ACTIVE)] {
                        if let Some(Some(entry)) = commit.files.get_mut(&path) {
                            entry.content = lower(&entry.content).into_bytes();
                        }
                    }
                }
                (
                    at,
                    past.path("acme/app/svc.signers.pending/svc.signers.json.metadata.json"),
                    "not what the rules produce",
                )
            },
        },
        Tampering {
            name: "and the metadata names the digest of that",
            tamper: |past, commits| {
                let (at, path) = (past.find("Register", APP), past.path(PENDING));
                let old = past.content(at, &path);
                let new = lower(&old);
                let digests = (Sha512::of(&old).to_prefixed(), Sha512::of(new.as_bytes()).to_prefixed());
                commits[at].write(&path, new);
                commits[at].edit(&format!("{path}.metadata.json"), &digests.0, &digests.1);
                (past.find("Sign", PENDING), path, "does not verify")
            },
        },
        Tampering {
            name: "the whole project is removed as if it were pending",
            tamper: |past, commits| {
                let message = format!("Drop the pending signers of {}\n\nBy: the operator\n", past.path(APP));
                let path = past.path(ACTIVE);
                let at = append(past, commits, &message, |commit| commit.remove(&path));
                (at, path, "has no pending registration")
            },
        },
    ]);
}

#[test]
fn no_file_gets_into_force_without_those_who_must_agree() {
    assert_found(&[
        Tampering {
            name: "a registration is active before everyone signed",
            tamper: |past, commits| {
                // The last but one who signs does what the last one did.
                let last = past.find("Activate the signers of", APP);
                let (at, pending, active) = (last - 1, past.path(PENDING), past.path(ACTIVE));
                let (mut signed, metadata) = (commits[last].clone(), ".metadata.json.signatures.json");
                for suffix in [".signatures.json", metadata] {
                    let set = past.content(at, &format!("{pending}{suffix}.pending"));
                    signed.write(&format!("{active}{suffix}"), set);
                }
                signed.message =
                    commits[at].message.replace(&commits[at].subject().to_owned(), signed.subject());
                commits[at] = signed;
                (at, format!("{active}.signatures.json"), "do not reach the threshold")
            },
        },
        Tampering {
            name: "one of the signatures is left out",
            tamper: |past, commits| {
                let at = past.nth(1, "Sign", PENDING);
                commits.remove(at);
                (at, format!("{}.signatures.json.pending", past.path(PENDING)), "not what the rules produce")
            },
        },
        Tampering {
            name: "someone signs in another one's name",
            tamper: |past, commits| {
                let at = past.find("Sign", PENDING);
                let keys = (Person::named("alice").key(), Person::named("bob").key());
                let set = format!("{}.signatures.json.pending", past.path(PENDING));
                let metadata = format!("{}.metadata.json.signatures.json.pending", past.path(PENDING));
                commits[at].edit(&set, &keys.0, &keys.1);
                commits[at].edit(&metadata, &keys.0, &keys.1);
                commits[at].message = commits[at].message.replace(&keys.0, &keys.1);
                (at, set, "does not verify")
            },
        },
        Tampering {
            name: "the superseded proposals stay",
            tamper: |past, commits| {
                let at = past.nth(1, "Activate the signers of", APP);
                let is_superseded = |path: &String| path.contains("/svc.signers.superseded/");
                let kept: Vec<String> =
                    commits[at].files.keys().filter(|path| is_superseded(path)).cloned().collect();
                kept.iter().for_each(|path| drop(commits[at].files.remove(path)));
                (at, kept[0].clone(), "the rules remove it")
            },
        },
        Tampering {
            name: "a proposal comes back without its signatures",
            tamper: |past, commits| {
                let at = past.nth(1, "Replace the proposed signers of", APP);
                let path = format!("{}.signatures.json.pending", past.path(PENDING));
                commits[at].write(&path, "{\n  \"entries\": {}\n}\n");
                (at, path, "not what the rules produce")
            },
        },
        Tampering {
            name: "a proposal follows something else than what is in force",
            tamper: |past, commits| {
                let at = past.find("Propose signers for", APP);
                let path = format!("{}.metadata.json", past.path(PENDING));
                commits[at].edit(
                    &path,
                    "\"previous\": \"sha512:",
                    "\"previous\": null,\n  \"was\": \"sha512:",
                );
                (at, path, "cannot be used")
            },
        },
    ]);
}

#[test]
fn the_history_of_signers_is_what_happened() {
    /// The second activation, and the entries of the history after it.
    fn entries(past: &Past) -> (usize, [String; 2]) {
        let entry = |number| past.path(&format!("{HISTORY}/{number:06}.json"));
        (past.nth(1, "Activate the signers of", APP), [entry(1), entry(2)])
    }
    assert_found(&[
        Tampering {
            name: "its entries are in another order",
            tamper: |past, commits| {
                let (at, [first, second]) = entries(past);
                let [one, two] = [&first, &second].map(|path| past.content(at, path));
                commits[at].write(&first, two);
                commits[at].write(&second, one);
                (at, second, "not what the rules produce")
            },
        },
        Tampering {
            name: "an entry is left out",
            tamper: |past, commits| {
                let (at, [first, _]) = entries(past);
                commits[at].remove(&first);
                (at, first, "it was removed")
            },
        },
        Tampering {
            name: "an entry is there twice",
            tamper: |past, commits| {
                let (at, [_, second]) = entries(past);
                let third = second.replace("000002", "000003");
                commits[at].write(&third, past.content(at, &second));
                (at, third, "it was added")
            },
        },
        Tampering {
            name: "it says another time",
            tamper: |past, commits| {
                let (at, [_, second]) = entries(past);
                let mut entry: Value = serde_json::from_slice(&past.content(at, &second)).unwrap();
                entry["timestamp"] = json!("2026-01-01T00:00:00Z");
                commits[at].write(&second, pretty(&entry));
                (at, second, "not what the rules produce")
            },
        },
        Tampering {
            name: "it is removed",
            tamper: |past, commits| {
                let (at, (_, [_, second])) = (past.find("Register", "acme/new"), entries(past));
                commits[at].remove(&second);
                (at, second, "it was removed")
            },
        },
        Tampering {
            name: "the document that is assembled of it is there as a file",
            tamper: |past, commits| {
                let (at, path) = (past.find("Register", "acme/new"), past.path(&format!("{HISTORY}.json")));
                commits[at].write(&path, b"{\n  \"entries\": []\n}\n".to_vec());
                (at, path, "it was added")
            },
        },
    ]);
}

#[test]
fn a_project_is_registered_by_a_request_that_proves_it() {
    assert_found(&[
        Tampering {
            name: "a project inside another one",
            tamper: |past, commits| {
                let at = register_evil(past, commits, "acme/app/inner", &url_of(past, "acme/app/inner"));
                (at, past.path("acme/app/inner/svc.signers.pending/svc.signers.json"), "projects do not nest")
            },
        },
        Tampering {
            name: "a signers file inside another project, active at once",
            tamper: |past, commits| {
                let path = past.path("acme/app/v1/svc.signers/svc.signers.json");
                let at = past.find("Register", "acme/new");
                commits[at].write(&path, SignersFile::of(1, &[&Person::named("mallory")]).bytes());
                (at, path, "not part of what the commit claims")
            },
        },
        Tampering {
            name: "a project that the URL does not speak for",
            tamper: |past, commits| {
                let at = register_evil(past, commits, "acme/other", &url_of(past, "mallory/app"));
                (at, past.path("acme/other/svc.signers.pending/svc.signers.json"), "speaks for")
            },
        },
        Tampering {
            name: "a registration over one that is under way",
            tamper: |past, commits| {
                let at = register_evil(past, commits, "acme/new", &url_of(past, "acme/new"));
                (at, past.path("acme/new/svc.signers.pending/svc.signers.json"), "already in progress")
            },
        },
        Tampering {
            name: "a dropped registration, with the same request",
            tamper: |past, commits| {
                let dropped = past.find("Drop the pending signers of", "acme/tool");
                let again = commits[past.find("Register", "acme/tool")].clone();
                commits.insert(dropped + 1, again);
                let request = "acme/tool/svc.signers.pending/svc.signers.json.registration.json";
                (dropped + 1, past.path(request), "nonce is not new")
            },
        },
        Tampering {
            name: "a request that was not signed like this",
            tamper: |past, commits| {
                let at = past.find("Register", "acme/lib");
                let path = past.path("acme/lib/svc.signers.pending/svc.signers.json.registration.json");
                commits[at].edit(&path, "\"payload\": \"{", "\"payload\": \"{ ");
                (at, path, "does not verify")
            },
        },
        Tampering {
            name: "a request for another URL",
            tamper: |past, commits| {
                let at = past.find("Register", "acme/lib");
                let path = past.path("acme/lib/svc.signers.pending/svc.signers.json");
                commits[at].edit(&format!("{path}.metadata.json"), "/acme/lib/svc", "/acme/lib/xsvc");
                (at, format!("{path}.registration.json"), "another URL")
            },
        },
        Tampering {
            name: "a request in another spelling",
            tamper: |past, commits| {
                let at = past.find("Register", "acme/lib");
                let path = past.path("acme/lib/svc.signers.pending/svc.signers.json.registration.json");
                commits[at].edit(&path, "{\n", "{\n\n");
                (at, path, "not what the rules produce")
            },
        },
    ]);
}
