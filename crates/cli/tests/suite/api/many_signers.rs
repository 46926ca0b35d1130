//! The largest signers file (D8): a thousand signers, and everything still answers.

use countersign_core::{documents::history::History, rules::chain, values::path::RepoPath};
use serde_json::json;

use crate::support::{Person, SignersFile, World};

const MAX_SIGNERS: usize = 1000;

fn crowd() -> Vec<Person> {
    (0..MAX_SIGNERS).map(|n| Person::named(&format!("signer {n}"))).collect()
}

#[test]
fn a_project_of_a_thousand_signers_is_served_and_does_not_slow_others_down() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let small = world.add_signed_release("acme/app/v1", &[&alice]);
    let crowd = crowd();
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
    assert_eq!(world.pending(&crowd[1]), std::slice::from_ref(&pending));
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
}

#[test]
fn a_thousand_signers_survive_a_restart() {
    let mut world = World::start();
    let crowd = crowd();
    let everyone: Vec<&Person> = crowd.iter().collect();
    world.register(&crowd[0], "crowd", &SignersFile::of(1, &everyone)).ok();
    let pending = world.pending_path("crowd");
    world.sign(&crowd[0], &pending).ok();
    world.server.restart();
    assert_eq!(world.pending(&crowd[0]), [""; 0]);
    assert_eq!(world.pending(&crowd[MAX_SIGNERS - 1]), [pending]);
}
