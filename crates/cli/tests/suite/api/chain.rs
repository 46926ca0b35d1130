//! GET /v1/get_signers_chain, under both names: spec §4.8, D12, D19.

use countersign_core::values::{digest::Sha512, key::PublicKey, key::Signature};
use serde_json::{Value, json};

use crate::support::{Person, SignersFile, World, days_ago};

fn people() -> (Person, Person) {
    (Person::named("alice"), Person::named("bob"))
}

#[track_caller]
fn chain(world: &World, path: &str) -> Vec<Value> {
    let answer = world.server.get(&format!("/v1/get_signers_chain/{path}")).ok();
    let other = world.server.get(&format!("/v1/get_artifact_signers_chain/{path}")).ok();
    assert_eq!(answer, other, "both names of the route answer alike");
    assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["history"]);
    answer["history"]["entries"].as_array().expect("entries").clone()
}

/// The exact text of the signers files in the chain.
fn configs(chain: &[Value]) -> Vec<Vec<u8>> {
    chain.iter().map(|entry| entry["signers_config"].as_str().unwrap().as_bytes().to_vec()).collect()
}

/// Every signature of an entry is by its key, over exactly the text beside it.
#[track_caller]
fn assert_signed_by(entry: &Value, signers: &[&Person]) {
    for (text, signatures) in [("signers_config", "signatures"), ("metadata", "metadata_signatures")] {
        let digest = Sha512::of(entry[text].as_str().unwrap().as_bytes());
        let entries = entry[signatures]["entries"].as_object().unwrap();
        assert_eq!(entries.len(), signers.len());
        for signer in signers {
            let signature = entries[&signer.key()]["signature"].as_str().unwrap();
            let key = PublicKey::parse(&signer.key()).unwrap();
            key.verify(&digest, &Signature::parse(signature).unwrap()).expect("it verifies");
        }
    }
}

#[test]
fn the_chain_ends_with_the_configuration_that_signed_the_artifact() {
    let (alice, bob) = people();
    let first = SignersFile::of(1, &[&alice]);
    let second = SignersFile::dated(days_ago(5)).artifact(1, &[&alice, &bob]);
    let third = SignersFile::dated(days_ago(4)).artifact(1, &[&bob]);
    let world = World::with_project(&first, &[&alice]);
    let v1 = world.add_signed_release("acme/app/v1", &[&alice]);
    world.rotate("acme/app", &second, &[&alice, &bob]);
    let v2 = world.add_signed_release("acme/app/v2", &[&bob]);
    world.rotate("acme/app", &third, &[&bob]);
    let v3 = world.add_signed_release("acme/app/v3", &[&bob]);

    assert_eq!(configs(&chain(&world, &v1)), [first.bytes()]);
    assert_eq!(configs(&chain(&world, &v2)), [first.bytes(), second.bytes()]);
    let whole = chain(&world, &v3);
    assert_eq!(configs(&whole), [first.bytes(), second.bytes(), third.bytes()]);
    assert_eq!(
        chain(&world, &world.active_path("acme/app")),
        whole,
        "an active signers file has the whole history"
    );

    assert_signed_by(&whole[0], &[&alice]);
    assert_signed_by(&whole[1], &[&alice, &bob]);
    assert_signed_by(&whole[2], &[&bob]);
    for (entry, previous) in whole.iter().zip([None, Some(&first), Some(&second)]) {
        let metadata: Value = serde_json::from_str(entry["metadata"].as_str().unwrap()).unwrap();
        let previous = previous.map(|file| Sha512::of(&file.bytes()).to_prefixed());
        assert_eq!(metadata["previous"], json!(previous));
        assert_eq!(metadata["project_id"], json!(world.id("acme/app")));
        assert!(entry["timestamp"].as_str().unwrap().ends_with('Z'));
    }
    let stored = world.read_json(&format!("{}/svc.signers.history.json", world.id("acme/app")));
    assert_eq!(stored["entries"], json!(whole));
}

#[test]
fn one_signers_file_in_two_projects_has_two_chains() {
    let (alice, bob) = people();
    let file = SignersFile::of(1, &[&alice]);
    let world = World::with_project(&file, &[&alice]);
    world.activate("other", &file, &[&alice]);
    let projects = ["acme/app", "other"];
    let releases = projects.map(|project| world.add_signed_release(&format!("{project}/v1"), &[&alice]));
    let project_of = |release: &str| {
        let chain = chain(&world, release);
        let metadata: Value = serde_json::from_str(chain[0]["metadata"].as_str().unwrap()).unwrap();
        (chain.len(), metadata["project_id"].as_str().unwrap().to_owned())
    };
    // Whichever was asked for before.
    for _ in 0..2 {
        assert_eq!(
            releases.each_ref().map(|release| project_of(release)),
            projects.map(|id| (1, world.id(id)))
        );
    }

    let second = SignersFile::dated(days_ago(5)).artifact(1, &[&bob]);
    world.rotate("other", &second, &[&alice, &bob]);
    let newer = world.add_signed_release("other/v2", &[&bob]);
    for _ in 0..2 {
        assert_eq!(project_of(&releases[1]), (1, world.id("other")), "the older release keeps its chain");
        assert_eq!(project_of(&newer), (2, world.id("other")));
    }
}

#[test]
fn a_release_has_its_chain_only_while_it_is_signed_whatever_was_asked_for_before() {
    let (alice, _) = people();
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let first = world.add_signed_release("acme/app/v1", &[&alice]);
    let known = chain(&world, &first);
    let second = world.add_release(&alice, "acme/app/v2");
    world.server.get(&format!("/v1/get_signers_chain/{second}")).error(400);
    world.sign(&alice, &second).ok();
    assert_eq!(chain(&world, &second), known);
    world.revoke(&alice, &second).ok();
    assert_eq!(chain(&world, &second), known);
}

#[test]
fn what_is_not_signed_or_not_there_has_no_chain() {
    let (alice, bob) = people();
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let collecting = world.add_release(&alice, "acme/app/v1");
    world.register(&bob, "other", &SignersFile::of(1, &[&bob])).ok();
    for path in [
        collecting,
        world.index_path("acme/app/none"),
        world.id("acme/app"),
        world.pending_path("other"),
        world.active_path("other"),
        format!("{}.metadata.json", world.active_path("acme/app")),
        format!("{}/svc.signers.history.json", world.id("acme/app")),
        "none".to_owned(),
        String::new(),
        "../x".to_owned(),
        "a//b".to_owned(),
    ] {
        for route in ["get_signers_chain", "get_artifact_signers_chain"] {
            let message = world.server.get(&format!("/v1/{route}/{path}")).error(400);
            assert!(message.starts_with("Invalid artifact path:"), "{path}: {message}");
        }
    }
}
