//! The largest signers file (D8), and lists of more than an answer holds (D51).

use countersign_core::{documents::history::History, rules::chain, values::path::RepoPath};
use serde_json::{Value, json};

use crate::support::html::{key_page, open};
use crate::support::{Person, SignersFile, World, alice, world::checksums};

const MAX_SIGNERS: usize = 1000;

#[test]
fn a_project_of_a_thousand_signers_is_served_and_does_not_slow_others_down() {
    let alice = alice();
    let mut world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let small = world.add_signed_release("acme/app/v1", &[&alice]);
    let crowd: Vec<_> = (0..MAX_SIGNERS).map(|n| Person::named(&format!("signer {n}"))).collect();
    let everyone: Vec<&Person> = crowd.iter().collect();
    let (first, middle, last) = (&crowd[0], &crowd[MAX_SIGNERS / 2], &crowd[MAX_SIGNERS - 1]);

    let file = SignersFile::of(MAX_SIGNERS, &everyone);
    let answer = world.register(first, "crowd", &file).ok();
    assert_eq!(answer["required_signers"].as_array().unwrap().len(), MAX_SIGNERS);
    let pending = world.pending_path("crowd");
    assert_eq!(world.read(&pending), file.bytes());

    for person in [first, middle, last] {
        assert_eq!(world.pending(person), std::slice::from_ref(&pending));
        assert_eq!(world.sign(person, &pending).ok(), json!({ "is_complete": false }));
        assert_eq!(world.pending(person), [""; 0]);
        assert!(!world.is_complete(person, &pending));
    }
    world.sign(middle, &pending).error(409);
    world.sign(&alice, &pending).error(403);
    let collected = world.read_json(&format!("{pending}.signatures.json.pending"));
    assert_eq!(collected["entries"].as_object().unwrap().len(), 3);

    assert_eq!(world.pending(&alice), [""; 0]);
    let chain_of = |path: &str| world.server.get(&format!("/v1/get_signers_chain/{path}"));
    let history = History::parse(chain_of(&small).ok()["history"].to_string().as_bytes()).unwrap();
    chain::verify(&history, &RepoPath::parse(&world.id("acme/app")).unwrap()).unwrap();
    chain_of(&pending).error(400);
    world.add_signed_release("acme/app/v2", &[&alice]);
    world.server.restart();
    assert_eq!(world.pending(first), [""; 0]);
    assert_eq!(world.pending(&crowd[1]), [pending]);
}

#[test]
fn more_than_a_hundred_releases_are_listed_in_parts() {
    let alice = alice();
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    for i in 0..101 {
        let dir = format!("acme/app/v{i}");
        let url = world.publish_checksums(&dir, &checksums("same"));
        world.register_assets(&alice, &[&url]).ok();
        world.sign(&alice, &world.index_path(&dir)).ok();
    }
    let paths = |answer: &Value| -> Vec<String> {
        let entries = answer["releases"].as_array().expect("a list").iter();
        entries.map(|entry| entry["index_path"].as_str().expect("a path").to_owned()).collect()
    };
    let digest = &checksums("same")[..64];
    for query in [format!("sha256={digest}"), format!("project={}", world.id("acme/app"))] {
        let releases = |query: &str| world.server.get(&format!("/v1/releases?{query}")).ok();
        let first = releases(&query);
        let mut seen = paths(&first);
        assert_eq!((seen.len(), &first["more"]), (100, &json!(true)));
        let second = releases(&format!("{query}&after={}", seen[99]));
        assert_eq!(second["more"], json!(false));
        seen.extend(paths(&second));
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 101);
    }
    let key = alice.key().replace('/', "%2F").replace('+', "%2B");
    let key = world.server.get(&format!("/v1/keys/{key}")).ok();
    assert_eq!((&key["signed_count"], key["signed"].as_array().unwrap().len()), (&json!(101), 25));
    open(&world.server, &key_page(&alice))
        .says(&["101 releases carry its signature.", "These are the last 25."]);
}
