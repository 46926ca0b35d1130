//! `countersign fsck`: tampering with withdrawals and objections.

use crate::support::{
    Person,
    fsck::{Tampering, assert_found},
};

const V5: &str = "acme/app/v5/svc.index.json";
const V6: &str = "acme/app/v6/svc.index.json";

#[test]
fn a_withdrawal_is_what_its_author_signed() {
    assert_found(&[
        Tampering {
            name: "the reason is another one",
            tamper: |past, commits| {
                let (at, path) = (past.find("Withdraw", V5), format!("{}.withdrawn.json", past.path(V5)));
                commits[at].edit(&path, "the wrong tag", "the right tag");
                (at, path, "signature does not verify")
            },
        },
        Tampering {
            name: "the author is another one",
            tamper: |past, commits| {
                let (at, path) = (past.find("Withdraw", V5), format!("{}.withdrawn.json", past.path(V5)));
                let [alice, bob] = ["alice", "bob"].map(|name| Person::named(name).key());
                commits[at].message = commits[at].message.replace(&alice, &bob);
                (at, path, "in another's name")
            },
        },
        Tampering {
            name: "the record is missing",
            tamper: |past, commits| {
                let (at, path) = (past.find("Withdraw", V5), format!("{}.withdrawn.json", past.path(V5)));
                commits[at].files.remove(&path);
                (at, path, "it is missing")
            },
        },
        Tampering {
            name: "the record is removed later",
            tamper: |past, commits| {
                let at = past.find("Register", "acme/new");
                let path = format!("{}.withdrawn.json", past.path(V5));
                commits[at].remove(&path);
                (at, path, "it was removed")
            },
        },
        Tampering {
            name: "signatures stay behind",
            tamper: |past, commits| {
                let at = past.find("Withdraw", V5);
                let path = format!("{}.signatures.json.pending", past.path(V5));
                commits[at].files.remove(&path);
                (at, path, "it is still there")
            },
        },
        Tampering {
            name: "someone else is named as the registrant",
            tamper: |past, commits| {
                let (at, path) = (past.find("Add", V5), format!("{}.registrant.json", past.path(V5)));
                let [alice, bob] = ["alice", "bob"].map(|name| Person::named(name).key());
                commits[at].edit(&path, &alice, &bob);
                (at, path, "not what the rules produce")
            },
        },
    ]);
}

#[test]
fn an_objection_is_what_its_author_signed() {
    assert_found(&[
        Tampering {
            name: "the text is another one",
            tamper: |past, commits| {
                let (at, path) = (past.find("Object to", V6), past.path(V6));
                commits[at].edit(&format!("{path}.objections.json"), "not my build", "not our build");
                (at, path, "does not verify")
            },
        },
        Tampering {
            name: "the author is another one",
            tamper: |past, commits| {
                let (at, path) = (past.find("Object to", V6), format!("{}.objections.json", past.path(V6)));
                let [bob, alice] = ["bob", "alice"].map(|name| Person::named(name).key());
                commits[at].edit(&path, &bob, &alice);
                (at, path, "it holds no signature")
            },
        },
        Tampering {
            name: "an objection is removed",
            tamper: |past, commits| {
                let at = past.find("Register", "acme/new");
                let path = format!("{}.objections.json", past.path(V6));
                commits[at].remove(&path);
                (at, path, "it was removed")
            },
        },
        Tampering {
            name: "it is called taken back",
            tamper: |past, commits| {
                let (at, path) = (past.find("Object to", V6), format!("{}.objections.json", past.path(V6)));
                commits[at].message =
                    commits[at].message.replacen("Object to", "Take back the objection to", 1);
                (at, path, "message is not the one")
            },
        },
        Tampering {
            name: "an objection that was taken back stands again",
            tamper: |past, commits| {
                let path = format!("{}.objections.json", past.path(V5));
                let (first, back) = (past.find("Object to", V5), past.find("Take back the objection to", V5));
                let mut again = past.commits[back].beside(&past.commits[first].message);
                again.write(&path, past.content(first, &path));
                commits.insert(back + 1, again);
                (back + 1, past.path(V5), "must be later")
            },
        },
    ]);
}
