//! D29, D30: bodies that are not announced, not text, never sent to their end, or kept for good.

use serde_json::json;

use crate::support::{Connection, Request, SignersFile, TestServer, World, alice, days_ago};

const BODY_LIMIT: usize = 1024 * 1024;
const KEPT_LIMIT: usize = 64 * 1024;

#[test]
fn a_body_that_is_not_announced_is_bounded_and_bytes_that_are_no_text_are_refused() {
    let server = TestServer::start();
    let post = |body: Vec<u8>| Request::new("POST", "/v1/assets").with_body(body);
    let unannounced = Request { chunked: true, ..post(vec![b' '; BODY_LIMIT + 1]) };
    server.send(&alice().sign(unannounced)).error(413);
    server.send(&post(vec![0xff, 0xfe])).error(401);
    server.send(&alice().sign(post(vec![b'"', 0xff, b'"']))).error(400);
}

/// What would be kept has at most 64 KiB, and a revocation 16.
#[test]
fn what_is_kept_for_good_is_small() {
    let world = World::start();
    let mut commits = 1;
    for (route, file) in [
        ("/v1/register_repo", SignersFile::of(1, &[&alice()])),
        ("/v1/update_signers", SignersFile::of(1, &[&alice()]).redated(days_ago(5))),
    ] {
        let url = world.publish("acme/app", &file);
        // A body of this length, by an unknown field.
        let post = |length: usize| {
            let body = |padding: usize| {
                json!({ "signers_file_url": url, "public_key": alice().body_key(), "x": " ".repeat(padding) })
                    .to_string()
            };
            let body = body(length - body(0).len());
            world.send_as(&alice(), Request::new("POST", route).with_body(body))
        };
        for length in [KEPT_LIMIT + 1, BODY_LIMIT] {
            post(length).refused(413, &KEPT_LIMIT.to_string());
        }
        assert_eq!(world.git().commit_count(), commits);
        post(KEPT_LIMIT).ok();
        world.sign_all(&world.pending_path("acme/app"), &[&alice()]);
        commits += 2;
    }
    let index = world.add_signed_release("acme/app/v1", &[&alice()]);
    let commits = world.git().commit_count();
    let document = world.revocation_of(&index, "key leaked");
    let spaces = |length: usize| document.clone() + &" ".repeat(length - document.len());
    world.revoke_with(&alice(), &index, &spaces(16 * 1024 + 1)).refused(400, "16 KiB");
    world.revoke_with(&alice(), &index, &spaces(KEPT_LIMIT)).error(413);
    assert_eq!(world.git().commit_count(), commits);
    world.revoke_with(&alice(), &index, &spaces(16 * 1024)).ok();
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
    server.send(&alice().sign(Request::get("/v1/pending_signatures"))).ok();
    // The slow callers are served once the rest arrives.
    for (connection, half) in unfinished.iter_mut().zip(halves.into_iter().cycle()) {
        if half == "PO" {
            connection.write("ST /v1/assets HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
            connection.read_reply().error(401);
        }
    }
}
