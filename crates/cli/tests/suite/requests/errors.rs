//! D5, D29, D30: whatever goes wrong, the answer is `{"error": …}`.

use serde_json::json;

use crate::support::{Answer, Connection, Person, Request, SignersFile, TestServer, World};

const BODY_LIMIT: usize = 1024 * 1024;

const POST_ROUTES: [&str; 5] =
    ["/v1/register_repo", "/v1/update_signers", "/v1/signatures", "/v1/revoke", "/v1/assets"];

#[test]
fn an_unknown_route_is_404() {
    let server = TestServer::start();
    for target in
        ["/v1", "/v1/", "/v2/ping", "/v1/ping/x", "/v1/nothing", "/V1/ping", "/p", "/badge", "/v1/files"]
    {
        server.get(target).error(404);
    }
    server.send(&Request::new("POST", "/v1/nothing").with_body("{}")).error(404);
    server.send(&Request::new("DELETE", "/nothing")).error(404);
}

/// A cache that keeps the 404 of a revocation hides the revocation.
#[test]
fn caches_keep_only_what_they_ask_for_again() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    for (target, status, control) in [
        (format!("/v1/files/{index}"), 200, "no-cache"),
        (format!("/v1/files/{index}.revocation.json"), 404, "no-store"),
        (format!("/v1/get_signers_chain/{index}"), 200, "no-store"),
        ("/v1/pending_signatures".to_owned(), 401, "no-store"),
        ("/v1/files/a/../b".to_owned(), 400, "no-store"),
        ("/p/nowhere".to_owned(), 404, "no-store"),
        ("/nowhere".to_owned(), 404, "no-store"),
        ("/healthz".to_owned(), 200, "no-store"),
    ] {
        let reply = world.server.get(&target);
        assert_eq!((reply.status, reply.header("cache-control")), (status, Some(control)), "{target}");
    }
}

#[test]
fn a_wrong_method_is_405() {
    let server = TestServer::start();
    for route in POST_ROUTES {
        for method in ["GET", "HEAD", "PUT", "DELETE", "PATCH"] {
            let reply = server.send(&Request::new(method, route));
            assert_eq!(reply.status, 405, "{method} {route}: {}", reply.text());
            if method != "HEAD" {
                reply.error(405);
            }
        }
    }
    let gets = ["files/x", "get_signers/x", "get_signers_chain/x", "signatures/x", "files-to-sign/x", "ping"];
    for route in gets {
        for method in ["POST", "PUT", "DELETE"] {
            server.send(&Request::new(method, format!("/v1/{route}"))).error(405);
        }
    }
    server.send(&Request::new("POST", "/v1/pending_signatures")).error(405);
}

#[test]
fn a_body_of_one_mib_is_read_and_a_larger_one_is_413() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    for route in POST_ROUTES {
        let request = Request::new("POST", route).with_body(vec![b' '; BODY_LIMIT + 1]);
        server.send(&alice.sign(request.clone())).error(413);
        let unannounced = Request { chunked: true, ..request };
        server.send(&alice.sign(unannounced)).error(413);
        // The limit itself is allowed: it is read, and found to be no JSON.
        let request = Request::new("POST", route).with_body(vec![b' '; BODY_LIMIT]);
        server.send(&alice.sign(request)).error(400);
    }
}

#[test]
fn what_is_not_json_is_400() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    for route in POST_ROUTES {
        for body in ["", "x", "{", "{}{}", "{\"a\":}", "\u{feff}{}", "{'a': 1}", &"[".repeat(100_000)] {
            server.send(&alice.sign(Request::new("POST", route).with_body(body))).error(400);
        }
        let not_utf8 = server.send(&alice.sign(Request::new("POST", route).with_body([b'"', 0xff, b'"'])));
        assert!(matches!(not_utf8.status, 400 | 401), "{}", not_utf8.text());
        not_utf8.error(not_utf8.status);
    }
}

#[test]
fn a_body_is_read_whatever_its_content_type() {
    let alice = Person::named("alice");
    let world = World::start();
    for (project, kind) in
        [("a", "text/plain"), ("b", "application/x-www-form-urlencoded"), ("c", "image/png")]
    {
        let url = world.publish(project, &SignersFile::of(1, &[&alice]));
        let body = json!({ "signers_file_url": url, "public_key": alice.body_key() });
        let request = Request::post("/v1/register_repo", &body).with_header("content-type", kind);
        world.send_as(&alice, request).ok();
    }
}

#[test]
fn every_answer_has_a_request_id_of_its_own() {
    let server = TestServer::start();
    let mut seen = std::collections::BTreeSet::new();
    for target in ["/v1/ping", "/nothing", "/v1/files/..", "/v1/revoke", "/v1/pending_signatures"] {
        let reply = server.get(target);
        let id = reply.header("x-request-id").unwrap_or_else(|| panic!("no x-request-id for {target}"));
        assert!(!id.is_empty() && seen.insert(id.to_owned()), "{target}: {id}");
    }
}

#[test]
fn a_failure_is_logged_under_the_request_id_of_its_answer() {
    let alice = Person::named("alice");
    for format in ["text", "json"] {
        let mut world = World::start_with(|launch, _| launch.arg("--dev").args(["--log-format", format]));
        world.files.set("/acme/app/svc.signers.json", Answer::Status(500));
        let reply = world.register_url(&alice, &world.files.url("/acme/app/svc.signers.json"));
        reply.error(500);
        let id = reply.header("x-request-id").unwrap();
        let log = world.server.stop_and_read_log();
        assert!(log.contains(id), "{id} is missing in: {log}");
        if format == "json" {
            for line in log.lines() {
                assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "not JSON: {line}");
            }
        }
    }
}

#[test]
fn callers_who_do_not_finish_their_request_hold_no_one_up() {
    let server = TestServer::start();
    let mut unfinished: Vec<_> = (0..64).map(|_| Connection::open(server.address())).collect();
    let halves = [
        "",
        "PO",
        "POST /v1/assets HTTP/1.1\r\n",
        "POST /v1/assets HTTP/1.1\r\ncontent-length: 10\r\n",
        "POST /v1/assets HTTP/1.1\r\nhost: localhost\r\nX-svc-nonce: 7d4448",
        "GET /v1/ping HTTP/1.1\r\nhost: localhost\r\n\r\nGET /v1/pi",
    ];
    for (connection, half) in unfinished.iter_mut().zip(halves.into_iter().cycle()) {
        connection.write(half);
    }
    server.send(&Person::named("alice").sign(Request::get("/v1/pending_signatures"))).ok();
    // The slow callers are served once the rest arrives.
    for (connection, half) in unfinished.iter_mut().zip(halves.into_iter().cycle()) {
        if half == "PO" {
            connection.write("ST /v1/assets HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
            connection.read_reply().error(401);
        }
    }
}
