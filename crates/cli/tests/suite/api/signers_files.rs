//! D5, D8, D25: what a fetched signers file must look like. What does not is 500 and leaves nothing behind.

use serde_json::{Value, json};

use crate::support::{Answer, Person, SignersFile, World, signers::signer};

fn alice() -> Person {
    Person::named("alice")
}

fn good() -> SignersFile {
    SignersFile::of(1, &[&alice()])
}

fn group(threshold: Value, signers: &[Value]) -> Value {
    json!([{ "threshold": threshold, "signers": signers }])
}

/// Registers these bytes and expects a refusal that contains `words`.
#[track_caller]
fn assert_invalid(world: &World, bytes: impl Into<Vec<u8>>, words: &str) {
    world.files.put("/acme/app/svc.signers.json", bytes);
    let url = world.files.url("/acme/app/svc.signers.json");
    world.register_url(&alice(), &url).refused(500, words);
}

#[track_caller]
fn assert_nothing_stored(world: &World) {
    assert_eq!(world.git().commit_count(), 1, "the format marker is the only commit");
    world.register(&alice(), "acme/app", &good()).ok();
}

#[test]
fn a_wrong_field_is_refused_by_name() {
    let world = World::start();
    let key = signer(&alice().key());
    let bob = signer(&Person::named("bob").key());
    for (file, field) in [
        (good().with("unheard", json!(1)), "unheard"),
        (good().with("version", json!(2)), "version"),
        (good().with("version", json!("1")), "version"),
        (good().without("version"), "version"),
        (good().without("timestamp"), "timestamp"),
        (good().with("timestamp", json!("yesterday")), "timestamp"),
        (good().with("timestamp", json!(1_700_000_000)), "timestamp"),
        (good().without("artifact_signers"), "artifact_signers"),
        (good().with("artifact_signers", json!([])), "artifact_signers"),
        (good().with("artifact_signers", Value::Null), "artifact_signers"),
        (good().with("admin_keys", Value::Null), "admin_keys"),
        (good().with("master_keys", json!([])), "master_keys"),
        (good().with("revocation_keys", json!({})), "revocation_keys"),
        (good().with("admin_keys", group(json!(1), &[])), "signers"),
        (good().with("admin_keys", group(json!(0), std::slice::from_ref(&bob))), "threshold"),
        (good().with("admin_keys", group(json!(2), std::slice::from_ref(&bob))), "threshold"),
        (good().with("admin_keys", group(json!(-1), std::slice::from_ref(&bob))), "threshold"),
        (good().with("admin_keys", group(json!(1.0), std::slice::from_ref(&bob))), "threshold"),
        (good().with("admin_keys", group(json!("1"), std::slice::from_ref(&bob))), "threshold"),
        (good().with("master_keys", group(json!(1), std::slice::from_ref(&key))), "master_keys"),
    ] {
        assert_invalid(&world, file.bytes(), field);
    }
    assert_nothing_stored(&world);
}

#[test]
fn a_wrong_signer_is_refused_by_name() {
    let world = World::start();
    let key = alice().key();
    let named = |name: &str| json!({ "kind": "key", "data": { "pubkey": key }, "name": name });
    let bob_named =
        json!({ "kind": "key", "data": { "pubkey": Person::named("bob").key() }, "name": "same" });
    for (signers, words) in [
        (vec![json!({ "kind": "person", "data": { "pubkey": key } })], "kind"),
        (vec![json!({ "kind": "key" })], "data"),
        (vec![json!({ "kind": "key", "data": {} })], "pubkey"),
        (vec![json!({ "kind": "key", "data": { "pubkey": "svc-pub:AAAA" } })], "pubkey"),
        (vec![json!({ "kind": "key", "data": { "pubkey": key, "format": "rsa" } })], "format"),
        (vec![json!({ "kind": "key", "data": { "pubkey": key, "extra": 1 } })], "extra"),
        (vec![json!({ "kind": "key", "data": { "pubkey": key }, "weight": 2 })], "weight"),
        (vec![named(&"x".repeat(65))], "name"),
        (vec![named("a\u{7}b")], "name"),
        (vec![named("a\u{202e}b")], "name"),
        (vec![named("a\u{2028}b")], "name"),
        (vec![named("same"), bob_named], "name"),
        (vec![signer(&alice().key()), signer(&alice().key())], "signers"),
        (vec![signer(&alice().key()), signer(&alice().ssh_key())], "signers"),
        (vec![signer(&alice().key()), signer(&alice().body_key())], "signers"),
    ] {
        assert_invalid(&world, good().with("artifact_signers", group(json!(1), &signers)).bytes(), words);
    }
    assert_nothing_stored(&world);
}

#[test]
fn one_key_has_one_name_in_the_whole_file() {
    let world = World::start();
    let named = |name: &str| json!({ "kind": "key", "data": { "pubkey": alice().key() }, "name": name });
    let file = good().with("artifact_signers", group(json!(1), &[named("alice")]));
    assert_invalid(
        &world,
        file.clone().with("admin_keys", group(json!(1), &[named("alicia")])).bytes(),
        "name",
    );
    world.register(&alice(), "acme/app", &file.with("admin_keys", group(json!(1), &[named("alice")]))).ok();
}

#[test]
fn every_spelling_of_a_key_and_a_declared_format_are_read() {
    let world = World::start();
    let (bob, carol) = (Person::named("bob"), Person::named("carol"));
    let typed =
        json!({ "kind": "key", "data": { "pubkey": carol.key(), "format": "ed25519" }, "name": "Carol ☂" });
    let signers = [signer(&alice().body_key()), signer(&bob.ssh_key()), typed];
    let file = good().with("artifact_signers", group(json!(2), &signers));
    world.activate("acme/app", &file, &[&alice(), &bob, &carol]);
}

#[test]
fn duplicate_names_are_refused_at_every_depth() {
    let world = World::start();
    let text = String::from_utf8(good().bytes()).unwrap();
    for twice in [
        text.replacen("\"version\":1", "\"version\":1,\"version\":1", 1),
        text.replacen("\"threshold\":1", "\"threshold\":1,\"threshold\":1", 1),
        text.replacen("\"kind\":\"key\"", "\"kind\":\"key\",\"kind\":\"key\"", 1),
        text.replacen("\"kind\":\"key\"", "\"kind\":\"key\",\"k\\u0069nd\":\"key\"", 1),
    ] {
        assert_ne!(twice, text);
        assert_invalid(&world, twice, "");
    }
    assert_nothing_stored(&world);
}

#[test]
fn what_is_not_strict_json_is_refused() {
    let world = World::start();
    let text = String::from_utf8(good().bytes()).unwrap();
    for bytes in [
        b"<!doctype html><html>Sign in</html>".to_vec(),
        b"".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        format!("\u{feff}{text}").into_bytes(),
        format!("{text}{{}}").into_bytes(),
        format!("// note\n{text}").into_bytes(),
        text.replace("\"version\":1", "\"version\":1e0").into_bytes(),
        text.replace("\"threshold\":1", "\"threshold\":01").into_bytes(),
        [text.as_bytes(), &[0xff]].concat(),
        text.as_bytes()[..text.len() / 2].to_vec(),
    ] {
        assert_invalid(&world, bytes, "");
    }
    assert_nothing_stored(&world);
}

#[test]
fn a_file_of_256_kib_is_read_and_a_larger_one_refused() {
    const LIMIT: usize = 256 * 1024;
    let world = World::start();
    let mut bytes = good().bytes();
    bytes.resize(LIMIT + 1, b' ');
    assert_invalid(&world, bytes.clone(), "");
    world.files.set("/acme/app/svc.signers.json", Answer::Endless);
    world.register_url(&alice(), &world.files.url("/acme/app/svc.signers.json")).error(500);
    bytes.truncate(LIMIT);
    world.files.put("/acme/app/svc.signers.json", bytes.clone());
    world.register_url(&alice(), &world.files.url("/acme/app/svc.signers.json")).ok();
    assert_eq!(world.read(&world.pending_path("acme/app")), bytes);
}

#[test]
fn a_thousand_entries_are_allowed_and_one_more_is_not() {
    let world = World::start();
    let entry = |n: usize| signer(&Person::named(&format!("signer {n}")).key());
    let mut signers: Vec<_> = (0..1000).map(entry).collect();
    signers.push(signer(&alice().key()));
    assert_invalid(&world, good().with("artifact_signers", group(json!(1), &signers)).bytes(), "");
    let file = good().with("artifact_signers", group(json!(1), &signers[1..]));
    world.register(&alice(), "acme/app", &file).ok();
}

#[test]
fn an_upstream_that_fails_is_named_with_its_reason_and_nothing_is_stored() {
    let world = World::start();
    let path = "/acme/app/svc.signers.json";
    let url = world.files.url(path);
    for answer in [
        Answer::Status(404),
        Answer::Status(403),
        Answer::Status(500),
        Answer::Status(204),
        Answer::HungUp,
        Answer::BrokenOff(good().bytes()),
    ] {
        world.files.set(path, answer);
        world.register_url(&alice(), &url).refused(500, &url);
    }
    assert_nothing_stored(&world);
}

#[test]
fn an_invalid_file_is_refused_with_its_url() {
    let world = World::start();
    let url = world.files.url("/acme/app/svc.signers.json");
    for bytes in [b"<html>Sign in</html>".to_vec(), good().with("version", json!(2)).bytes()] {
        assert_invalid(&world, bytes, &url);
    }
}
