//! A signing server that lies about a release: the index, the signatures, the history. Nothing unverified gets a name.

use serde_json::{Value, json};

use crate::support::hostile::{Forgery, Lie, Scene, origin, signature_set};
use crate::support::{Person, SignersFile, alice, bob, carol, mallory};

fn signatures(index: &str) -> String {
    format!("{index}.signatures.json")
}

#[test]
fn an_honest_server_is_believed_also_through_another_one() {
    let scene = Scene::start();
    for victim in [&scene.newcomer, &scene.regular] {
        victim.takes(&scene.url("2.0"), &Scene::content("2.0"));
    }
}

#[test]
fn an_index_that_was_changed_after_it_was_signed_is_refused() {
    let scene = Scene::start();
    let index = scene.index("2.0");
    let text = String::from_utf8(scene.world.read(&index)).unwrap();
    let mut json: Value = serde_json::from_str(&text).unwrap();
    json["published_files"][0]["digests"]["sha256"] = json!("0".repeat(64));
    for changed in [json.to_string(), format!("{text} "), text.replace("  ", " ")] {
        scene.hostile.show_file(&index, changed);
        scene.refused(3, &[&index, "does not verify"]);
    }
}

#[test]
fn the_index_of_an_older_release_does_not_pass_for_a_newer_one() {
    let scene = Scene::start();
    let (old, new) = (scene.index("1.0"), scene.index("2.0"));
    scene.hostile.show_file(&new, scene.world.read(&old));
    scene.hostile.show_file(&signatures(&new), scene.world.read(&signatures(&old)));
    scene.refused(3, &[&new, "another place"]);
    // With the old file in the new one's place as well.
    scene.world.files.put("/acme/app/2.0/app.tar.gz", Scene::content("1.0"));
    scene.refused(3, &[&new, "another place"]);
}

#[test]
fn signatures_of_strangers_count_for_nothing() {
    let scene = Scene::start();
    let index = scene.index("2.0");
    let text = scene.world.read(&index);
    let strangers: &[&[&Person]] = &[&[], &[&mallory()], &[&alice(), &mallory()], &[&carol()]];
    for signers in strangers {
        scene.hostile.show_file(&signatures(&index), signature_set(&text, signers).to_string());
        scene.refused(3, &[&index, "not enough of the right people"]);
    }
    // Strangers beside the right people change nothing.
    let enough = signature_set(&text, &[&bob(), &carol(), &mallory()]).to_string();
    scene.hostile.show_file(&signatures(&index), enough);
    let ran = scene.newcomer.takes(&scene.url("2.0"), &Scene::content("2.0"));
    assert!(!ran.stdout.contains(&mallory().key()), "a stranger is not named as a signer: {ran:?}");
}

#[test]
fn signatures_that_are_still_being_collected_do_not_pass_for_all() {
    let scene = Scene::start();
    let index = scene.index("2.0");
    let set = signature_set(&scene.world.read(&index), &[&alice()]).to_string();
    scene.hostile.hide_file(&signatures(&index));
    scene.hostile.show_file(&format!("{}.pending", signatures(&index)), set);
    scene.refused(3, &[&index, "1 of 2 signatures"]);
    scene.hostile.hide_file(&format!("{}.pending", signatures(&index)));
    scene.refused(3, &[&index, "not signed by enough"]);
}

#[test]
fn two_histories_at_once_are_refused() {
    let scene = Scene::start();
    let honest = scene.history();
    let file = SignersFile::of(1, &[&mallory()]).bytes();
    let forged = Forgery::of(&scene.project())
        .then(&file, &origin("file_server", &scene.signers_url()), &[&mallory()])
        .history();
    let longer = json!({ "entries": [honest["entries"][0], forged["entries"][0]] });
    for chain in [json!({ "entries": [] }), forged, longer] {
        scene.hostile.show_chain(&scene.index("2.0"), &chain);
        scene.refused(3, &[]);
    }
}

#[test]
fn a_file_that_the_index_does_not_list_is_refused_and_not_fetched() {
    let scene = Scene::start();
    scene.world.files.put("/acme/app/2.0/extra.tar.gz", "evil");
    let before = scene.world.files.asked().len();
    for victim in [&scene.newcomer, &scene.regular] {
        let url = scene.world.files.url("/acme/app/2.0/extra.tar.gz");
        victim.refuses(&url, 3, &["extra.tar.gz", "does not list"]);
    }
    assert_eq!(scene.world.files.asked().len(), before, "nothing is asked of the file server");
}

#[test]
fn a_server_that_knows_nothing_is_not_taken_for_consent() {
    let scene = Scene::start();
    scene.hostile.lie(|_| Some(Lie::missing()));
    scene.refused(3, &["is not signed"]);
}
