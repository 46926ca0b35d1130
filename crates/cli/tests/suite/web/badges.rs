//! Badges: what they say of each thing, and how they are served.

use crate::support::{Person, Reply, Request, SignersFile, World, days_ago};

fn badge(world: &World, path: &str) -> Reply {
    world.server.get(&format!("/badge/{path}.svg"))
}

/// What a badge says, after a look at how it was served.
#[track_caller]
fn said(world: &World, path: &str) -> String {
    let reply = badge(world, path);
    assert_eq!(reply.status, 200, "{}", reply.text());
    read(&reply)
}

#[track_caller]
fn read(reply: &Reply) -> String {
    assert_eq!(reply.header("content-type"), Some("image/svg+xml; charset=utf-8"));
    assert_eq!(reply.header("content-security-policy"), Some("default-src 'none'; frame-ancestors 'none'"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(reply.header("cache-control"), Some("max-age=60"));
    let text = reply.text();
    assert!(
        text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && text.ends_with("</svg>"),
        "{text}"
    );
    assert!(!text.contains("style") && !text.contains("href"), "{text}");
    let title = text.split_once("<title>").unwrap().1.split_once("</title>").unwrap().0;
    title.to_owned()
}

#[test]
fn a_release_goes_from_collecting_to_complete_to_revoked() {
    let [alice, bob] = ["alice", "bob"].map(Person::named);
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let index = world.add_release(&alice, "acme/app/1.0");
    assert_eq!(said(&world, &index), "signed: 0 of 2 signatures");
    world.sign(&alice, &index).ok();
    assert_eq!(said(&world, &index), "signed: 1 of 2 signatures");
    assert_eq!(
        said(&world, &world.id("acme/app/1.0")),
        "signed: 1 of 2 signatures",
        "its directory stands for it"
    );
    world.sign(&bob, &index).ok();
    assert_eq!(said(&world, &index), "signed: complete");
    world.revoke(&alice, &index).ok();
    assert_eq!(said(&world, &index), "signed: revoked");
}

#[test]
fn a_project_tells_its_signers() {
    let [alice, bob] = ["alice", "bob"].map(Person::named);
    let world = World::start();
    let file = SignersFile::of(2, &[&alice, &bob]);
    world.register(&alice, "acme/app", &file).ok();
    let (project, pending) = (world.id("acme/app"), world.pending_path("acme/app"));
    world.sign(&alice, &pending).ok();
    assert_eq!(said(&world, &project), "signers: 1 of 2 signatures");
    assert_eq!(said(&world, &pending), "signers: 1 of 2 signatures");
    world.sign(&bob, &pending).ok();
    assert_eq!(said(&world, &project), "signers: 2");
    assert_eq!(badge(&world, &pending).status, 404);
    world.propose(&alice, "acme/app", &file.redated(days_ago(5))).ok();
    assert_eq!(said(&world, &project), "signers: 2, change pending");
    assert_eq!(said(&world, &pending), "signers: 0 of 4 signatures");
}

#[test]
fn a_begun_revocation_comes_before_everything_else() {
    let [alice, bob] = ["alice", "bob"].map(Person::named);
    let file = SignersFile::of(1, &[&alice, &bob]).revocation(2, &[&alice, &bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let index = world.add_signed_release("acme/app/1.0", &[&alice]);
    let document = world.revocation_of(&index, "wrong build");
    assert_eq!(world.revoke_with(&alice, &index, &document).status, 202);
    assert_eq!(said(&world, &index), "revocation: 1 of 2 signatures");
    assert_eq!(said(&world, &world.id("acme/app")), "signers: revocation begun");
    world.revoke_with(&bob, &index, &document).ok();
    assert_eq!(said(&world, &index), "signed: revoked");
    assert_eq!(said(&world, &world.id("acme/app")), "signers: 2");
}

#[test]
fn what_is_not_there_has_a_badge_that_says_so() {
    let world = World::start();
    for path in ["nowhere", "https/github.com/443/acme/app", "a/../b", "%3Cscript%3E", ".git", "a%22b"] {
        let reply = badge(&world, path);
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(read(&reply), "signed: unknown");
        assert_eq!(reply.header("etag"), None);
    }
    assert_eq!(world.server.get("/badge/nowhere").status, 404);
}

#[test]
fn a_badge_that_says_the_same_is_not_sent_again() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_release(&alice, "acme/app/1.0");
    let target = format!("/badge/{index}.svg");
    let tag = world.server.get(&target).header("etag").unwrap().to_owned();
    let again = Request::get(&target).with_header("if-none-match", &tag);
    world.add_release(&alice, "acme/app/1.1");
    assert_eq!(world.server.send(&again).status, 304);
    world.sign(&alice, &index).ok();
    assert_eq!(world.server.send(&again).status, 200);
}
