//! Spec §5: each header in every wrong way. All of them are 401, and none says more than it must.

use crate::support::{Person, Request, TestServer, people::new_nonce, people::seconds_ago};

const HEADERS: [&str; 4] = ["X-svc-timestamp", "X-svc-nonce", "X-svc-sig", "X-svc-pk"];

fn pending() -> Request {
    Request::get("/v1/pending_signatures")
}

/// Checks that a signed request is refused once this header has another value.
#[track_caller]
fn assert_refused_with(server: &TestServer, header: &str, value: &str) {
    let request = Person::named("alice").sign(pending()).replace_header(header, value);
    let reply = server.send(&request);
    assert_eq!(reply.status, 401, "{header}: {value:?} was answered {}", reply.text());
    reply.error(401);
}

#[test]
fn a_signed_request_is_accepted() {
    let server = TestServer::start();
    server.send(&Person::named("alice").sign(pending())).ok();
}

#[test]
fn each_of_the_four_headers_is_needed() {
    let server = TestServer::start();
    for header in HEADERS {
        let request = Person::named("alice").sign(pending()).without_header(header);
        server.send(&request).error(401);
    }
    server.send(&pending()).error(401);
}

#[test]
fn a_header_given_twice_is_refused_even_with_the_same_value() {
    let server = TestServer::start();
    for header in HEADERS {
        let request = Person::named("alice").sign(pending());
        let twice = request.clone().with_header(header, request.header(header));
        server.send(&twice).error(401);
        let first_wrong =
            request.clone().replace_header(header, "x").with_header(header, request.header(header));
        server.send(&first_wrong).error(401);
    }
}

#[test]
fn an_empty_or_garbled_header_is_refused() {
    let server = TestServer::start();
    for header in HEADERS {
        for value in ["", "x", "null", "0", "\u{e9}"] {
            assert_refused_with(&server, header, value);
        }
    }
}

#[test]
fn a_request_may_be_nearly_six_minutes_old_and_no_older() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    for (age, status) in [(5 * 60, 200), (5 * 60 + 45, 200), (6 * 60, 401), (7 * 60, 401), (24 * 3600, 401)] {
        let reply = server.send(&alice.sign_at(pending(), seconds_ago(age), &new_nonce()));
        assert_eq!(reply.status, status, "{age} seconds old: {}", reply.text());
    }
}

#[test]
fn a_request_may_be_ten_seconds_early_and_no_earlier() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    for (lead, status) in [(5, 200), (9, 200), (20, 401), (3600, 401)] {
        let reply = server.send(&alice.sign_at(pending(), seconds_ago(-lead), &new_nonce()));
        assert_eq!(reply.status, status, "{lead} seconds early: {}", reply.text());
    }
}

#[test]
fn header_names_are_read_in_any_letter_case() {
    let server = TestServer::start();
    let mut request = Person::named("alice").sign(pending());
    for (name, _) in &mut request.headers {
        *name = name.to_ascii_uppercase();
    }
    server.send(&request).ok();
}
