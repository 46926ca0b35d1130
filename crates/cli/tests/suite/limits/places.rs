//! D46: turns to fetch, listeners and large bodies are shared. A few addresses with any number of keys take none of
//! them away from others.

use std::{net::SocketAddr, thread::ScopedJoinHandle};

use serde_json::json;

use crate::support::metrics::{Page, await_value};
use crate::support::{
    Answer, Connection, EventStream, Person, Reply, Request, SignersFile, TestServer, World, http,
    machine_clock::MachineClock, waiting::wait_until,
};

/// The largest body that needs no place.
const SMALL_BODY: usize = 16 * 1024;

/// Sends a request as a trusted proxy passes it on for a client at this address.
fn from(request: Request, address: &str) -> Request {
    request.with_header("X-Forwarded-For", address)
}

fn places(what: &str, of: &str) -> String {
    format!("countersign_places_{what}{{of=\"{of}\"}}")
}

#[test]
fn strangers_at_four_addresses_leave_turns_to_signers_and_to_other_strangers() {
    // No stranger has had a turn for long, however slow the machine is, before the clock is moved.
    let Some(clock) = MachineClock::new() else { return };
    let world = World::start_with(|launch, _| {
        let flags = ["--file-server", "*", "--allow-fetch", "127.0.0.1:*", "--trusted-proxy", "127.0.0.1"];
        clock.give_still_to(launch.args(flags).with_metrics())
    });
    let metrics = world.server.metrics_address();
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let crowd: Vec<_> = (0..8).map(|n| Person::named(&format!("mallory-{n}"))).collect();
    let held: Vec<_> = (0..64)
        .map(|n| {
            let (answer, keeper) = Answer::held(SignersFile::of(1, &[&crowd[n % 8]]).bytes());
            let path = format!("/slow/{n}/svc.signers.json");
            world.files.set(&path, answer);
            (world.files.url(&path), keeper)
        })
        .collect();
    let register = |person: &Person, url: &str, address: &str| {
        let body = json!({ "signers_file_url": url, "public_key": person.body_key() });
        let request = person.sign(Request::post("/v1/register_repo", &body));
        http::send(world.server.address(), &from(request, address))
    };
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let requests: Vec<ScopedJoinHandle<'_, Reply>> = held
            .iter()
            .enumerate()
            .map(|(n, (url, _))| {
                let (person, address) = (&crowd[n % 8], format!("198.51.100.{}", n % 4));
                scope.spawn(move || register(person, url, &address))
            })
            .collect();
        // Half of the turns is all that strangers get; the others of them wait.
        await_value(metrics, &places("held", "fetch_turns"), 16.0);
        await_value(metrics, &places("awaited", "fetch_turns"), 48.0);

        // On the clock that stands still, whatever waits for a time-out is not answered.
        world.add_release(&alice, "acme/app/v1");
        assert_eq!(Page::read(metrics).value(&places("given_up_total", "fetch_turns")), 0.0);

        clock.set(1);
        let url = world.publish("bob/app", &SignersFile::of(1, &[&bob]));
        register(&bob, &url, "203.0.113.9").ok();
        assert!(Page::read(metrics).value(&places("given_up_total", "fetch_turns")) >= 1.0);
        held.iter().for_each(|(_, keeper)| keeper.release());
        requests.into_iter().map(|request| request.join().unwrap()).collect()
    });
    let gave_way: Vec<_> = replies.iter().filter(|reply| reply.status == 503).collect();
    assert!(!gave_way.is_empty());
    for reply in gave_way {
        assert!(reply.header("retry-after").is_some(), "{}", reply.text());
    }
}

/// A server with this configuration, behind a proxy that speaks for any number of addresses.
fn behind_proxy(config: &str) -> (TestServer, SocketAddr) {
    let server = TestServer::start_with(|launch| {
        launch.configured(config).args(["--trusted-proxy", "127.0.0.1"]).with_metrics()
    });
    let metrics = server.metrics_address();
    (server, metrics)
}

#[test]
fn addresses_that_hold_all_places_of_listeners_make_room_for_others() {
    let (server, metrics) = behind_proxy("[limits]\nevent_listeners = 6\n");
    let listen =
        |address: &str| EventStream::open(server.address(), &from(Request::get("/v1/events"), address));
    let mut crowd: Vec<_> = (0..6).map(|n| listen(&format!("198.51.100.{}", n % 2))).collect();
    await_value(metrics, &places("held", "event_listeners"), 6.0);
    let refused = server.send(&from(Request::get("/v1/events"), "198.51.100.1"));
    refused.refused(503, "too many others listen");
    assert!(refused.header("retry-after").is_some());
    // Three each; then two of each, and two of another one.
    let honest = [listen("203.0.113.9"), listen("203.0.113.9")];
    let refused = server.send(&from(Request::get("/v1/events"), "203.0.113.9"));
    refused.refused(503, "too many others listen");
    for listener in &mut crowd[..2] {
        while let Some(block) = listener.next_block() {
            assert_eq!(block.kind, None, "nothing happened");
        }
    }
    assert_eq!(Page::read(metrics).value(&places("given_up_total", "event_listeners")), 2.0);
    assert_eq!(Page::read(metrics).value(&places("held", "event_listeners")), 6.0);
    // Neither a refused request nor one for the head alone takes a place, though the address would get one.
    server.send(&from(Request::get("/v1/events?prefix="), "192.0.2.1")).error(400);
    for (query, status) in [("", 200), ("?last_event_id=0000000000000000000000000000000000000000", 404)] {
        let head = Request::head(format!("/v1/events{query}"));
        assert_eq!(server.send(&from(head, "192.0.2.1")).status, status);
    }
    assert_eq!(Page::read(metrics).value(&places("given_up_total", "event_listeners")), 2.0);
    assert_eq!(Page::read(metrics).value(&places("held", "event_listeners")), 6.0);
    drop(honest);
    await_value(metrics, &places("held", "event_listeners"), 4.0);
}

/// A connection on which a request with a body is announced, of 100,000 bytes unless `adapt` says otherwise.
/// `100 Continue` says that the server receives it.
fn announce(
    server: &TestServer,
    address: Option<&str>,
    route: &str,
    adapt: impl Fn(Request) -> Request,
) -> Connection {
    let (method, target) = route.split_once(' ').unwrap();
    let signed = adapt(Person::named("mallory").sign(Request::new("POST", "/v1/assets")));
    let forwarded = address.map(|address| ("X-Forwarded-For".to_owned(), address.to_owned()));
    let headers = signed.headers.iter().cloned().chain(forwarded);
    let headers: String = headers.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut connection = Connection::open(server.address());
    let length = if headers.contains("content-length") { "" } else { "content-length: 100000\r\n" };
    let begin = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n");
    connection.write(&format!("{begin}{length}{headers}\r\n"));
    connection
}

#[test]
fn bodies_that_do_not_arrive_make_room_for_others() {
    let (server, metrics) = behind_proxy("");
    let begin = |address: &str| announce(&server, Some(address), "POST /v1/assets", |request| request);
    let hold = |n| {
        let mut connection = begin(&format!("198.51.100.{}", n % 2));
        assert_eq!(connection.read_head(), 100);
        connection
    };
    let mut held: Vec<_> = (0..32).map(hold).collect();
    // Small ones need no place.
    let of_length = |length: usize| {
        announce(&server, Some("198.51.100.1"), "POST /v1/assets", |request| request.announcing(length))
    };
    assert_eq!(of_length(SMALL_BODY).read_head(), 100);
    of_length(SMALL_BODY + 1).read_reply().refused(503, "busy");
    // An address has half of the places, and all of them are taken.
    begin("198.51.100.1").read_reply().refused(503, "busy");
    let refused = begin("198.51.100.0").read_reply();
    refused.refused(503, "busy");
    assert!(refused.header("retry-after").is_some());
    // Another address takes the place of one of those that hold most.
    assert_eq!(begin("203.0.113.9").read_head(), 100, "those who send nothing keep their places");
    assert!(Page::read(metrics).value(&places("given_up_total", "large_bodies")) >= 1.0);
    assert_eq!(held[0].read_head(), 408, "the oldest went first");
    // A place that was given up is given to another.
    drop(held.split_off(8));
    wait_until("a place that was given up is given to another", || begin("198.51.100.1").read_head() == 100);
}

#[test]
fn no_body_is_received_before_the_head_is_plausible() {
    let (server, metrics) = behind_proxy("");
    let routes = [
        "POST /v1/register_repo", "POST /v1/update_signers", "POST /v1/signatures", "POST /v1/revoke",
        "POST /v1/assets", "GET /v1/pending_signatures", "GET /v1/signatures/a", "GET /v1/files-to-sign/a",
    ];
    for route in routes {
        let implausible: [fn(Request) -> Request; 5] = [
            |request| request.without_header("X-svc-timestamp"),
            |request| request.replace_header("X-svc-timestamp", "2020-01-01T00:00:00Z"),
            |request| request.replace_header("X-svc-pk", "svc-pub:AAAA"),
            |request| request.replace_header("X-svc-nonce", "short"),
            |request| request.replace_header("X-svc-sig", "?"),
        ];
        for adapt in implausible {
            announce(&server, None, route, adapt).read_reply().error(401);
        }
        assert_eq!(announce(&server, None, route, |request| request).read_head(), 100, "{route}");
    }
    assert_eq!(Page::read(metrics).value(&places("refused_total", "large_bodies")), 0.0);
}
