//! The role of this server: on its own, one of several nodes that share a database, or a mirror.

use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::{fs, io, path::Path, time::Duration, time::Instant};

use countersign_api::error_code::ErrorCode;
use countersign_cluster::node::{NodeState, Reachability, WrongNodeClock};
use countersign_cluster::{
    database::Database, news::NewsReader, nonces::NONCE_LIMIT, nonces::SharedNonces, order::SharedOrder,
    schema, schema::SchemaError,
};
use countersign_core::{rules::auth, values::time::Timestamp};
use countersign_store::nonces::{NonceError, NonceStats, Nonces};
use countersign_store::{StoreRole, machine::clock::Clock, machine::clock::WriteFailure};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::{runtime::Handle, sync::watch, time::sleep};

use crate::follow::background::{BoxedError, HeldStore};
use crate::follow::{mirror::MirrorState, mirror::state::NotTheOrigin};
use crate::{http::error::ApiError, http::error::NotReady, operate::config::NodeSettings};

/// The pause between two tries to make the tables in a database that cannot be reached.
const PREPARE_PAUSE: Duration = Duration::from_secs(1);
/// A database that cannot be reached for longer is gone, and not just changing its primary.
const PASSING: Duration = Duration::from_secs(1);
/// The pause after a failed attempt to catch up, if nothing else wakes this node.
const RETRY: Duration = Duration::from_millis(500);

/// What makes a server a node.
#[derive(Debug)]
pub struct ClusterNode {
    pub state: Arc<NodeState>,
    nonces: SharedNonces,
    /// Whether this node has compared itself with the database.
    has_caught_up: Arc<AtomicBool>,
    max_lag: Duration,
    pub(crate) database: Database,
    /// Tells other nodes of this one, and reads what they tell.
    _news: Option<NewsReader>,
}

impl ClusterNode {
    /// Looks at the database. One that cannot be reached does not keep the node from serving what it has.
    pub async fn start(settings: NodeSettings, name_file: &Path, clock: &Clock) -> Result<Self, BoxedError> {
        let NodeSettings { database, name, max_lag } = settings;
        let address = database.to_string();
        let database = Database::new(database)?;
        let name = match name {
            Some(name) => name,
            None => keep_name(name_file).map_err(|error| {
                format!("the name of this node cannot be kept in {}: {error}", name_file.display())
            })?,
        };
        match schema::prepare(&database).await {
            Ok(prepared) => {
                prepared.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
                tracing::info!(node = name, database = address, "this server is a node");
            }
            Err(SchemaError::Database(error)) => {
                tracing::error!(
                    %error, database = address,
                    "the database cannot be reached: this node serves what it has, and tries again"
                );
                tokio::spawn(prepare_later(database.clone()));
            }
            Err(error) => return Err(error.into()),
        }
        let (runtime, state, clock) = (Handle::current(), NodeState::new(&name), clock.clone());
        let nonces = SharedNonces::start(&runtime, database.clone(), Arc::clone(&state), clock, NONCE_LIMIT);
        Ok(Self { state, nonces, has_caught_up: Arc::default(), max_lag, database, _news: None })
    }

    /// Shows this node to the others, which count it from now on when they vote on a batch (D195). So its store must be
    /// open.
    pub fn join(&mut self, clock: &Clock) {
        let (database, state, stats) = (&self.database, &self.state, self.nonces.stats());
        let version = env!("CARGO_PKG_VERSION");
        self._news = Some(NewsReader::start(
            &Handle::current(),
            database.clone(),
            Arc::clone(state),
            version,
            Arc::clone(stats),
            clock.clone(),
        ));
    }

    pub fn store_role(&self, clock: &Clock) -> io::Result<StoreRole> {
        let order = SharedOrder::new(self.database.clone(), Arc::clone(&self.state), clock.clone())?;
        Ok(StoreRole::Node(Box::new(order)))
    }

    /// Uses up the nonce of a request that was signed at this time, and waits until this node has every change that was
    /// confirmed before, by whichever node.
    pub async fn accept(&self, nonce: [u8; 16], signed: Timestamp) -> Result<(), ApiError> {
        if !self.has_caught_up() {
            return Err(ApiError::no_database(io::Error::other("this node has not caught up yet")));
        }
        let stored = self.nonces.remember(nonce, auth::nonce_expiry(signed), signed).await;
        // The database told its time with the nonce.
        self.check_clock()?;
        stored.map_err(|error| match error {
            NonceError::Unavailable(_) => ApiError::no_database(error),
            NonceError::Used | NonceError::Forgotten | NonceError::Busy => error.into(),
        })
    }

    pub fn nonces(&self) -> &NonceStats {
        self.nonces.stats()
    }

    /// Checks that the clock of this node agrees with the database's (D198), as far as is known. If not, requests are
    /// judged by a wrong time.
    pub fn check_clock(&self) -> Result<(), WrongNodeClock> {
        self.state.check_clock()
    }

    pub fn readiness(&self, now: Instant) -> Result<(), NotReady> {
        match self.state.reachability() {
            Reachability::NotSince { .. } => return Err(NotReady::Database),
            Reachability::Unasked | Reachability::Since(_) => {}
        }
        self.check_clock()?;
        if !self.has_caught_up() || self.state.lag_time(now) > self.max_lag {
            return Err(NotReady::Lagging);
        }
        Ok(())
    }

    /// Whether this node has all that the others have, and has looked at the clock and at what they pass over.
    fn has_caught_up(&self) -> bool {
        self.has_caught_up.load(Ordering::Relaxed) && self.state.clock().is_some()
    }

    /// Waits until the database cannot be reached, and then ends all waits for it. A server that stops must not wait
    /// for a database that is gone (D247).
    pub async fn give_up_database(&self) {
        let is_gone = |reachability| match reachability {
            Reachability::NotSince { since, .. } => since.elapsed() >= PASSING,
            Reachability::Unasked | Reachability::Since(_) => false,
        };
        while !is_gone(self.state.reachability()) {
            sleep(PASSING / 10).await;
        }
        tracing::warn!("the database cannot be reached: this node stops without it");
        self.database.give_up();
    }

    /// Repeats what other nodes do, until the server stops.
    pub fn follow(
        &self,
        store: Arc<HeldStore>,
        mut stop: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (state, has_caught_up) = (Arc::clone(&self.state), Arc::clone(&self.has_caught_up));
        async move {
            loop {
                let caught_up = store.catch_up().await;
                state.set_halted(store.halted());
                has_caught_up.fetch_or(caught_up.is_ok(), Ordering::Relaxed);
                tokio::select! {
                    () = state.await_news() => {}
                    () = sleep(RETRY), if caught_up.is_err() => {}
                    _ = stop.wait_for(|is_stopping| *is_stopping) => return,
                }
            }
        }
    }
}

async fn prepare_later(database: Database) {
    loop {
        sleep(PREPARE_PAUSE).await;
        match schema::prepare(&database).await {
            Ok(prepared) => {
                prepared.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
                tracing::info!("the database can be reached");
                return;
            }
            Err(SchemaError::Database(error)) => {
                tracing::debug!(%error, "the database still cannot be reached")
            }
            Err(error) => {
                tracing::error!(%error, "the database cannot be used");
                return;
            }
        }
    }
}

/// The name of this machine, and something that tells several nodes on it apart.
fn keep_name(file: &Path) -> io::Result<String> {
    match fs::read_to_string(file) {
        Ok(name) if !name.trim().is_empty() => return Ok(name.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(_) | Err(_) => {}
    }
    let machine = fs::read_to_string("/etc/hostname").unwrap_or_default();
    let machine: String =
        machine.trim().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    let machine = if machine.is_empty() { "node" } else { &machine };
    let mut bytes = [0; 3];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random bytes"))?;
    let name = format!("{machine}-{:02x}{:02x}{:02x}", bytes[0], bytes[1], bytes[2]);
    fs::write(file, format!("{name}\n"))?;
    Ok(name)
}

// The role of this server: on its own, one of several nodes, or a mirror.

#[derive(Debug)]
pub enum ServerRole {
    /// A server on its own. It remembers the nonces that were used.
    Single { nonces: Nonces },
    /// One of several, which share nonces and the order of changes.
    Node(Box<ClusterNode>),
    /// A server that follows another one, and accepts nothing.
    Mirror(Arc<MirrorState>),
}

impl ServerRole {
    /// Refuses signed requests on a mirror, before anything else of them is looked at.
    pub fn check_accepts(&self) -> Result<(), NotTheOrigin> {
        self.mirror().map_or(Ok(()), |mirror| Err(mirror.refuse_signed()))
    }

    /// Checks that requests are judged by the right time, as far as a node can know. A server on its own has only its
    /// clock.
    pub fn check_clock(&self) -> Result<(), WrongNodeClock> {
        self.node().map_or(Ok(()), ClusterNode::check_clock)
    }

    pub fn mirror(&self) -> Option<&MirrorState> {
        if let Self::Mirror(mirror) = self { Some(mirror) } else { None }
    }

    /// Uses up the nonce of a request that was signed at this time. After `Ok` no other request has it, and the newest
    /// head has every change that was acknowledged before.
    pub async fn accept(&self, nonce: [u8; 16], signed: Timestamp) -> Result<(), ApiError> {
        match self {
            Self::Single { nonces } => {
                check_floor(nonces.floor(), signed)?;
                Ok(nonces.remember(nonce, auth::nonce_expiry(signed)).await?)
            }
            Self::Node(node) => node.accept(nonce, signed).await,
            Self::Mirror(mirror) => Err(mirror.refuse_signed().into()),
        }
    }

    pub fn nonces(&self) -> Option<&NonceStats> {
        match self {
            Self::Single { nonces } => Some(nonces.stats()),
            Self::Node(node) => Some(node.nonces()),
            Self::Mirror(_) => None,
        }
    }

    pub fn readiness(&self, now: Instant) -> Result<(), NotReady> {
        match self {
            Self::Single { nonces } => match nonces.stats().failing(now) {
                Some(WriteFailure::NoRoom) => Err(NotReady::DiskFull),
                Some(WriteFailure::Other) => Err(NotReady::Nonces),
                None => Ok(()),
            },
            Self::Node(node) => node.readiness(now),
            Self::Mirror(mirror) => mirror.check(now).map_err(NotReady::Mirror),
        }
    }

    pub fn node(&self) -> Option<&ClusterNode> {
        if let Self::Node(node) = self { Some(node) } else { None }
    }
}

/// The server does not know which nonces were used before a restore, so all from that time count as used (D31).
fn check_floor(floor: Option<Timestamp>, signed: Timestamp) -> Result<(), ApiError> {
    let Some(floor) = floor.filter(|floor| signed < *floor) else { return Ok(()) };
    let message = format!(
        "the timestamp is from before this server was restored, at {floor}: sign the request again; if that time is still \
         to come, the operator can help (docs/operations.md, The clock)"
    );
    Err(ApiError::new(ErrorCode::RequestBeforeRestore, message))
}
