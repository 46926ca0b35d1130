//! Spec §5, D31: who signed, what was signed, and never twice.

use crate::support::people::{new_nonce, now};
use crate::support::{Request, TestServer, alice, mallory};

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
