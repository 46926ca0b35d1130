//! GET /v1/ping: D22.

use serde_json::{Value, json};

use crate::support::{Person, Request, TestServer, people::new_nonce, people::seconds_ago};

fn ping() -> Request {
    Request::get("/v1/ping")
}

#[test]
fn without_headers_it_is_unauthenticated() {
    let server = TestServer::start();
    let expected = json!({ "message": "pong", "auth": { "status": "unauthenticated" } });
    assert_eq!(server.send(&ping()).ok(), expected);
}

#[test]
fn with_a_valid_signature_it_names_the_key_and_uses_up_the_nonce() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    let request = alice.sign(ping());
    let expected = json!({ "message": "pong", "auth": { "status": "success", "public_key": alice.key() } });
    assert_eq!(server.send(&request).ok(), expected);

    let auth = server.send(&request).ok()["auth"].clone();
    assert_eq!(auth["status"], json!("failed"));
    let replayed = Request { target: b"/v1/pending_signatures".to_vec(), ..request };
    server.send(&replayed).error(401);
}

#[test]
fn a_failure_is_still_200_and_says_why() {
    let server = TestServer::start();
    let alice = Person::named("alice");
    let failed = |request: &Request| {
        let answer = server.send(request).ok();
        assert_eq!(answer["message"], json!("pong"));
        let auth = answer["auth"].clone();
        assert_eq!(auth["status"], json!("failed"), "{auth}");
        assert!(auth["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{auth}");
        auth["public_key"].clone()
    };
    let old = alice.sign_at(ping(), seconds_ago(600), &new_nonce());
    assert_eq!(failed(&old), json!(alice.key()));
    let forged = alice.sign(ping()).replace_header("X-svc-sig", alice.sign(ping()).header("X-svc-sig"));
    assert_eq!(failed(&forged), json!(alice.key()));
    assert_eq!(failed(&alice.sign(ping()).without_header("X-svc-pk")), Value::Null);
    assert_eq!(failed(&alice.sign(ping()).replace_header("X-svc-pk", "svc-pub:x")), Value::Null);
    assert_eq!(failed(&alice.sign(ping()).without_header("X-svc-nonce")), json!(alice.key()));
}
