//! A signing server that lies about a release: the index, the signatures, the history. Nothing unverified gets a name.

use countersign_core::values::key::encode_base64;
use serde_json::{Value, json};

use crate::support::{
    Person, SignersFile,
    client::add_files,
    days_ago,
    hostile::{Forgery, Lie, Listed, Scene, alice, bob, carol, index_of, mallory, origin, signature_set},
};

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
fn an_index_that_is_none_is_refused() {
    let scene = Scene::start();
    let index = scene.index("2.0");
    let text = String::from_utf8(scene.world.read(&index)).unwrap();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let without_version = text.replacen("\"version\": 1,", "", 1);
    let newer = text.replacen("\"version\": 1", "\"version\": 2", 1);
    let twice = text.replacen("\"version\": 1", "\"version\": 1, \"version\": 1", 1);
    let more = text.replacen("\"version\": 1", "\"version\": 1, \"more\": 1", 1);
    let marked = format!("\u{feff}{text}");
    for lie in ["", "{", "null", "[]", "<html>", &deep, &without_version, &newer, &twice, &more, &marked] {
        scene.hostile.show_file(&index, lie);
        scene.refused(3, &[&index]);
    }
    scene.hostile.show_file(&index, b"\xff\xfe".as_slice());
    scene.refused(3, &[&index]);
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
fn the_index_of_another_project_does_not_pass_for_this_ones() {
    let scene = Scene::start();
    scene.world.activate("other/app", &SignersFile::of(1, &[&mallory()]), &[&mallory()]);
    let other = add_files(&scene.world, "other/app/2.0", &[("app.tar.gz", b"evil")], &[&mallory()]);
    let index = scene.index("2.0");
    for suffix in ["", ".signatures.json"] {
        scene.hostile.show_file(&format!("{index}{suffix}"), scene.world.read(&format!("{other}{suffix}")));
    }
    scene.hostile.show_chain(&index, &scene.world.server.get(&chain_of(&other)).json()["history"]);
    scene.refused(3, &[&index, &scene.world.id("other/app")]);
}

fn chain_of(index: &str) -> String {
    format!("/v1/get_signers_chain/{index}")
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
fn signatures_that_are_not_over_this_index_are_refused() {
    let scene = Scene::start();
    let index = scene.index("2.0");
    // Of the other release; of one signer under the name of another.
    scene.hostile.show_file(&signatures(&index), scene.world.read(&signatures(&scene.index("1.0"))));
    scene.refused(3, &[&index, "does not verify"]);
    let mut set = signature_set(&scene.world.read(&index), &[&alice()]);
    set["entries"][bob().key()] = set["entries"][alice().key()].clone();
    scene.hostile.show_file(&signatures(&index), set.to_string());
    scene.refused(3, &[&bob().key(), "does not verify"]);
}

#[test]
fn one_key_in_two_spellings_counts_once() {
    let scene = Scene::start();
    let index = scene.index("2.0");
    let set = signature_set(&scene.world.read(&index), &[&alice()]);
    let entry = set["entries"][alice().key()].clone();
    let unprefixed = alice().key()["svc-pub:".len()..].to_owned();
    for spelling in [
        format!("{}=", alice().key()),
        unprefixed,
        alice().body_key(),
        alice().ssh_key(),
        format!("{} ", alice().key()),
    ] {
        let mut set = set.clone();
        set["entries"][&spelling] = entry.clone();
        scene.hostile.show_file(&signatures(&index), set.to_string());
        scene.refused(3, &[]);
    }
    // The same spelling twice is no JSON that we read.
    let twice =
        set.to_string().replacen("{\"svc-pub", &format!("{{\"{}\":{entry},\"svc-pub", alice().key()), 1);
    scene.hostile.show_file(&signatures(&index), twice);
    scene.refused(3, &[]);
}

#[test]
fn a_signers_file_that_lists_one_key_twice_is_refused_wherever_it_stands_in_the_history() {
    let scene = Scene::start();
    let [plain, padded] = [alice().key(), alice().body_key()];
    let text = json!({
        "version": 1,
        "timestamp": days_ago(10).to_string(),
        "artifact_signers": [{ "threshold": 2, "signers": [
            { "kind": "key", "data": { "pubkey": plain } }, { "kind": "key", "data": { "pubkey": padded } },
        ] }],
    })
    .to_string();
    let forged = Forgery::of(&scene.project()).then(
        text.as_bytes(),
        &origin("file_server", &scene.signers_url()),
        &[&alice()],
    );
    scene.hostile.show_history(&scene.project(), &scene.index("2.0"), &forged.history());
    scene.world.files.put("/acme/app/svc.signers.json", text);
    scene.refused(3, &["signers file is invalid"]);
}

#[test]
fn a_weak_key_signs_nothing() {
    let scene = Scene::start();
    // Of small order: its signatures are right for every message.
    let weak = format!("svc-pub:{}", encode_base64(&[&[1][..], &[0; 31]].concat()).trim_end_matches('='));
    let text = json!({
        "version": 1,
        "timestamp": days_ago(10).to_string(),
        "artifact_signers": [{ "threshold": 1, "signers": [{ "kind": "key", "data": { "pubkey": weak } }] }],
    });
    let forged = Forgery::of(&scene.project()).then(
        text.to_string().as_bytes(),
        &origin("file_server", &scene.signers_url()),
        &[],
    );
    scene.hostile.show_history(&scene.project(), &scene.index("2.0"), &forged.history());
    scene.refused(3, &["weak"]);
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
fn a_history_that_was_cut_bent_or_spliced_is_refused() {
    let scene = Scene::start();
    let everyone = [&alice(), &bob(), &carol()];
    let second = SignersFile::of(2, &everyone).redated(days_ago(8));
    scene.world.rotate("acme/app", &second, &[&alice(), &bob()]);
    scene.world.activate("other/app", &SignersFile::of(1, &[&mallory()]), &[&mallory()]);
    let honest = scene.history();
    let other = scene.world.read_json(&format!("{}/svc.signers.history.json", scene.world.id("other/app")));
    let entry = |at: usize| honest["entries"][at].clone();
    let (first, last, stranger) = (entry(0), entry(1), other["entries"][0].clone());
    let altered = |at: usize, field: &str, value: Value| {
        let mut changed = honest.clone();
        changed["entries"][at][field] = value;
        changed["entries"].clone()
    };
    let set = |at: usize, field: &str, signers: &[&Person]| {
        signature_set(honest["entries"][at][field].as_str().unwrap().as_bytes(), signers)
    };
    for (lie, entries) in [
        ("empty", json!([])),
        ("without its beginning", json!([last])),
        ("turned round", json!([last, first])),
        ("doubled", json!([first, first, last])),
        ("of another project", json!([stranger])),
        ("after another project's", json!([stranger, last])),
        ("continued by another project's", json!([first, last, stranger])),
        ("with another file", altered(0, "signers_config", stranger["signers_config"].clone())),
        ("with another metadata", altered(0, "metadata", stranger["metadata"].clone())),
        ("with the metadata of the first", altered(1, "metadata", first["metadata"].clone())),
        ("not agreed to", altered(0, "signatures", set(0, "signers_config", &[&alice(), &bob()]))),
        (
            "metadata not agreed to",
            altered(0, "metadata_signatures", set(0, "metadata", &[&alice(), &bob()])),
        ),
        ("agreed to by one", altered(1, "metadata_signatures", set(1, "metadata", &[&alice()]))),
        (
            "agreed to by strangers",
            altered(1, "signatures", set(1, "signers_config", &[&alice(), &mallory()])),
        ),
        ("without signatures", altered(1, "signatures", json!({ "entries": {} }))),
        ("out of time", altered(1, "timestamp", json!(days_ago(4_000).to_string()))),
        ("out of form", altered(1, "timestamp", json!(12))),
    ] {
        scene.hostile.be_honest();
        scene.hostile.show_history(&scene.project(), &scene.index("2.0"), &json!({ "entries": entries }));
        for victim in [&scene.newcomer, &scene.regular] {
            let ran = victim.run(&["download", "--force", &scene.url("2.0")]);
            assert_eq!(ran.code, 3, "a history {lie}: {ran:?}");
            victim.assert_untouched();
        }
    }
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
fn an_index_is_not_measured_by_signers_who_did_not_govern_it() {
    // Mallory joins and may sign alone from then on; what was signed before is still measured by the old file.
    let scene = Scene::start();
    let everyone = [&alice(), &bob(), &carol(), &mallory()];
    let second = SignersFile::of(1, &[&mallory()]).admin(2, &[&alice(), &bob(), &carol()]);
    scene.world.rotate("acme/app", &second.redated(days_ago(8)), &everyone);
    scene.newcomer.takes(&scene.url("2.0"), &Scene::content("2.0"));
    scene.hostile.show_chain(&scene.index("2.0"), &scene.history());
    scene.refused(3, &["not enough of the right people"]);
}

#[test]
fn an_index_that_points_elsewhere_is_refused_even_if_the_right_people_signed_it() {
    let scene = Scene::start();
    let index = scene.index("2.0");
    let own = scene.url("2.0");
    let (older, other_host) = (scene.url("1.0"), "https://dl.example.org/acme/app/2.0/app.tar.gz");
    let with_query = format!("{own}?x");
    let outside = scene.world.id("acme/other");
    let release = scene.world.files.url("/acme/app/releases/tag/2.0");
    for (project, page, source) in [
        (scene.project(), None, older.as_str()),
        (scene.project(), None, other_host),
        (scene.project(), None, with_query.as_str()),
        (scene.project(), Some(release.as_str()), own.as_str()),
        (outside, None, own.as_str()),
    ] {
        let text = index_of(&project, page, &[Listed { name: "app.tar.gz", source, bytes: b"x" }]);
        let signed = signature_set(text.as_bytes(), &[&alice(), &bob()]).to_string();
        scene.hostile.show_file(&index, text);
        scene.hostile.show_file(&signatures(&index), signed);
        scene.refused(3, &["acme/"]);
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
