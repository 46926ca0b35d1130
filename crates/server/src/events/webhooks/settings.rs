//! One webhook, as the operator configured it.

use std::{fmt, sync::atomic::AtomicBool, sync::atomic::AtomicI64, sync::atomic::Ordering, time::Duration};

use countersign_api::event::EventFilter;
use countersign_core::values::digest::Sha256;
use ring::hmac;
use url::Url;

use crate::{follow::background::Retries, metrics::Counter, metrics::named};

const MAX_NAME_BYTES: usize = 64;

#[derive(Debug, Clone)]
pub struct Webhook {
    pub name: WebhookName,
    pub url: Url,
    pub secret: Secret,
    /// An event is sent if one of them lets it pass.
    pub filters: Vec<EventFilter>,
    pub retries: Retries,
    /// How long one try can take.
    pub timeout: Duration,
}

/// Names a file and labels a metric, so it is plain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebhookName(String);

impl WebhookName {
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let begins_well = text.bytes().next().is_some_and(is_plain);
        let goes_on_well = text.bytes().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'_'));
        if begins_well && goes_on_well && text.len() <= MAX_NAME_BYTES {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "a name is 1 to {MAX_NAME_BYTES} small letters, digits, `-` and `_`, and begins with a letter or digit"
        ))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WebhookName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// The secret that the server shares with a receiver. No text ever shows it.

/// A shorter secret could be guessed by trying.
pub const MIN_SECRET_BYTES: usize = 16;

#[derive(Clone)]
pub struct Secret(hmac::Key);

impl Secret {
    pub fn new(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() < MIN_SECRET_BYTES {
            let hint = "make one with `openssl rand -hex 32`";
            return Err(format!("the secret is shorter than {MIN_SECRET_BYTES} bytes: {hint}"));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }

    /// `sha256=` and HMAC-SHA-256 of these bytes, in hexadecimal digits.
    pub fn sign(&self, body: &[u8]) -> String {
        let digest = hmac::sign(&self.0, body).as_ref().try_into().expect("HMAC-SHA-256 has 32 bytes");
        format!("sha256={}", Sha256::from_bytes(digest))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

// The counters of a webhook.

named! {
    pub enum DeliveryOutcome {
        Delivered = "delivered",
        /// The event was not sent, because the URL or its address is not allowed.
        Refused = "refused",
        Failed = "failed",
    }
}

#[derive(Debug)]
pub struct WebhookStats {
    pub name: WebhookName,
    counts: [Counter; DeliveryOutcome::ALL.len()],
    is_failing: AtomicBool,
    /// The log position of the newest commit that needs nothing more; the least number while it is unknown.
    done: AtomicI64,
}

const UNKNOWN: i64 = i64::MIN;

impl WebhookStats {
    pub(crate) fn new(name: WebhookName) -> Self {
        Self {
            name,
            counts: Default::default(),
            is_failing: AtomicBool::new(false),
            done: AtomicI64::new(UNKNOWN),
        }
    }

    pub fn count(&self, outcome: DeliveryOutcome) -> u64 {
        self.counts[outcome as usize].get()
    }

    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// How many commits it has yet to deal with, in a log that ends at this position.
    pub fn behind(&self, end: i64) -> Option<i64> {
        let done = self.done.load(Ordering::Relaxed);
        (done != UNKNOWN).then(|| (end - 1 - done).max(0))
    }

    pub(crate) fn note(&self, outcome: DeliveryOutcome) {
        self.counts[outcome as usize].add(1);
        self.is_failing.store(outcome != DeliveryOutcome::Delivered, Ordering::Relaxed);
    }

    /// Another server delivers.
    pub(crate) fn forget_done(&self) {
        self.done.store(UNKNOWN, Ordering::Relaxed);
    }

    pub(crate) fn note_done(&self, position: i64) {
        self.done.store(position, Ordering::Relaxed);
    }
}
