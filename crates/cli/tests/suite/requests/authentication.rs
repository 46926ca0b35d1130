//! Spec §5, D31: who signed, what was signed, and never twice.

use crate::support::people::{new_nonce, now, seconds_ago};
use crate::support::{Git, Request, SignersFile, TestServer, World, alice, mallory};

fn pending() -> Request {
    Request::get("/v1/pending_signatures")
}

#[test]
fn a_nonce_is_used_up_for_every_spelling_of_it_and_not_by_a_forged_request() {
    let early = now();
    let server = TestServer::start();
    // A fresh repository accepts requests from just before its start.
    server.send(&alice().sign_at(pending(), early, &new_nonce())).ok();

    let nonce = new_nonce();
    let real = alice().sign_with_nonce(pending(), &nonce);
    let foreign = mallory().sign(pending());
    server.send(&real.clone().replace_header("X-svc-sig", foreign.header("X-svc-sig"))).error(401);
    server.send(&real.clone().replace_header("X-svc-pk", &mallory().key())).error(401);
    server.send(&real.clone().with_body("{}")).error(401);
    server.send(&real).ok();
    for spelling in [nonce.clone(), nonce.to_uppercase(), nonce.replace('-', ""), format!("{{{nonce}}}")] {
        // As a thief replays it, and as a careless client would sign it anew.
        server.send(&real.clone().replace_header("X-svc-nonce", &spelling)).error(401);
        server.send(&alice().sign_with_nonce(pending(), &spelling)).error(401);
    }
}

#[test]
fn a_repository_restored_from_a_clone_refuses_requests_from_before_its_start() {
    let alice = alice();
    let mut world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
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
