//! Clients that open thousands of connections and dribble bytes do not stop others from being served.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::{io::Read as _, io::Write as _, time::Duration, time::Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{Connection, Person, Request, TestServer, metrics::Page, waiting::wait_until};

/// Connections of the client that dribbles.
const MANY: usize = 5_000;
const MORE: usize = 1_000;
/// Less than the time after which the server gives a slow client up.
const PROMPTLY: Duration = Duration::from_secs(10);

/// Opens as many connections as asked for, each with half a request; fewer if the system does not allow more files.
fn dribble(address: SocketAddr, beginning: &str, wanted: usize) -> Vec<TcpStream> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    // Other tests run beside this one.
    let room = maximum.map_or(wanted, |files| usize::try_from(files / 3).unwrap());
    let count = wanted.min(room);
    if count < wanted {
        eprintln!("only {count} connections: the limit of open files is too low");
    }
    let open = |_| {
        let mut stream = TcpStream::connect(address).expect("the server lets everyone in");
        stream.write_all(beginning.as_bytes()).expect("the server reads");
        stream
    };
    (0..count).map(open).collect()
}

/// One more byte on each connection; those that the server has closed do not matter.
fn dribble_on(connections: &mut [TcpStream]) {
    for connection in connections {
        let _ = connection.write_all(b"x");
    }
}

/// Requests of someone else at the same address, on connections of their own.
#[track_caller]
fn assert_served(server: &TestServer) {
    let alice = Person::named("alice");
    let send = |request: Request| {
        let asked = Instant::now();
        let reply = server.send(&request);
        assert!(asked.elapsed() < PROMPTLY, "it took {:?}", asked.elapsed());
        reply
    };
    for _ in 0..20 {
        send(Request::get("/v1/ping")).ok();
        send(Request::get("/v1/files/a")).error(404);
        send(alice.sign(Request::get("/v1/pending_signatures"))).ok();
    }
}

fn assert_serves_others_meanwhile(server: &TestServer, beginning: &str) {
    let mut slow = dribble(server.address(), beginning, MANY);
    // How fast the system hands connections over is not asked here.
    let accepted = || Page::read(server.metrics_address()).value("countersign_connections_accepted_total");
    wait_until("the server has accepted them all", || accepted() >= slow.len() as f64);
    assert_served(server);
    dribble_on(&mut slow);
    assert_served(server);
    let more = dribble(server.address(), beginning, MORE);
    assert_served(server);
    drop((slow, more));
}

#[test]
fn thousands_of_half_sent_heads_and_bodies_keep_no_one_out() {
    let server = TestServer::start_with(|launch| launch.with_metrics());
    assert_serves_others_meanwhile(&server, "GET /v1/ping HTTP/1.1\r\nhost: localhost\r\nx-slow: ");
    drop(server);

    let config = "[rate_limits]\nenabled = false\n";
    let server = TestServer::start_with(|launch| launch.configured(config).with_metrics());
    let signed = Person::named("mallory").sign(Request::new("POST", "/v1/assets"));
    let headers: String = signed.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("POST /v1/assets HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n{headers}\r\n");
    assert_serves_others_meanwhile(&server, &head);
}

#[test]
fn silent_connections_beyond_the_limit_of_an_address_make_room() {
    let config = "[connections]\nmax = 100\nper_address = 10\n";
    let server = TestServer::start_with(|launch| launch.configured(config));
    let mut kept = Connection::open(server.address());
    let ask = |connection: &mut Connection| {
        connection.write("GET /v1/ping HTTP/1.1\r\nhost: localhost\r\n\r\n");
        connection.read_reply().ok();
    };
    ask(&mut kept);
    let mut silent = Vec::new();
    for _ in 0..30 {
        silent.push(Connection::open(server.address()));
        // A connection that is used stays.
        ask(&mut kept);
    }
    // The oldest went first.
    for gone in &mut silent[..21] {
        assert_eq!(gone.read_to_end(), "");
    }
    for stays in &mut silent[21..] {
        ask(stays);
    }
}

#[test]
fn a_client_that_ends_its_half_or_sends_the_rest_late_is_answered() {
    let server = TestServer::start();
    let mut late = Connection::open(server.address());
    late.write("PO");
    for _ in 0..50 {
        for target in ["/v1/ping", "/", "/healthz", "/v1/files/https/example.org/443/none"] {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.set_read_timeout(Some(PROMPTLY)).unwrap();
            write!(stream, "GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut answer = String::new();
            // The server ends its half as well, and does so at once.
            stream.read_to_string(&mut answer).expect(target);
            assert!(answer.starts_with("HTTP/1.1 "), "{target}: {answer:?}");
        }
    }
    late.write("ST /v1/assets HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
    late.read_reply().error(401);
}
