//! What all handlers share. It knows no handler, no page and no route.

use std::{
    ops::Deref,
    sync::{Arc, LazyLock},
    time::Instant,
};

use countersign_core::values::time::Timestamp;
use countersign_store::{clock::Clock, nonces::Nonces};
use tokio::sync::watch;

use crate::{
    config::ServiceLimits,
    events::Audience,
    health::NotReady,
    held_store::HeldStore,
    limits::{Limiter, places::SharedPlaces},
    listen::connections::Connections,
    metrics::Requests,
    openapi::Reference,
    rendering::Renderings,
    sending::Sending,
    upstream::Upstream,
    webhooks::stats::WebhookStats,
};

/// What every handler has. Cheap to clone.
#[derive(Debug, Clone)]
pub struct App(Arc<Parts>);

/// `start` puts these together.
#[derive(Debug)]
pub struct Parts {
    pub nonces: Nonces,
    pub store: Arc<HeldStore>,
    pub upstream: Upstream,
    /// For bodies that are not small. Their senders are not proved yet.
    pub large_bodies: Arc<SharedPlaces>,
    pub renderings: Renderings,
    pub sending: Sending,
    /// Whether connections are encrypted by ourselves.
    pub is_tls: bool,
    pub limits: ServiceLimits,
    pub limiter: Option<Arc<Limiter>>,
    pub connections: Arc<Connections>,
    pub requests: Arc<Requests>,
    pub events: Arc<Audience>,
    pub webhooks: Vec<Arc<WebhookStats>>,
    /// Made when it is first asked for: it is the same as long as the program runs.
    pub reference: &'static LazyLock<Reference>,
    pub is_stopping: watch::Sender<bool>,
    pub clock: Clock,
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl App {
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Tells when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.is_stopping.subscribe()
    }

    /// Whether changes can be accepted, as far as is known.
    pub fn readiness(&self) -> Result<(), NotReady> {
        let now = Instant::now();
        if *self.is_stopping.borrow() {
            Err(NotReady::Stopping)
        } else if self.store.stats().is_failing(now) {
            Err(NotReady::Store)
        } else if self.nonces.stats().is_failing(now) {
            Err(NotReady::Nonces)
        } else {
            Ok(())
        }
    }
}
