//! A project and its people, and what they send.

use countersign_core::values::{digest::Sha512, time::Timestamp};
use serde_json::{Value, json};

use super::{
    http::Reply, people::Person, people::now, signers::SignersFile, signers::signer, world::World,
    world::checksums,
};
use crate::support::person;

/// Two of alice and bob sign, carol is admin, dave master, erin revokes, and a machine registers.
pub(crate) fn team() -> SignersFile {
    let [alice, bob, carol, dave, erin] = ["alice", "bob", "carol", "dave", "erin"].map(person);
    SignersFile::of(2, &[&alice, &bob])
        .admin(1, &[&carol])
        .master(1, &[&dave])
        .revocation(1, &[&erin])
        .with("registrars", json!([signer(&person("machine").key())]))
}

pub(crate) fn project() -> World {
    let [alice, bob, carol, dave, erin] = ["alice", "bob", "carol", "dave", "erin"].map(person);
    World::with_project(&team(), &[&alice, &bob, &carol, &dave, &erin])
}

/// Begins with a release of alice's that collects signatures.
pub(crate) fn collecting() -> (World, String) {
    let world = project();
    let index = world.add_release(&person("alice"), "acme/app/v1");
    (world, index)
}

pub(crate) fn digest_of(world: &World, path: &str) -> String {
    Sha512::of(&world.read(path)).to_prefixed()
}

/// Without a digest.
pub(crate) fn withdraw(world: &World, by: &Person, path: &str) -> Reply {
    world.post_as(by, "/v1/withdraw", &json!({ "file_path": path, "reason": "the wrong tag" }))
}

/// The text of an objection to the index, made now.
pub(crate) fn objection(world: &World, path: &str, text: Option<&str>) -> String {
    let digest = digest_of(world, path);
    json!({ "objection": text, "subject_digest": digest, "timestamp": now().to_string() }).to_string()
}

pub(crate) fn objection_body(by: &Person, path: &str, document: &str) -> Value {
    json!({
        "file_path": path,
        "objection_json": document,
        "signature": by.sign_bytes(document.as_bytes()),
        "public_key": by.body_key(),
    })
}

pub(crate) fn object(world: &World, by: &Person, path: &str, text: Option<&str>) -> Reply {
    let body = objection_body(by, path, &objection(world, path, text));
    world.post_as(by, "/v1/object", &body)
}

/// A veto of the pending signers of a project.
pub(crate) fn veto_document(world: &World, name: &str, reason: &str, at: Timestamp) -> String {
    json!({
        "veto": reason,
        "project_id": world.id(name),
        "signers_file_digest": digest_of(world, &world.pending_path(name)),
        "previous": digest_of(world, &world.active_path(name)),
        "timestamp": at.to_string(),
    })
    .to_string()
}

pub(crate) fn veto_body(by: &Person, path: &str, document: &str) -> Value {
    json!({
        "file_path": path,
        "veto_json": document,
        "signature": by.sign_bytes(document.as_bytes()),
        "public_key": by.body_key(),
    })
}

/// States what came from the source: a file of this content in a checksums file, with other values for some fields.
pub(crate) fn rebuild(
    world: &World,
    by: &Person,
    path: &str,
    content: &str,
    others: &[(&str, &str)],
) -> Reply {
    let (sha256, digest) = (&checksums(content)[..64], digest_of(world, path));
    let mut document = json!({
        "rebuild_of": path,
        "subject_digest": digest,
        "source_commit": "0123456789abcdef0123456789abcdef01234567",
        "files": [{ "file_name": "app.tar.gz", "digests": { "sha256": sha256 } }],
        "timestamp": now().to_string(),
    });
    for (field, value) in others {
        let place = if *field == "file_name" { &mut document["files"][0] } else { &mut document };
        place[field] = json!(value);
    }
    let document = document.to_string();
    let body = json!({
        "file_path": path,
        "rebuild_json": document,
        "signature": by.sign_bytes(document.as_bytes()),
        "public_key": by.body_key(),
    });
    world.post_as(by, "/v1/rebuild", &body)
}
