//! GET /v1/events: what is sent, and to whom.

use serde_json::json;

use crate::support::{EventStream, Person, Request, SignersFile, World, alice, bob, carol, days_ago};

fn listen(world: &World, query: &str) -> EventStream {
    EventStream::at(world.server.address(), &format!("/v1/events{query}"))
}

/// The next event must be this one, and what the newest commit did.
#[track_caller]
fn assert_event(world: &World, events: &mut EventStream, kind: &str, path: &str, by: Option<&Person>) {
    let block = events.next_event();
    let commit = world.git().run(&["rev-parse", "main"]).trim().to_owned();
    let time = world.git().run(&["log", "-1", "--format=%ct", "main"]).trim().parse().unwrap();
    let time = countersign_core::values::time::Timestamp::from_unix_seconds(time).unwrap().to_string();
    assert_eq!(block.kind.as_deref(), Some(kind));
    let expected =
        json!({ "type": kind, "path": path, "key": by.map(Person::key), "time": time, "commit": commit });
    assert_eq!(block.data, Some(expected));
    let has_id = kind != "signature" || world.is_only_a_signature();
    assert_eq!(block.id, has_id.then_some(commit), "{kind}");
}

impl World {
    /// Whether the newest commit made nothing complete.
    fn is_only_a_signature(&self) -> bool {
        self.git().last_message().starts_with("Sign http")
    }
}

#[test]
fn every_kind_of_event_is_told_as_it_happens() {
    let (alice, bob, carol) = (alice(), bob(), carol());
    let mut world = World::start();
    let mut events = listen(&world, "");
    let head = &events.head;
    for (name, value) in
        [("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no")]
    {
        assert_eq!(head.header(name), Some(value), "{name}");
    }
    let (pending, active) = (world.pending_path("acme/app"), world.active_path("acme/app"));
    let file = SignersFile::of(2, &[&alice, &bob]).revocation(2, &[&alice, &bob]);
    world.register(&alice, "acme/app", &file).ok();
    assert_event(&world, &mut events, "registration", &pending, Some(&alice));
    world.sign(&bob, &pending).ok();
    assert_event(&world, &mut events, "signature", &pending, Some(&bob));
    world.sign(&alice, &pending).ok();
    assert_event(&world, &mut events, "signature", &pending, Some(&alice));
    assert_event(&world, &mut events, "activated", &active, Some(&alice));

    let index = world.add_release(&bob, "acme/app/v1");
    assert_event(&world, &mut events, "release", &index, Some(&bob));
    world.sign(&alice, &index).ok();
    assert_event(&world, &mut events, "signature", &index, Some(&alice));
    world.sign(&bob, &index).ok();
    assert_event(&world, &mut events, "signature", &index, Some(&bob));
    assert_event(&world, &mut events, "complete", &index, Some(&bob));
    let document = world.revocation_of(&index, "key leaked");
    assert_eq!(world.revoke_with(&alice, &index, &document).status, 202);
    assert_event(&world, &mut events, "revocation", &index, Some(&alice));
    assert_eq!(world.revoke_with(&bob, &index, &document).status, 200);
    assert_event(&world, &mut events, "revoked", &index, Some(&bob));

    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice, &bob, &carol]);
    world.propose(&alice, "acme/app", &next).ok();
    assert_event(&world, &mut events, "proposal", &pending, Some(&alice));
    let known = world.git().run(&["rev-parse", "main"]).trim().to_owned();
    world.server.stop();
    assert_eq!(events.next_block(), None);
    let dropped = world.server.admin(&["drop", &world.id("acme/app")]).output();
    assert_eq!(dropped.status.code(), Some(0));
    world.server.start_again();
    let request = Request::get("/v1/events").with_header("Last-Event-ID", &known);
    let mut events = EventStream::open(world.server.address(), &request);
    assert_event(&world, &mut events, "dropped", &pending, None);
}

#[test]
fn kinds_are_chosen_by_name_and_the_one_that_is_told_has_the_id() {
    let alice = alice();
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let mut signatures = listen(&world, "?type=signature");
    let mut others = listen(&world, "?type=complete,release");
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    let commit = world.git().run(&["rev-parse", "main"]).trim().to_owned();
    let signature = signatures.next_event();
    assert_eq!((signature.kind.as_deref(), signature.id.as_ref()), (Some("signature"), Some(&commit)));
    assert_eq!(others.next_kinds(), ["release"]);
    let complete = others.next_event();
    assert_eq!((complete.kind.as_deref(), complete.id.as_ref()), (Some("complete"), Some(&commit)));
    assert_eq!(complete.data.unwrap()["path"], json!(index));
}

#[test]
fn a_key_is_told_of_what_waits_for_its_signature() {
    let (alice, bob, carol) = (alice(), bob(), carol());
    let world = World::start();
    let file = SignersFile::of(2, &[&alice, &bob]);
    for spelling in [bob.key(), bob.key().replace('+', "%2B"), bob.ssh_key().replace(' ', "%20")] {
        drop(listen(&world, &format!("?key={spelling}")));
    }
    let mut bobs = listen(&world, &format!("?key={}", bob.key()));
    let mut carols = listen(&world, &format!("?key={}", carol.key()));
    world.register(&alice, "acme/app", &file).ok();
    assert_eq!(bobs.next_kinds(), ["registration"]);
    world.sign(&alice, &world.pending_path("acme/app")).ok();
    assert_eq!(bobs.next_kinds(), ["signature"]);
    // With his own signature nothing waits for him.
    world.sign(&bob, &world.pending_path("acme/app")).ok();
    let index = world.add_release(&alice, "acme/app/v1");
    let told = bobs.next_event();
    assert_eq!((told.kind.as_deref(), &told.data.unwrap()["path"]), (Some("release"), &json!(index)));
    // New signers of what still collects: it waits for all of them anew.
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice, &bob, &carol]);
    world.propose(&alice, "acme/app", &next).ok();
    assert_eq!(bobs.next_kinds(), ["proposal"]);
    world.sign(&alice, &world.pending_path("acme/app")).ok();
    assert_eq!(bobs.next_kinds(), ["signature"]);
    world.sign(&bob, &world.pending_path("acme/app")).ok();
    world.sign(&carol, &world.pending_path("acme/app")).ok();
    assert_eq!(bobs.next_kinds(), ["activated"]);
    assert_eq!(carols.next_kinds(), ["proposal", "signature", "signature", "activated"]);
}
