//! What all handlers share. It knows no handler, page or route.

use std::{io, sync::Arc, sync::LazyLock, time::Duration, time::Instant};

use countersign_core::values::time::Timestamp;
use countersign_log::LogWitness;
use countersign_store::catalogue::Catalogue;
use countersign_store::machine::clock::{Clock, WriteFailure};
use tokio::{sync::watch, time::timeout};

use crate::events::{Audience, journal::Followers, webhooks::settings::WebhookStats};
use crate::follow::background::{HeldStore, LogSlot, Rounds};
use crate::http::error::{ApiError, NotReady};
use crate::http::{blocks::Blocks, sending::Sending, upstream::Upstream};
use crate::limits::{Limiter, connections::Connections, semaphore::FairSemaphore};
use crate::nodes::{asking::CosigningStats, node::ServerRole};
use crate::operate::config::{SecurityContact, ServiceLimits};
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
    /// What is stored, by digest, project, name and key. Handlers ask it through `Question::ask`.
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
    /// Whom people tell about a weakness of this server.
    pub security_contact: Option<SecurityContact>,
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
            match self.store.stats().failing(now) {
                Some(WriteFailure::NoRoom) => return Err(NotReady::DiskFull),
                Some(WriteFailure::Other) => return Err(NotReady::Store),
                None => self.role.readiness(now)?,
            }
            // A mirror only copies a log.
            let log = self.log.get().filter(|_| self.role.mirror().is_none());
            log.and_then(|log| log.refusal()).map_or(Ok(()), |refusal| Err(refusal.into()))
        }
    }
}

// Questions to the catalogue of what is stored (D51), and the thread that keeps it near the newest commit.

/// The pause between two rounds. Questions bring the catalogue up to date themselves. The rounds leave them little to
/// do, and handle at once what many commits have touched.
const REST: Duration = Duration::from_secs(2);
/// How long a question waits after a start. A million files take 5 seconds of one processor (docs/performance.md).
const TIMEOUT: Duration = Duration::from_secs(10);

/// Keeps the catalogue near the newest commit. `Catalogue::stop` ends a round early.
pub(crate) fn follow(catalogue: &Arc<Catalogue>) -> io::Result<Rounds> {
    let catalogue = Arc::clone(catalogue);
    Rounds::start("catalogue", REST, move || catalogue.catch_up())
}

/// Soon after a start the catalogue is not there yet.
pub(crate) async fn wait_until_ready(app: &App) -> Result<(), ApiError> {
    let mut readiness = app.catalogue.readiness();
    let waited = timeout(TIMEOUT, readiness.wait_for(|is_ready| *is_ready)).await;
    let is_ready = waited.is_ok_and(|ready| ready.is_ok());
    if is_ready { Ok(()) } else { Err(ApiError::NO_CATALOGUE_YET.into()) }
}
