//! What the data directory holds, opened for the part that this server plays, and what handlers share.

use std::{sync::Arc, sync::LazyLock, sync::OnceLock, time::Duration, time::Instant};

use countersign_cluster::{checkpoints::SharedCheckpoints, database::Database};
use countersign_core::values::bounds::NOTE_BYTES;
use countersign_forge::{fetch::Fetcher, forges::speaks_for, guard::SystemResolver};
use countersign_log::{CheckpointFiles, CheckpointKeeper, LogOptions, TransparencyLog};
use countersign_store::machine::{clock::Clock, data_dir::DataDir, disk};
use countersign_store::store::{OpenSettings, open_repository};
use countersign_store::{Store, StoreRole};
use tokio::sync::watch;

use crate::api::{openapi::Reference, state::App, state::AppParts};
use crate::events::{Audience, webhooks::Webhooks};
use crate::follow::background::{BoxedError, HeldStore};
use crate::follow::{mirror, witness};
use crate::http::upstream::{FetchTurns, Upstream, releases::ReleaseLimits, releases::Releases};
use crate::http::{blocks::Blocks, body::large_bodies, sending::Sending, sending::few_turns};
use crate::limits::{Limiter, connections::Connections};
use crate::nodes::asking::{AskedWitness, CosigningStats};
use crate::nodes::node::{ClusterNode, ServerRole};
use crate::operate::config::{LogSettings, Settings};
use crate::serve::table;

/// How many visitors can wait for a page or an answer of the catalogue, and how long. If many come from one address,
/// others go first.
const MAX_VISITORS: usize = 256;
const VISITOR_WAIT: Duration = Duration::from_secs(5);
/// Enough for any release that signers would wait for.
const RELEASE_TIME: Duration = Duration::from_secs(6 * 60 * 60);
static REFERENCE: LazyLock<Reference> = LazyLock::new(|| Reference::of(table::all().rows));

pub(crate) struct Opened {
    pub(crate) app: App,
    pub(crate) webhooks: Webhooks,
    /// The witnesses of the log.
    pub(crate) asked: Option<Vec<AskedWitness>>,
}

pub(crate) async fn open(settings: &Settings, clock: &Clock) -> Result<Opened, BoxedError> {
    let data_dir = DataDir::lock(&settings.data_dir)?;
    let node = match settings.node.clone() {
        Some(node) => Some(ClusterNode::start(node, &data_dir.node_name(), clock).await?),
        None => None,
    };
    let database = node.as_ref().map(|node| node.database.clone());
    let role = match &node {
        Some(node) => node.store_role(clock).map_err(no_threads)?,
        None => StoreRole::Single,
    };
    let opening = OpenSettings {
        author: settings.author.clone(),
        clock: clock.clone(),
        budget: settings.storage,
        speaks_for,
        role,
    };
    let witness_dir = data_dir.witness();
    let witness =
        settings.witness.as_ref().map(|witness| witness::open(&witness_dir, witness)).transpose()?;
    // Before a mirror that becomes a server forgets it.
    let copied = disk::read(&data_dir.log_copy().join(CheckpointFiles::NEWEST), NOTE_BYTES as u64);
    let copied = copied.ok().flatten();
    let (store, role) = match settings.mirror.clone() {
        None => open_own(&data_dir, opening, node)?,
        Some(mirror) => {
            let opening = OpenSettings { role: StoreRole::Mirror, budget: None, ..opening };
            let (store, state) = mirror::open(&data_dir, mirror, opening).await?;
            (store, ServerRole::Mirror(state))
        }
    };
    // The origin of a mirror sends webhooks.
    let webhooks = if settings.mirror.is_some() { Vec::new() } else { settings.webhooks.clone() };
    let webhooks = Webhooks::open(webhooks, &data_dir, &store, database.as_ref())?;
    let log = settings.log.clone();
    let log = log.map(|log| start_log(&store, &data_dir, database, log, copied)).transpose()?;
    let (log, asked) = log.unzip();
    let blocks = Blocks::open(data_dir.blocks())?;
    let limits = settings.limits.clone();
    let policy = log.as_ref().and_then(|log| log.policy());
    let connections = Arc::new(Connections::new(settings.connections));
    // Listeners keep their connections. The others are for clients that come and go.
    let listeners = limits.event_listeners.min(connections.limits.total / 2);
    let app = App::new(AppParts {
        role,
        log: Arc::new(log.map(OnceLock::from).unwrap_or_default()),
        cosigning: policy.as_ref().map(CosigningStats::of).unwrap_or_default(),
        witness,
        catalogue: Arc::new(store.catalogue()),
        questions: few_turns(4, MAX_VISITORS, VISITOR_WAIT),
        events: Arc::new(Audience::start(store.recent_commits(), listeners)),
        store: Arc::new(HeldStore { store, data_dir }),
        upstream: build_upstream(settings)?,
        large_bodies: large_bodies(),
        renderings: few_turns(4, MAX_VISITORS, VISITOR_WAIT),
        sending: Sending::default(),
        is_tls: settings.tls.is_some(),
        security_contact: settings.security_contact.clone(),
        limits,
        limiter: settings.rates.map(Limiter::new).map(Arc::new),
        connections,
        requests: Arc::default(),
        followers: Arc::default(),
        webhooks: webhooks.stats(),
        reference: &REFERENCE,
        blocks,
        started: Instant::now(),
        is_stopping: watch::Sender::new(false),
        clock: clock.clone(),
    });
    Ok(Opened { app, webhooks, asked })
}

/// Opens the data of a server on its own, or of a node.
fn open_own(
    data_dir: &DataDir,
    opening: OpenSettings,
    node: Option<ClusterNode>,
) -> Result<(Store, ServerRole), BoxedError> {
    mirror::promote(data_dir)?;
    let clock = opening.clock.clone();
    let opened = open_repository(data_dir, opening)?;
    let role = match (node, opened.nonces) {
        (Some(mut node), _) => {
            node.join(&clock);
            ServerRole::Node(Box::new(node))
        }
        (None, nonces) => {
            ServerRole::Single { nonces: nonces.expect("a server on its own has its own nonces") }
        }
    };
    Ok((opened.store, role))
}

/// Starts the log of all commits (D87), and says which witnesses to ask. Nothing waits for it. Nodes share a database,
/// and with it the checkpoints. `copied` is the newest checkpoint in the copy of a mirror that becomes a server of its
/// own.
fn start_log(
    store: &Store,
    data_dir: &DataDir,
    database: Option<Database>,
    settings: LogSettings,
    copied: Option<Vec<u8>>,
) -> Result<(Arc<TransparencyLog>, Vec<AskedWitness>), BoxedError> {
    let LogSettings { signer, checkpoint_every, heartbeat_every, witnesses, .. } = settings;
    let dir = data_dir.log();
    let no_key = "the log has no key: the program that starts the server must read `log.key_file` first";
    let signer = signer.ok_or(no_key)?;
    let origin = signer.key().name();
    let asked = witnesses.as_ref().map(|policy| AskedWitness::list(policy, origin)).transpose()?;
    let asked = asked.unwrap_or_default();
    let keeper: Box<dyn CheckpointKeeper> = match database {
        None => Box::new(CheckpointFiles::new(&dir)),
        Some(database) => Box::new(
            SharedCheckpoints::new(database, &dir)
                .map_err(|error| format!("the log cannot speak to the database: {error}"))?,
        ),
    };
    let options = LogOptions {
        keeper,
        dir,
        signer,
        checkpoint_every,
        heartbeat_every,
        policy: witnesses,
        waits_for_witnesses: !asked.is_empty(),
        copied,
    };
    Ok((Arc::new(TransparencyLog::start(store, options)?), asked))
}

fn build_upstream(settings: &Settings) -> Result<Upstream, BoxedError> {
    let limits = &settings.limits;
    let fetcher = Fetcher::new(settings.guard.clone(), settings.timeouts, Arc::new(SystemResolver))?;
    Ok(Upstream {
        forges: settings.forges.clone(),
        file_servers: settings.guard.file_servers.clone(),
        turns: FetchTurns::default(),
        releases: Releases::default(),
        fetcher: fetcher.with_asset_timeout(settings.asset_timeout),
        signers_file_bytes: limits.signers_file_bytes,
        release_limits: ReleaseLimits {
            assets: limits.assets,
            asset_bytes: limits.asset_bytes,
            total_time: RELEASE_TIME,
        },
    })
}

pub(crate) fn no_threads(error: std::io::Error) -> String {
    format!("the threads that serve connections cannot be started: {error}")
}
