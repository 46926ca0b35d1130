//! POST /v1/object: who, when, and what cannot be replayed.

use crate::support::second_thoughts::{collecting, object, objection, objection_body};
use crate::support::{World, person};

fn standing(world: &World, name: &str) -> Vec<(String, String)> {
    let answer = world.get_as(&person(name), "/v1/pending_signatures").ok();
    let text = |entry: &serde_json::Value, name: &str| entry[name].as_str().unwrap().to_owned();
    let entries = answer["objections"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| (text(entry, "public_key"), text(entry, "objection"))).collect()
}

#[test]
fn anyone_hands_in_what_a_signer_signed() {
    let (world, index) = collecting();
    let bob = person("bob");
    let body = objection_body(&bob, &index, &objection(&world, &index, Some("not my build")));
    world.post_as(&person("mallory"), "/v1/object", &body).ok();
    assert_eq!(standing(&world, "alice"), [(bob.key(), "not my build".to_owned())]);
}

#[test]
fn an_old_objection_cannot_be_replayed_after_it_was_taken_back() {
    let (mut world, index) = collecting();
    let bob = person("bob");
    let old = objection_body(&bob, &index, &objection(&world, &index, Some("not my build")));
    world.post_as(&bob, "/v1/object", &old).ok();
    object(&world, &bob, &index, None).ok();
    assert!(standing(&world, "alice").is_empty());
    for restarted in [false, true] {
        if restarted {
            world.server.restart();
        }
        for submitter in ["mallory", "bob"] {
            let replayed = world.post_as(&person(submitter), "/v1/object", &old);
            replayed.refused(409, "must be later");
        }
    }
    object(&world, &bob, &index, None).refused(409, "could take back");
    assert!(standing(&world, "alice").is_empty());
    object(&world, &bob, &index, Some("still not")).ok();
    assert_eq!(standing(&world, "alice"), [(bob.key(), "still not".to_owned())]);
}
