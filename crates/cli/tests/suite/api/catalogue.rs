//! `GET /v1/releases`, `/v1/projects` and `/v1/keys/…` (D51, D52). What the lists hold is tested beside the catalogue, in
//! crates/store; here is what only the whole server shows.

use countersign_api::catalogue::{KeyPendingResponse, KeyResponse, ProjectsResponse, ReleasesResponse};
use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use crate::support::{Person, SignersFile, TestServer, World, days_ago, world::checksums};

fn people() -> [Person; 3] {
    ["alice", "bob", "carol"].map(Person::named)
}

/// Alice signs releases. Two of Alice, Bob and Carol revoke them.
fn world() -> World {
    let [alice, bob, carol] = people();
    let file = SignersFile::of(1, &[&alice]).revocation(2, &[&alice, &bob, &carol]);
    World::with_project(&file, &[&alice, &bob, &carol])
}

fn digest(seed: &str) -> String {
    checksums(seed)[..64].to_owned()
}

fn releases(world: &World, query: &str) -> Value {
    let reply = world.server.get(&format!("/v1/releases?{query}"));
    ReleasesResponse::parse(&reply.body).expect("an answer that the client reads");
    reply.ok()
}

fn encode(key: &str) -> String {
    key.replace('%', "%25").replace('/', "%2F").replace('+', "%2B").replace(' ', "%20")
}

fn pending(world: &World, key: &str) -> Value {
    let reply = world.server.get(&format!("/v1/keys/{}/pending", encode(key)));
    KeyPendingResponse::parse(&reply.body).expect("an answer that the client reads");
    reply.ok()
}

fn of_key(world: &World, key: &str) -> Value {
    let reply = world.server.get(&format!("/v1/keys/{}", encode(key)));
    KeyResponse::parse(&reply.body).expect("an answer that the client reads");
    reply.ok()
}

fn paths(answer: &Value, list: &str, field: &str) -> Vec<String> {
    let entries = answer[list].as_array().expect("a list");
    entries.iter().map(|entry| entry[field].as_str().expect("a path").to_owned()).collect()
}

#[test]
fn a_file_leads_to_its_release_as_soon_as_the_last_signature_is_answered() {
    let [alice, bob, carol] = people();
    let mut world = world();
    let found = |world: &World| releases(world, &format!("sha256={}", digest("acme/app/v1")));
    assert_eq!(found(&world), json!({ "releases": [], "more": false }));
    let index = world.add_release(&alice, "acme/app/v1");
    assert_eq!(found(&world)["releases"], json!([]), "it still collects signatures");
    world.sign(&alice, &index).ok();
    let entry = found(&world)["releases"][0].clone();
    assert_eq!(entry["index_path"], json!(index));
    assert_eq!(entry["project_id"], json!(world.id("acme/app")));
    assert_eq!((&entry["state"], &entry["file_name"]), (&json!("complete"), &json!("app.tar.gz")));
    assert_eq!(entry["signatures"], json!({ "collected": 1, "needed": 1 }));
    for absent in ["tag", "revoked_at", "revocation_reason", "revocation_begun"] {
        assert_eq!(entry.get(absent), None);
    }
    let capitals = releases(&world, &format!("sha256={}", digest("acme/app/v1").to_uppercase()));
    assert_eq!(capitals["releases"][0], entry);

    let document = world.revocation_of(&index, "key leaked");
    assert_eq!(world.revoke_with(&bob, &index, &document).status, 202);
    assert_eq!(found(&world)["releases"][0]["revocation_begun"], json!({ "collected": 1, "needed": 2 }));
    world.server.restart();
    assert_eq!(found(&world)["releases"][0]["revocation_begun"], json!({ "collected": 1, "needed": 2 }));
    world.revoke_with(&carol, &index, &document).ok();
    let revoked = found(&world)["releases"][0].clone();
    assert_eq!((&revoked["state"], &revoked["revocation_reason"]), (&json!("revoked"), &json!("key leaked")));
    assert!(revoked["revoked_at"].is_string() && revoked.get("revocation_begun").is_none());
    let unknown = releases(&world, &format!("sha512={}", Sha512::of(b"other")));
    assert_eq!(unknown, json!({ "releases": [], "more": false }));
}

#[test]
fn more_than_a_hundred_releases_are_listed_in_parts() {
    let [alice, ..] = people();
    let world = world();
    for i in 0..101 {
        let dir = format!("acme/app/v{i}");
        let url = world.publish_checksums(&dir, &checksums("same"));
        world.register_assets(&alice, &[&url]).ok();
        world.sign(&alice, &world.index_path(&dir)).ok();
    }
    for query in [format!("sha256={}", digest("same")), format!("project={}", world.id("acme/app"))] {
        let first = releases(&world, &query);
        let mut seen = paths(&first, "releases", "index_path");
        assert_eq!((seen.len(), &first["more"]), (100, &json!(true)));
        let second = releases(&world, &format!("{query}&after={}", seen[99]));
        seen.extend(paths(&second, "releases", "index_path"));
        assert_eq!(second["more"], json!(false));
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 101);
    }
    let key = of_key(&world, &alice.key());
    assert_eq!((&key["signed_count"], key["signed"].as_array().unwrap().len()), (&json!(101), 25));
}

#[test]
fn a_parameter_that_is_wrong_is_named() {
    let world = world();
    let hex = digest("x");
    let project = world.id("acme/app");
    for (target, words) in [
        ("/v1/releases".to_owned(), "exactly one of `sha256`, `sha512` and `project`"),
        (format!("/v1/releases?sha256={hex}&project={project}"), "exactly one of"),
        (format!("/v1/releases?sha256={hex}&sha512={hex}{hex}"), "exactly one of"),
        (format!("/v1/releases?sha256={}", &hex[1..]), "sha256: must be 64 hexadecimal digits"),
        (format!("/v1/releases?sha512={hex}"), "sha512: must be 128 hexadecimal digits"),
        (format!("/v1/releases?sha256={}g", &hex[1..]), "sha256: "),
        ("/v1/releases?project=a/../b".to_owned(), "project: "),
        ("/v1/releases?project=".to_owned(), "project: "),
        (format!("/v1/releases?project={project}&tag=a//b"), "tag: "),
        (format!("/v1/releases?project={project}&state=done"), "state: must be collecting, complete or"),
        (format!("/v1/releases?sha256={hex}&state=complete"), "state: goes only with `project`"),
        (format!("/v1/releases?sha256={hex}&tag=v1"), "tag: goes only with `project`"),
        (format!("/v1/releases?sha256={hex}&newest=true"), "newest: goes only with `project`"),
        (format!("/v1/releases?project={project}&newest=false"), "newest: must be true"),
        (format!("/v1/releases?project={project}&newest=true&tag=v1"), "tag: does not go with `newest`"),
        (format!("/v1/releases?project={project}&newest=true&state=complete"), "state: does not go with"),
        (format!("/v1/releases?project={project}&after=.."), "after: "),
        (format!("/v1/releases?project={project}&after={project}"), "after: no release has its index at"),
        (format!("/v1/releases?sha256={hex}&after={project}"), "after: no release has its index at"),
        (format!("/v1/releases?sha256={hex}&sha256={hex}"), "sha256: given more than once"),
        (format!("/v1/releases?sha1={hex}"), "`sha1` is not one of"),
        ("/v1/projects".to_owned(), "name: must be given"),
        ("/v1/projects?name=".to_owned(), "name: "),
        ("/v1/projects?name=a/../b".to_owned(), "name: "),
        ("/v1/projects?q=acme".to_owned(), "`q` is not one of"),
        ("/v1/keys/alice".to_owned(), "key: "),
        ("/v1/keys/svc-pub:AA/pending".to_owned(), "key: "),
        ("/v1/keys/%ff/pending".to_owned(), "key: "),
    ] {
        world.server.get(&target).refused(400, words);
    }
    assert_eq!(releases(&world, &format!("project={project}&state=complete"))["releases"], json!([]));
    assert_eq!(releases(&world, "project=https/nowhere.example/443/x")["releases"], json!([]));
}

#[test]
fn projects_are_found_by_name() {
    let [_, bob, _] = people();
    let world = world();
    world.register(&bob, "other/app", &SignersFile::of(1, &[&bob])).ok();
    let named = |name: &str| {
        let reply = world.server.get(&format!("/v1/projects?name={name}"));
        ProjectsResponse::parse(&reply.body).expect("an answer that the client reads");
        reply.ok()["projects"].clone()
    };
    assert_eq!(named("Acme/App"), json!([world.id("acme/app")]));
    assert_eq!(named("app"), json!([world.id("acme/app")]), "the other one has no signers in force");
    assert_eq!(named("other/app"), json!([world.id("other/app")]));
    assert_eq!(named("acme"), json!([]));
}

#[test]
fn anyone_can_ask_what_waits_for_a_key_in_any_of_its_forms() {
    let [alice, bob, carol] = people();
    let mut world = world();
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    let second = world.add_release(&carol, "acme/app/v2");
    let document = world.revocation_of(&index, "key leaked");
    world.revoke_with(&bob, &index, &document);
    for key in [alice.key(), alice.body_key(), alice.ssh_key()] {
        let answer = pending(&world, &key);
        assert_eq!((&answer["public_key"], &answer["more"]), (&json!(alice.key()), &json!(false)));
        assert_eq!(paths(&answer, "pending", "file_path"), [index.as_str(), second.as_str()]);
        assert_eq!(paths(&answer, "pending", "kind"), ["revocation", "release"]);
        assert_eq!(paths(&answer, "pending", "by"), [bob.key(), carol.key()]);
        assert_eq!(answer["pending"][0]["reason"], json!("key leaked"));
        assert_eq!(answer["pending"][1]["roles"], json!(["artifact"]));
    }
    assert_eq!(pending(&world, &bob.key())["pending"], json!([]), "he has joined it already");
    assert_eq!(paths(&of_key(&world, &bob.key()), "begun", "file_path"), [index.as_str()]);
    let carols = pending(&world, &carol.key());
    assert_eq!(paths(&carols, "pending", "kind"), ["revocation"], "she has not joined it yet");

    // A correction by another key: who asked for it is known at once, and after a restart again.
    let url = world.publish_checksums("acme/app/v2", &checksums("corrected"));
    world.register_assets(&bob, &[&url]).ok();
    assert_eq!(pending(&world, &alice.key())["pending"][1]["by"], json!(bob.key()));
    world.server.restart();
    assert_eq!(pending(&world, &alice.key())["pending"][1]["by"], json!(bob.key()));
    // A signer who asks with her signature is told of the same revocations.
    let asked = |person: &Person| world.get_as(person, "/v1/pending_signatures").ok();
    assert_eq!(asked(&alice)["file_paths"], json!([second]));
    assert_eq!(asked(&alice)["revocations"], json!([pending(&world, &alice.key())["pending"][0]]));
    assert_eq!(asked(&bob), json!({ "file_paths": [] }));
    let stranger = Person::named("mallory");
    assert_eq!(pending(&world, &stranger.key())["pending"], json!([]));
    assert_eq!(of_key(&world, &stranger.key())["listed"], json!([]));
}

#[test]
fn a_key_says_where_it_is_listed_and_a_rotation_changes_that() {
    let [alice, bob, carol] = people();
    let world = world();
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    let listed = |person: &Person| of_key(&world, &person.key())["listed"].clone();
    let project = world.id("acme/app");
    assert_eq!(listed(&alice), json!([{ "project_id": project, "roles": ["artifact", "revocation"] }]));
    assert_eq!(listed(&bob), json!([{ "project_id": project, "roles": ["revocation"] }]));
    assert_eq!(paths(&of_key(&world, &alice.key()), "signed", "index_path"), [index.as_str()]);
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice, &carol]);
    world.rotate("acme/app", &next, &[&alice]);
    assert_eq!(listed(&bob), json!([]));
    assert_eq!(listed(&carol), json!([{ "project_id": project, "roles": ["artifact"] }]));
}

#[test]
fn a_new_server_has_an_empty_catalogue() {
    let server = TestServer::start();
    assert_eq!(server.get("/v1/projects?name=x").ok(), json!({ "projects": [], "more": false }));
    assert_eq!(server.get("/v1/releases?project=x").ok(), json!({ "releases": [], "more": false }));
}
