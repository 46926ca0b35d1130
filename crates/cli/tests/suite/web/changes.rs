//! What pages say about a change of signers, once. The rest is in `scenarios/changes.txt`.

use serde_json::{Value, json};

use super::named;
use crate::support::html::{Html, open, short_key};
use crate::support::{SignersFile, World, alice, bob, carol, days_ago, person, signers::signer};

/// In the sentences about what changes.
#[track_caller]
fn assert_no_key_twice(page: &Html) {
    let sentences =
        page.text.split("<li class=\"wrap").skip(1).map(|rest| rest.split("</li>").next().unwrap());
    let mut count = 0;
    for sentence in sentences {
        let mut keys: Vec<&str> =
            sentence.split("title=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all, "{sentence}");
        count += all;
    }
    assert!(count > 0, "{}", page.words);
}

#[test]
fn a_change_is_told_once_and_names_each_key_once() {
    let (alice, bob, carol, dave) = (alice(), bob(), carol(), person("dave"));
    let file = |days, signers: [Value; 3]| {
        SignersFile::dated(days_ago(days))
            .with("artifact_signers", json!([{ "threshold": 2, "signers": signers }]))
    };
    let [first, second, third] = [named(&alice, "alice"), named(&bob, "bob"), named(&carol, "carol")];
    let team = file(10, [first.clone(), second.clone(), third.clone()]);
    let world = World::with_project(&team, &[&alice, &bob, &carol]);
    let renamed = file(5, [named(&alice, "alice-2"), signer(&bob.key()), third]);
    let next = renamed.admin(1, &[&alice]);
    world.propose(&alice, "acme/app", &next).ok();
    let pending = open(&world.server, &format!("/p/{}", world.pending_path("acme/app")));
    pending.says(&[
        &format!("alice {} gets another name: alice-2", short_key(&alice)),
        &format!("bob {} loses its name", short_key(&bob)),
        &format!("bob {} stays, is no longer admin and revoker", short_key(&bob)),
        &format!("Admins are listed now: any 1 of 1 key: alice {}", short_key(&alice)),
    ]);
    assert_no_key_twice(&pending);
    // One who takes another's place is told by the two lines about them alone.
    let next = file(4, [first, second, named(&dave, "dave")]);
    world.propose(&alice, "acme/app", &next).ok();
    let pending = open(&world.server, &format!("/p/{}", world.pending_path("acme/app")));
    pending.says(&[
        &format!("dave {} joins as", short_key(&dave)),
        &format!("carol {} leaves, and was", short_key(&carol)),
    ]);
    pending.lacks(&["Artifact signers: ", "; adds", "; removes"]);
    assert_no_key_twice(&pending);
}
