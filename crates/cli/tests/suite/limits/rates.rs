//! Rate limits: 429 with a JSON body and `Retry-After`, per address and per key.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    Connection, Person, Reply, Request, SignersFile, TestServer, World, machine_clock::MachineClock,
};

/// What a server with limits runs on. Its time stands still, so that no allowance comes back while a test asks.
struct Ground {
    clock: Option<MachineClock>,
}

impl Ground {
    fn pass(&self, seconds: u64) {
        match &self.clock {
            Some(clock) => clock.set(seconds.try_into().unwrap()),
            None => std::thread::sleep(Duration::from_secs(seconds)),
        }
    }
}

/// A server with these lines in `[rate_limits]`, and more flags.
fn limited(lines: &str, flags: &[&str]) -> (TestServer, Ground) {
    let clock = MachineClock::new();
    let server = TestServer::start_with(|launch| {
        let launch = launch.configured(&format!("[rate_limits]\n{lines}\n")).args(flags.iter().copied());
        match &clock {
            Some(clock) => clock.give_still_to(launch),
            None => launch,
        }
    });
    (server, Ground { clock })
}

fn ping() -> Request {
    Request::get("/v1/ping")
}

fn pending() -> Request {
    Request::get("/v1/pending_signatures")
}

/// Checks the form of a 429, and returns the seconds until the next try.
#[track_caller]
fn assert_limited(reply: &Reply, words: &str) -> u64 {
    reply.refused(429, words);
    reply.refused(429, "try again in ");
    let seconds = reply.header("retry-after").expect("a Retry-After header");
    let seconds: u64 = seconds.parse().expect("whole seconds");
    assert!(seconds >= 1);
    assert!(reply.header("x-request-id").is_some());
    seconds
}

#[test]
fn an_address_that_asks_too_often_is_told_when_to_come_back() {
    let (server, ground) = limited("address_per_second = 1\naddress_burst = 5", &[]);
    // What strangers say about their address does not count.
    for n in 0..3 {
        server.send(&ping().with_header("X-Forwarded-For", &format!("198.51.100.{n}"))).ok();
    }
    // Only to look at the health is without limit.
    for _ in 0..2 {
        server.send(&Request::new("POST", "/healthz")).error(405);
    }
    let seconds = [
        ping(),
        ping().with_header("X-Forwarded-For", "198.51.100.9"),
        Request::get("/v1/files/a"),
        Request::get("/v1/get_signers/a"),
        Request::get("/x"),
        Request::new("POST", "/healthz"),
    ]
    .map(|request| assert_limited(&server.send(&request), "address"));
    assert!(seconds.iter().all(|seconds| *seconds <= 5), "{seconds:?}");
    for _ in 0..20 {
        server.get("/healthz").ok();
        server.get("/readyz").ok();
    }
    // Refused before its body arrives, which it does not.
    let request = Person::named("alice").sign(Request::new("POST", "/v1/assets").announcing(1000));
    assert_limited(&server.send(&request), "address");
    ground.pass(seconds[0]);
    server.send(&ping()).ok();
}

#[test]
fn a_key_that_asks_too_often_is_told_when_to_come_back() {
    let (server, ground) = limited("key_per_second = 1\nkey_burst = 2", &[]);
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let first = alice.sign(pending());
    server.send(&first).ok();
    for _ in 0..10 {
        // An attacker who saw the request repeats it, or puts her key over another one's signature.
        server.send(&first).error(401);
        let forged = Person::named("mallory").sign(pending()).replace_header("X-svc-pk", &alice.key());
        server.send(&forged).error(401);
    }
    server.send(&alice.sign(pending())).ok();
    let body = json!({ "signers_file_url": "https://example.org/x/svc.signers.json", "public_key": alice.body_key() });
    assert_limited(&server.send(&alice.sign(Request::post("/v1/register_repo", &body))), "key");
    let seconds = assert_limited(&server.send(&alice.sign(pending())), "key");
    server.send(&bob.sign(pending())).ok();
    ground.pass(seconds);
    server.send(&alice.sign(pending())).ok();
}

#[test]
fn limits_are_on_unless_switched_off() {
    // 5,000 at once; a second later 1,000 more, but here no second passes.
    let (default, _ground) = limited("", &[]);
    let mut connection = Connection::open(default.address());
    let mut ask = || {
        connection.write("GET /v1/ping HTTP/1.1\r\nhost: localhost\r\n\r\n");
        connection.read_reply().status
    };
    assert!((0..100_000).any(|_| ask() == 429));
    let strict = "address_per_second = 1\naddress_burst = 1\nkey_per_second = 1\nkey_burst = 1";
    let (off, _ground) = limited(&format!("enabled = false\n{strict}"), &[]);
    let (dev, _ground) = limited(strict, &["--dev"]);
    for _ in 0..10 {
        off.send(&Person::named("alice").sign(pending())).ok();
        dev.send(&Person::named("alice").sign(pending())).ok();
    }
}

#[test]
fn requests_that_fail_to_authenticate_count_for_their_address() {
    let (server, _ground) = limited("authenticated_per_second = 1\nauthenticated_burst = 3", &[]);
    let alice = Person::named("alice");
    let first = alice.sign(pending());
    server.send(&first).ok();
    server.send(&first).error(401);
    server.send(&pending()).error(401);
    assert_limited(&server.send(&alice.sign(pending())), "address");
    assert_limited(&server.send(&alice.sign(ping())), "address");
    server.send(&ping()).ok();
    server.send(&Request::get("/v1/files/a")).error(404);
}

#[test]
fn requests_that_make_the_server_fetch_have_a_limit_of_their_own() {
    let world = World::start_with(|launch, _| {
        let launch = launch.configured("[rate_limits]\nfetches_per_minute = 1\nfetches_burst = 2\n");
        launch.args(["--file-server", "*", "--allow-fetch", "127.0.0.1:*"])
    });
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let file = SignersFile::of(1, &[&alice]);
    world.register(&alice, "acme/one", &file).ok();
    world.register(&alice, "acme/two", &file).ok();
    let asked = world.files.asked().len();
    let seconds = assert_limited(&world.register(&alice, "acme/three", &file), "key");
    assert!((30..=60).contains(&seconds), "{seconds}");
    assert_eq!(world.files.asked().len(), asked, "nothing was fetched");
    world.get_as(&alice, "/v1/pending_signatures").ok();
    world.register(&bob, "acme/three", &SignersFile::of(1, &[&bob])).ok();
}

#[test]
fn what_a_trusted_proxy_says_about_its_clients_counts() {
    let (server, _ground) =
        limited("address_per_second = 1\naddress_burst = 3", &["--trusted-proxy", "127.0.0.1,10.0.0.0/8"]);
    let from = |values: &[&str]| {
        let request =
            values.iter().fold(ping(), |request, value| request.with_header("X-Forwarded-For", value));
        server.send(&request)
    };
    for _ in 0..3 {
        from(&["198.51.100.1"]).ok();
    }
    // Whatever the client claimed itself comes before what the proxies added.
    assert_limited(&from(&["203.0.113.1, 198.51.100.1"]), "address");
    assert_limited(&from(&["203.0.113.2", "198.51.100.1, 10.1.1.1"]), "address");
    from(&["198.51.100.2"]).ok();
    // Nonsense is the proxy's own.
    for value in ["nonsense", "198.51.100.3, nonsense", ""] {
        from(&[value]).ok();
    }
    assert_limited(&from(&["more nonsense"]), "address");
    assert_limited(&server.send(&ping()), "address");
    from(&["198.51.100.3"]).ok();
}
