//! Going on with the events from the last one that was heard (`Last-Event-ID`).

use crate::support::{EventStream, Person, Request, SignersFile, World};

fn after(world: &World, commit: &str) -> EventStream {
    let request = Request::get("/v1/events").with_header("last-event-id", commit);
    EventStream::open(world.server.address(), &request)
}

/// The commits of the branch, oldest first.
fn commits(world: &World) -> Vec<String> {
    world.git().run(&["rev-list", "--reverse", "main"]).lines().map(str::to_owned).collect()
}

#[test]
fn all_that_was_missed_is_told_in_order_before_and_after_a_restart() {
    let alice = Person::named("alice");
    let mut world = World::start();
    let mut live = EventStream::at(world.server.address(), "/v1/events");
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    world.add_signed_release("acme/app/v1", &[&alice]);
    let heard: Vec<_> = (0..6).map(|_| live.next_event()).collect();
    let commits = commits(&world);
    assert_eq!(commits.len(), 5, "the first one creates the repository");

    let assert_resumes = |world: &World| {
        // A listener that knows a commit with two events has heard both.
        for (known, first) in [(0, 0), (1, 1), (2, 3), (3, 4), (4, 6)] {
            let mut resumed = after(world, &commits[known]);
            let query = format!("/v1/events?last_event_id={}", commits[known].to_uppercase());
            let mut asked = EventStream::at(world.server.address(), &query);
            for event in &heard[first..] {
                assert_eq!(&resumed.next_event(), event, "after {known}");
                assert_eq!(&asked.next_event(), event, "after {known}");
            }
        }
    };
    assert_resumes(&world);
    world.server.restart();
    assert_resumes(&world);
    world.server.crash_and_restart();
    assert_resumes(&world);

    // What comes after a restart follows what came before it.
    let mut resumed = after(&world, &commits[3]);
    let index = world.add_release(&alice, "acme/app/v2");
    assert_eq!(resumed.next_kinds(), ["signature", "complete", "release"]);
    assert!(index.ends_with("v2/svc.index.json"));
}

#[test]
fn the_header_of_a_client_that_was_cut_off_beats_what_its_url_says() {
    let alice = Person::named("alice");
    let mut world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let commits = commits(&world);
    let request = Request::get(format!("/v1/events?last_event_id={}", commits[0]));
    let mut events =
        EventStream::open(world.server.address(), &request.with_header("last-event-id", &commits[1]));
    assert_eq!(events.next_kinds(), ["signature", "activated"]);
    // A client that has heard nothing yet may say so.
    let request = Request::get(format!("/v1/events?last_event_id={}", commits[0]));
    let mut events = EventStream::open(world.server.address(), &request.with_header("last-event-id", ""));
    assert_eq!(events.next_kinds(), ["registration", "signature", "activated"]);

    // The first block says where to go on from, also after a restart.
    for _ in 0..2 {
        let stream = std::net::TcpStream::connect(world.server.address()).unwrap();
        let mut events = EventStream::over(stream, &Request::get("/v1/events?type=dropped"));
        assert_eq!(events.next_block().unwrap().id.as_ref(), commits.last());
        world.server.restart();
    }
}
