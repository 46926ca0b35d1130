//! Ctrl-C and SIGTERM finish the requests under way, then exit 0.

use std::{net::TcpStream, time::Duration, time::Instant};

use crate::support::{Answer, Connection, Person, Request, SignersFile, TestServer, World, http};

/// Far less than what a connection may take for its next request, and far more than a stop takes.
const PROMPTLY: Duration = Duration::from_secs(10);

#[test]
fn closing_the_terminal_ends_a_server_that_only_tries_things_out() {
    let mut trial = TestServer::start_with(|launch| launch.arg("--dev"));
    trial.signal("HUP");
    assert_eq!(trial.wait().code(), Some(0));
    let mut service = TestServer::start_with(|launch| launch);
    service.signal("HUP");
    service.await_log("there is no certificate to read again", 1);
    service.get("/healthz").ok();
    service.signal("TERM");
    assert_eq!(service.wait().code(), Some(0));
}

/// The server has heard the signal once it takes no new connection.
fn await_closed_door(server: &TestServer) {
    let deadline = Instant::now() + PROMPTLY;
    while TcpStream::connect(server.address()).is_ok() {
        assert!(Instant::now() < deadline, "a server that stops lets new callers in");
        std::thread::yield_now();
    }
}

#[test]
fn a_request_under_way_is_finished_first() {
    let alice = Person::named("alice");
    for signal in ["TERM", "INT"] {
        let mut world = World::start_with(|launch, _| launch.arg("--dev").with_metrics());
        let metrics = world.server.metrics_address();
        let ask = |path: &str| http::send(metrics, &Request::get(path));
        ask("/readyz").ok();
        let file = SignersFile::of(1, &[&alice]);
        let (answer, keeper) = Answer::held(file.bytes());
        world.files.set("/acme/app/svc.signers.json", answer);
        let url = world.files.url("/acme/app/svc.signers.json");
        let reply = std::thread::scope(|scope| {
            let held = scope.spawn(|| world.register_url(&alice, &url));
            keeper.await_request();
            world.server.signal(signal);
            await_closed_door(&world.server);
            // It is healthy, and not ready.
            ask("/readyz").refused(503, "stopping");
            ask("/healthz").ok();
            keeper.release();
            held.join().unwrap()
        });
        reply.ok();
        assert_eq!(world.server.wait().code(), Some(0), "SIG{signal}");
        world.server.start_again();
        assert_eq!(world.read(&world.pending_path("acme/app")), file.bytes(), "what was answered is there");
    }
}

#[test]
fn connections_that_say_nothing_or_are_kept_for_a_next_request_do_not_hold_a_stop_up() {
    for signal in ["TERM", "INT"] {
        let mut server = TestServer::start();
        let silent = TcpStream::connect(server.address()).unwrap();
        let mut kept: Vec<_> = (0..8).map(|_| Connection::open(server.address())).collect();
        for (requests, connection) in kept.iter_mut().enumerate() {
            for _ in 0..=requests % 2 {
                connection.write("GET /v1/ping HTTP/1.1\r\nhost: localhost\r\n\r\n");
                connection.read_reply().ok();
            }
        }
        let asked = Instant::now();
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0), "SIG{signal}");
        assert!(asked.elapsed() < PROMPTLY, "it took {:?}", asked.elapsed());
        drop((silent, kept));
    }
}

#[test]
fn a_second_signal_does_not_wait_for_a_request_that_is_half_sent() {
    let mut server = TestServer::start();
    let mut unfinished = Connection::open(server.address());
    unfinished.write("GET /v1/ping HTTP/1.1\r\nhost: loc");
    server.get("/v1/ping").ok();
    server.signal("TERM");
    await_closed_door(&server);
    let asked = Instant::now();
    assert_eq!(server.stop().code(), Some(0));
    assert!(asked.elapsed() < PROMPTLY, "it took {:?}", asked.elapsed());
    drop(unfinished);
}
