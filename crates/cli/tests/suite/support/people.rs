//! People with keys from fixed seeds, who sign requests and files.

use std::{sync::atomic::AtomicU64, sync::atomic::Ordering, time::SystemTime};

use countersign_core::rules::auth::sign_request;
use countersign_core::values::{digest::Sha512, key::SecretKey, key::encode_base64, time::Timestamp};

use super::http::Request;

pub(crate) struct Person {
    secret: SecretKey,
}

impl Person {
    /// A person whose key follows from the name.
    pub(crate) fn named(name: &str) -> Self {
        let seed = Sha512::of(name.as_bytes());
        Self { secret: SecretKey::from_seed(seed.as_bytes()[..32].try_into().expect("half of 64 bytes")) }
    }

    /// `svc-pub:` + unpadded base64: headers, files that the server writes.
    pub(crate) fn key(&self) -> String {
        self.secret.public_key().to_string()
    }

    /// Padded base64: request and response bodies.
    pub(crate) fn body_key(&self) -> String {
        self.secret.public_key().to_base64()
    }

    pub(crate) fn ssh_key(&self) -> String {
        let key = self.secret.public_key();
        let blob = [b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20", &key.as_bytes()[..]].concat();
        format!("ssh-ed25519 {} someone@example", encode_base64(&blob))
    }

    /// A signature over a file's bytes, as request bodies carry it (D3).
    pub(crate) fn sign_bytes(&self, bytes: &[u8]) -> String {
        self.secret.sign(&Sha512::of(bytes)).to_base64()
    }

    pub(crate) fn sign(&self, request: Request) -> Request {
        self.sign_at(request, now(), &new_nonce())
    }

    pub(crate) fn sign_with_nonce(&self, request: Request, nonce: &str) -> Request {
        self.sign_at(request, now(), nonce)
    }

    pub(crate) fn sign_at(&self, request: Request, timestamp: Timestamp, nonce: &str) -> Request {
        let signature = sign_request(&self.secret, timestamp, nonce, &request.body).to_header();
        self.add_headers(request, &timestamp.to_header(), nonce, &signature)
    }

    fn add_headers(&self, request: Request, timestamp: &str, nonce: &str, signature: &str) -> Request {
        request
            .with_header("X-svc-timestamp", timestamp)
            .with_header("X-svc-nonce", nonce)
            .with_header("X-svc-sig", signature)
            .with_header("X-svc-pk", &self.key())
    }
}

pub(crate) fn person(name: &str) -> Person {
    Person::named(name)
}

pub(crate) fn alice() -> Person {
    person("alice")
}

pub(crate) fn bob() -> Person {
    person("bob")
}

pub(crate) fn carol() -> Person {
    person("carol")
}

pub(crate) fn mallory() -> Person {
    person("mallory")
}

pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let nanos = i128::try_from(since_epoch.as_nanos()).expect("before the year 9999");
    Timestamp::from_unix_nanos(nanos).expect("before the year 9999")
}

pub(crate) fn seconds_ago(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(now().unix_seconds() - seconds).expect("near now")
}

/// A UUID of version 4 that no other request of this run has.
pub(crate) fn new_nonce() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let hex = Sha512::of(format!("nonce {count}").as_bytes()).to_string();
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}
