//! A signing server that lies about a release: the index, the signatures, the history. Nothing unverified gets a name.

use serde_json::{Value, json};

use crate::support::hostile::{Lie, Scene, Victim, signature_set};
use crate::support::{alice, bob, carol, mallory};

fn signatures(index: &str) -> String {
    format!("{index}.signatures.json")
}

#[test]
fn a_server_that_lies_about_a_release_deceives_no_one() {
    let scene = Scene::start();

    // An index that was changed after it was signed is refused.
    let index = scene.index("2.0");
    let text = String::from_utf8(scene.world.read(&index)).unwrap();
    let mut json: Value = serde_json::from_str(&text).unwrap();
    json["published_files"][0]["digests"]["sha256"] = json!("0".repeat(64));
    for changed in [json.to_string(), format!("{text} "), text.replace("  ", " ")] {
        scene.hostile.show_file(&index, changed);
        scene.refused(3, &[&index, "does not verify"]);
    }

    // The index of an older release does not pass for a newer one.
    scene.hostile.be_honest();
    let (old, new) = (scene.index("1.0"), scene.index("2.0"));
    scene.hostile.show_file(&new, scene.world.read(&old));
    scene.hostile.show_file(&signatures(&new), scene.world.read(&signatures(&old)));
    scene.refused(3, &[&new, "another place"]);
    // With the old file in the new one's place as well.
    scene.world.files.put("/acme/app/2.0/app.tar.gz", Scene::content("1.0"));
    scene.refused(3, &[&new, "another place"]);
    scene.world.files.put("/acme/app/2.0/app.tar.gz", Scene::content("2.0"));

    // Signatures of strangers count for nothing.
    scene.hostile.be_honest();
    let index = scene.index("2.0");
    let text = scene.world.read(&index);
    let too_few = signature_set(&text, &[&alice(), &mallory()]).to_string();
    scene.hostile.show_file(&signatures(&index), too_few);
    scene.refused(3, &[&index, "not enough of the right people"]);
    // Strangers beside the right people change nothing.
    let enough = signature_set(&text, &[&bob(), &carol(), &mallory()]).to_string();
    scene.hostile.show_file(&signatures(&index), enough);
    let ran = Victim::of(&scene.hostile).takes(&scene.url("2.0"), &Scene::content("2.0"));
    assert!(!ran.stdout.contains(&mallory().key()), "a stranger is not named as a signer: {ran:?}");

    // Signatures that are still being collected do not pass for all.
    scene.hostile.be_honest();
    let index = scene.index("2.0");
    let set = signature_set(&scene.world.read(&index), &[&alice()]).to_string();
    scene.hostile.hide_file(&signatures(&index));
    scene.hostile.show_file(&format!("{}.pending", signatures(&index)), set);
    scene.refused(3, &[&index, "has 1 of 2; 1 more"]);
    scene.hostile.hide_file(&format!("{}.pending", signatures(&index)));
    scene.refused(3, &[&index, "not signed by enough"]);

    // A file that the index does not list is refused and not fetched.
    scene.hostile.be_honest();
    scene.world.files.put("/acme/app/2.0/extra.tar.gz", "evil");
    let before = scene.world.files.asked().len();
    for victim in [&scene.newcomer, &scene.regular] {
        let url = scene.world.files.url("/acme/app/2.0/extra.tar.gz");
        victim.refuses(&url, 3, &["extra.tar.gz", "does not list"]);
    }
    assert_eq!(scene.world.files.asked().len(), before, "nothing is asked of the file server");

    // A server that knows nothing is not taken for consent.
    scene.hostile.be_honest();
    scene.hostile.lie(|_| Some(Lie::missing()));
    scene.refused(3, &["is not signed"]);

    // An honest server is believed also through another one.
    scene.hostile.be_honest();
    for victim in [&Victim::of(&scene.hostile), &scene.regular] {
        victim.takes(&scene.url("2.0"), &Scene::content("2.0"));
    }
}
