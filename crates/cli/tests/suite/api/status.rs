//! GET /v1/signatures/{path} and GET /v1/pending_signatures: spec §4.4, D18, D21.

use serde_json::json;

use crate::support::{Person, SignersFile, World};

fn people() -> (Person, Person, Person) {
    (Person::named("alice"), Person::named("bob"), Person::named("carol"))
}

#[test]
fn the_status_names_the_normalised_path() {
    let (alice, ..) = people();
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_release(&alice, "acme/app/v1");
    let expected = json!({ "file_path": index, "is_complete": false });
    assert_eq!(world.status(&alice, &index).ok(), expected);
    assert_eq!(world.status(&alice, &format!("{index}/")).ok(), expected);
    let encoded = index.replace('.', "%2E").replace("acme/app", "acme%2Fapp");
    assert_eq!(world.status(&alice, &encoded).ok(), expected, "decoded once, then split");
}

#[test]
fn the_pending_list_is_sorted_and_holds_what_the_caller_may_sign_and_has_not() {
    let (alice, bob, _) = people();
    let file = SignersFile::of(2, &[&alice, &bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let releases: Vec<_> =
        ["acme/app/v2", "acme/app/v10", "acme/app/V1"].map(|dir| world.add_release(&alice, dir)).into();
    world.register(&alice, "aaa/other", &SignersFile::of(1, &[&alice])).ok();
    world.register(&alice, "zzz", &SignersFile::of(1, &[&alice])).ok();

    let mut expected =
        [releases.clone(), vec![world.pending_path("aaa/other"), world.pending_path("zzz")]].concat();
    expected.sort();
    assert_eq!(world.pending(&alice), expected);

    let mut for_bob = releases.clone();
    for_bob.sort();
    assert_eq!(world.pending(&bob), for_bob);
    assert_eq!(world.pending(&Person::named("mallory")), [""; 0]);

    world.sign(&bob, &releases[0]).ok();
    for_bob.retain(|path| *path != releases[0]);
    assert_eq!(world.pending(&bob), for_bob);
    assert!(world.pending(&alice).contains(&releases[0]));
    world.sign(&alice, &releases[0]).ok();
    assert!(!world.pending(&alice).contains(&releases[0]), "complete files are not pending");
}
