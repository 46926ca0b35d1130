//! Spec §5, D31: who signed, what was signed, and never twice.

use serde_json::json;

use crate::support::people::{new_nonce, now, seconds_ago};
use crate::support::{Git, Person, Request, TestServer, World};

fn pending() -> Request {
    Request::get("/v1/pending_signatures")
}

#[test]
fn a_replayed_request_is_refused() {
    let server = TestServer::start();
    let request = Person::named("alice").sign(pending());
    server.send(&request).ok();
    server.send(&request).error(401);
}

#[test]
fn a_nonce_is_used_up_for_every_spelling_of_it() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    let nonce = new_nonce();
    let request = alice.sign_with_nonce(pending(), &nonce);
    server.send(&request).ok();
    for spelling in [nonce.clone(), nonce.to_uppercase(), nonce.replace('-', ""), format!("{{{nonce}}}")] {
        // As a thief replays it, and as a careless client would sign it anew.
        server.send(&request.clone().replace_header("X-svc-nonce", &spelling)).error(401);
        server.send(&alice.sign_with_nonce(pending(), &spelling)).error(401);
    }
}

#[test]
fn a_forged_request_does_not_burn_the_nonce_of_the_real_one() {
    let server = TestServer::start();
    let real = Person::named("alice").sign(pending());
    let foreign = Person::named("mallory").sign(pending());
    server.send(&real.clone().replace_header("X-svc-sig", foreign.header("X-svc-sig"))).error(401);
    server.send(&real.clone().replace_header("X-svc-pk", &Person::named("mallory").key())).error(401);
    server.send(&real.clone().with_body("{}")).error(401);
    server.send(&real).ok();
}

#[test]
fn a_request_that_authentication_let_in_has_used_its_nonce_even_if_it_then_failed() {
    let server = TestServer::start();
    let request = Person::named("alice").sign(Request::post("/v1/assets", &json!({})));
    server.send(&request).error(400);
    server.send(&request).error(401);
}

#[test]
fn a_replay_is_refused_after_a_restart() {
    let mut server = TestServer::start();
    let request = Person::named("alice").sign(pending());
    server.send(&request).ok();
    server.restart();
    server.send(&request).error(401);
    server.send(&Person::named("alice").sign(pending())).ok();
}

#[test]
fn a_replay_is_refused_after_a_kill() {
    let mut server = TestServer::start();
    let request = Person::named("alice").sign(pending());
    server.send(&request).ok();
    server.crash_and_restart();
    server.send(&request).error(401);
    server.send(&Person::named("alice").sign(pending())).ok();
}

#[test]
fn a_repository_restored_from_a_clone_refuses_requests_from_before_its_start() {
    let alice = Person::named("alice");
    let mut world = World::with_project(&crate::support::SignersFile::of(1, &[&alice]), &[&alice]);
    let seen = alice.sign(pending());
    world.server.send(&seen).ok();
    world.server.stop();

    let mut restored = TestServer::prepare(|launch| launch.arg("--dev"));
    std::fs::create_dir_all(restored.data_dir()).unwrap();
    let (from, to) = (world.server.repository(), restored.repository());
    Git::at("/").run(&["clone", "--quiet", "--bare", from.to_str().unwrap(), to.to_str().unwrap()]);
    restored.start_again();

    restored.send(&seen).error(401);
    restored.send(&alice.sign_at(pending(), seconds_ago(60), &new_nonce())).error(401);
    restored.send(&alice.sign_at(pending(), seconds_ago(-2), &new_nonce())).ok();
    let active = restored.get(&format!("/v1/files/{}", world.active_path("acme/app")));
    assert_eq!(active.status, 200, "{}", active.text());
}

#[test]
fn a_fresh_repository_accepts_requests_from_just_before_its_start() {
    let early = now();
    let server = TestServer::start();
    server.send(&Person::named("alice").sign_at(pending(), early, &new_nonce())).ok();
}

#[test]
fn authentication_comes_before_any_look_at_body_or_path() {
    let server = TestServer::start();
    for route in ["/v1/register_repo", "/v1/update_signers", "/v1/signatures", "/v1/revoke", "/v1/assets"] {
        server.send(&Request::new("POST", route)).error(401);
        server.send(&Request::new("POST", route).with_body("{ not json")).error(401);
        server.send(&Request::new("POST", route).with_body([0xff, 0xfe])).error(401);
    }
    for route in ["/v1/signatures/", "/v1/files-to-sign/"] {
        for path in ["", "..", "a//b", ".git/config", "http/h/1/none", "%00"] {
            server.get(&format!("{route}{path}")).error(401);
        }
    }
    server.get("/v1/pending_signatures").error(401);
}

#[test]
fn public_routes_need_no_headers_and_do_not_mind_wrong_ones() {
    let server = TestServer::start();
    for route in ["/v1/files/http/h/1/x", "/v1/get_signers/http/h/1/x"] {
        server.get(route).error(404);
        server.send(&Request::get(route).with_header("X-svc-sig", "x")).error(404);
    }
    server.get("/v1/get_signers_chain/http/h/1/x").error(400);
}
