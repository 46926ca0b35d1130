//! Requests as bytes. They are signed before the clock starts, since signing is the callers' work on their own
//! machines.

use countersign_core::{rules::auth::sign_request, values::key::SecretKey};
use countersign_store::machine::clock::Clock;
use uuid::Uuid;

use crate::{client::Request, documents::Collecting};

pub(crate) fn get(path: &str) -> Request {
    format!("GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n").into_bytes()
}

pub(crate) fn signed_get(key: &SecretKey, path: &str) -> Request {
    let headers = auth_headers(key, "");
    format!("GET {path} HTTP/1.1\r\nhost: bench\r\n{headers}\r\n").into_bytes()
}

pub(crate) fn submit(key: &SecretKey, index: &Collecting) -> Request {
    let (path, signature) = (&index.path, key.sign(&index.digest).to_base64());
    let public_key = key.public_key().to_base64();
    let body = format!(
        r#"{{"file_path":"{path}","public_key":"{public_key}","signatures":{{"{path}":"{signature}"}}}}"#
    );
    let (headers, length) = (auth_headers(key, &body), body.len());
    let head =
        format!("POST /v1/signatures HTTP/1.1\r\nhost: bench\r\ncontent-length: {length}\r\n{headers}\r\n");
    (head + &body).into_bytes()
}

fn auth_headers(key: &SecretKey, body: &str) -> String {
    let (now, nonce) = (Clock::system().now(), Uuid::new_v4().to_string());
    let signature = sign_request(key, now, &nonce, body.as_bytes()).to_header();
    let (timestamp, public_key) = (now.to_header(), key.public_key());
    format!(
        "x-svc-timestamp: {timestamp}\r\nx-svc-nonce: {nonce}\r\nx-svc-sig: {signature}\r\nx-svc-pk: {public_key}\r\n"
    )
}
