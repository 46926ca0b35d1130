//! D29, D30: who is refused by the headers alone is not waited for, and what is kept for good is small.

use serde_json::json;

use crate::support::people::{new_nonce, seconds_ago};
use crate::support::{Reply, Request, SignersFile, TestServer, World, alice};

const BODY_LIMIT: usize = 1024 * 1024;
const KEPT_LIMIT: usize = 64 * 1024;

const POST_ROUTES: [&str; 5] =
    ["/v1/register_repo", "/v1/update_signers", "/v1/signatures", "/v1/revoke", "/v1/assets"];

/// A request that announces a body of this length and never sends it. A server that waits for it answers 408, late.
fn bodiless(route: &str, length: usize) -> Request {
    Request::new("POST", route).announcing(length)
}

#[test]
fn a_caller_without_authentication_is_refused_before_the_body_arrives() {
    let server = TestServer::start();
    for route in POST_ROUTES {
        server.send(&bodiless(route, 1000)).error(401);
    }
}

#[test]
fn a_stale_request_is_refused_before_its_body_arrives() {
    let server = TestServer::start();
    for route in POST_ROUTES {
        for age in [3600, -3600] {
            let request = alice().sign_at(bodiless(route, 1000), seconds_ago(age), &new_nonce());
            server.send(&request).error(401);
        }
    }
}

#[test]
fn a_request_with_a_malformed_header_is_refused_before_its_body_arrives() {
    let server = TestServer::start();
    for header in ["X-svc-timestamp", "X-svc-nonce", "X-svc-sig", "X-svc-pk"] {
        let signed = alice().sign(bodiless("/v1/assets", 1000));
        server.send(&signed.clone().without_header(header)).error(401);
        server.send(&signed.clone().replace_header(header, "nonsense")).error(401);
        server.send(&signed.clone().with_header(header, signed.header(header))).error(401);
    }
}

#[test]
fn a_body_that_is_announced_as_too_large_is_refused_before_it_arrives() {
    let server = TestServer::start();
    for route in POST_ROUTES {
        for length in [BODY_LIMIT + 1, 100 * BODY_LIMIT, usize::MAX / 2] {
            server.send(&bodiless(route, length)).error(413);
            server.send(&alice().sign(bodiless(route, length))).error(413);
        }
        server.send(&bodiless(route, BODY_LIMIT)).error(401);
    }
}

/// A body for `/v1/register_repo` and the like that has this length, by an unknown field.
fn padded(url: &str, length: usize) -> String {
    let body = |padding: usize| {
        json!({ "signers_file_url": url, "public_key": alice().body_key(), "x": " ".repeat(padding) })
            .to_string()
    };
    let body = body(length - body(0).len());
    assert_eq!(body.len(), length);
    body
}

fn post(world: &World, route: &str, body: String) -> Reply {
    world.send_as(&alice(), Request::new("POST", route).with_body(body))
}

#[test]
fn a_registration_that_would_be_kept_has_at_most_64_kib() {
    let world = World::start();
    let url = world.publish("acme/app", &SignersFile::of(1, &[&alice()]));
    for length in [KEPT_LIMIT + 1, BODY_LIMIT] {
        post(&world, "/v1/register_repo", padded(&url, length)).refused(413, &KEPT_LIMIT.to_string());
    }
    assert_eq!(world.git().commit_count(), 1, "the format marker is the only commit");
    assert_eq!(world.pending(&alice()), [""; 0]);
    post(&world, "/v1/register_repo", padded(&url, KEPT_LIMIT)).ok();
    assert!(world.exists(&world.pending_path("acme/app")));
}

#[test]
fn a_proposal_that_would_be_kept_has_at_most_64_kib() {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    let commits = world.git().commit_count();
    let next = SignersFile::dated(crate::support::days_ago(5)).artifact(1, &[&alice()]);
    let url = world.publish("acme/app", &next);
    post(&world, "/v1/update_signers", padded(&url, KEPT_LIMIT + 1)).error(413);
    assert_eq!(world.git().commit_count(), commits);
    assert!(!world.exists(&world.pending_path("acme/app")));
    post(&world, "/v1/update_signers", padded(&url, KEPT_LIMIT)).ok();
}

#[test]
fn a_revocation_is_small() {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    let index = world.add_signed_release("acme/app/v1", &[&alice()]);
    let commits = world.git().commit_count();
    let document = world.revocation_of(&index, "key leaked");
    let spaces = |length: usize| document.clone() + &" ".repeat(length - document.len());
    world.revoke_with(&alice(), &index, &spaces(16 * 1024 + 1)).refused(400, "16 KiB");
    world.revoke_with(&alice(), &index, &spaces(KEPT_LIMIT)).error(413);
    assert_eq!(world.git().commit_count(), commits);
    world.revoke_with(&alice(), &index, &spaces(16 * 1024)).ok();
}
