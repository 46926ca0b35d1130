//! What all handlers share. It knows no handler, page or route.

use std::{sync::Arc, sync::LazyLock, time::Instant};

use countersign_core::values::time::Timestamp;
use countersign_log::LogWitness;
use countersign_store::{catalogue::Catalogue, machine::clock::Clock};
use tokio::sync::watch;

use crate::events::{Audience, journal::Followers, webhooks::settings::WebhookStats};
use crate::follow::background::{HeldStore, LogSlot};
use crate::http::{blocks::Blocks, error::NotReady, sending::Sending, upstream::Upstream};
use crate::limits::{Limiter, connections::Connections, semaphore::FairSemaphore};
use crate::nodes::{asking::CosigningStats, node::ServerRole};
use crate::operate::{config::ServiceLimits, disk_space::DiskSpace};
use crate::{api::openapi::Reference, metrics::Requests};

/// What every handler has.
pub type App = Arc<AppParts>;

/// `start` puts these together.
#[derive(Debug)]
pub struct AppParts {
    pub role: ServerRole,
    pub store: Arc<HeldStore>,
    /// The log of all commits, if this server keeps one, or copies one.
    pub log: LogSlot,
    /// What its witnesses have cosigned.
    pub cosigning: Vec<Arc<CosigningStats>>,
    /// The witness, if this server is one itself.
    pub witness: Option<Arc<LogWitness>>,
    /// What is stored, by digest, project, name and key. Ask it through `catalogue::ask`.
    pub catalogue: Arc<Catalogue>,
    /// The turns of those who ask it.
    pub questions: Arc<FairSemaphore>,
    pub upstream: Upstream,
    /// Permits to receive large bodies, whose senders are not yet proved.
    pub large_bodies: Arc<FairSemaphore>,
    /// Turns to make pages.
    pub renderings: Arc<FairSemaphore>,
    pub sending: Sending,
    /// Whether the server itself encrypts connections.
    pub is_tls: bool,
    pub limits: ServiceLimits,
    pub limiter: Option<Arc<Limiter>>,
    pub connections: Arc<Connections>,
    pub requests: Arc<Requests>,
    pub events: Arc<Audience>,
    pub followers: Arc<Followers>,
    pub webhooks: Vec<Arc<WebhookStats>>,
    /// Made on first use. It stays the same for the life of the program.
    pub reference: &'static LazyLock<Reference>,
    pub blocks: Blocks,
    pub started: Instant,
    pub is_stopping: watch::Sender<bool>,
    pub clock: Clock,
}

impl AppParts {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Becomes true when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.is_stopping.subscribe()
    }

    /// Checks that the server can accept changes, as far as is known.
    pub fn readiness(&self) -> Result<(), NotReady> {
        let now = Instant::now();
        if *self.is_stopping.borrow() {
            Err(NotReady::Stopping)
        } else if let Some(reason) = self.store.halted() {
            Err(NotReady::Halted(reason))
        } else if self.store.check_clock(self.now()).is_err() {
            Err(NotReady::Clock)
        } else {
            let written = if self.store.stats().is_failing(now) { Err(NotReady::Store) } else { Ok(()) };
            written.and_then(|()| self.role.readiness(now)).map_err(|error| self.find_cause(error))?;
            // A mirror only copies a log.
            let log = self.log.get().filter(|_| self.role.mirror().is_none());
            log.and_then(|log| log.refusal()).map_or(Ok(()), |refusal| Err(refusal.into()))
        }
    }

    /// What could not be written mostly had no room.
    fn find_cause(&self, error: NotReady) -> NotReady {
        let is_unwritten = matches!(error, NotReady::Store | NotReady::Nonces);
        let space = is_unwritten.then(|| DiskSpace::of(self.store.data_dir.path()).ok()).flatten();
        if space.is_some_and(DiskSpace::is_full) { NotReady::DiskFull } else { error }
    }
}
