//! Many listeners, their limits, and their end.

use std::time::{Duration, Instant};

use crate::support::metrics::{Page, await_value};
use crate::support::{EventStream, Person, SignersFile, TestServer, World};

/// Far less than the time between two signs of life.
const PROMPTLY: Duration = Duration::from_secs(10);
const LISTENERS: &str = "countersign_event_listeners";

#[test]
fn two_hundred_listeners_hear_the_same() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = World::start_with(|launch, _| launch.arg("--dev").with_metrics());
    let metrics = world.server.metrics_address();
    let listen = |_| EventStream::at(world.server.address(), "/v1/events");
    let mut listeners: Vec<_> = (0..200).map(listen).collect();
    assert_eq!(Page::read(metrics).value(LISTENERS), 200.0);
    world.activate("acme/app", &SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    for version in 0..10 {
        world.add_signed_release(&format!("acme/app/v{version}"), &[&alice, &bob]);
    }
    let count = 4 + 10 * 4;
    let hear = |listener: &mut EventStream| -> Vec<_> { (0..count).map(|_| listener.next_event()).collect() };
    let heard = hear(&mut listeners[0]);
    assert_eq!(heard.last().unwrap().kind.as_deref(), Some("complete"));
    for listener in &mut listeners[1..] {
        assert_eq!(hear(listener), heard);
    }
    assert_eq!(Page::read(metrics).value("countersign_events_sent_total"), f64::from(count * 200));
    // The server notices at once that a listener is gone, not with the next event.
    drop(listeners.split_off(50));
    await_value(metrics, LISTENERS, 50.0);
}

#[test]
fn a_stop_ends_all_streams_at_once() {
    let mut server = TestServer::start();
    let mut listeners: Vec<_> =
        (0..20).map(|_| EventStream::at(server.address(), "/v1/events?type=dropped")).collect();
    let asked = Instant::now();
    assert_eq!(server.stop().code(), Some(0));
    assert!(asked.elapsed() < PROMPTLY, "it took {:?}", asked.elapsed());
    for listener in &mut listeners {
        assert_eq!(listener.next_block(), None);
    }
}
