//! Ctrl-C and SIGTERM finish the requests under way, then exit 0.

use std::{
    net::TcpStream,
    time::{Duration, Instant},
};

use crate::support::{Answer, Person, SignersFile, TestServer, World};

#[test]
fn an_idle_server_stops_at_once_with_exit_code_0() {
    for signal in ["TERM", "INT"] {
        let mut server = TestServer::start();
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0), "SIG{signal}");
    }
}

#[test]
fn a_request_under_way_is_finished_first() {
    let alice = Person::named("alice");
    for signal in ["TERM", "INT"] {
        let mut world = World::start();
        let file = SignersFile::of(1, &[&alice]);
        let (answer, keeper) = Answer::held(file.bytes());
        world.files.set("/acme/app/svc.signers.json", answer);
        let url = world.files.url("/acme/app/svc.signers.json");
        let reply = std::thread::scope(|scope| {
            let held = scope.spawn(|| world.register_url(&alice, &url));
            keeper.await_request();
            world.server.signal(signal);
            // The signal has been heard once nobody is let in any more.
            let deadline = Instant::now() + Duration::from_secs(10);
            while TcpStream::connect(world.server.address()).is_ok() {
                assert!(Instant::now() < deadline, "a server that stops lets new callers in");
                std::thread::yield_now();
            }
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
fn idle_connections_do_not_hold_a_stop_up() {
    let mut server = TestServer::start();
    let silent = TcpStream::connect(server.address()).unwrap();
    server.get("/v1/ping").ok();
    assert_eq!(server.stop().code(), Some(0));
    drop(silent);
}
