//! What the data directory holds, opened for the part that this server plays.

use std::{io, net::SocketAddr, sync::Arc};

use countersign_forge::{fetch::SetupError, forges::speaks_for};
use countersign_log::{LogWitness, TransparencyLog};
use countersign_store::machine::{clock::Clock, data_dir::DataDir, data_dir::DataDirError};
use countersign_store::store::{OpenDataError, OpenSettings, open_repository};
use countersign_store::{Store, StoreRole};
use thiserror::Error;

use crate::events::webhooks::{Webhooks, progress::ProgressError, settings::Webhook};
use crate::follow::mirror::{MirrorError, MirrorSettings, OpenedMirror};
use crate::follow::{background::HeldStore, mirror, witness, witness::WitnessError};
use crate::http::blocks::{Blocks, UnreadableBlocks};
use crate::nodes::node::{NodeError, ServerRole, UnstartedNode};
use crate::nodes::transparency::{LogStartError, StartedLog};
use crate::nodes::{asking::AskedWitness, transparency};
use crate::operate::{config::Settings, tls::TlsError};

pub(crate) struct Opened {
    pub(crate) state: OpenedState,
    pub(crate) webhooks: Webhooks,
    /// The witnesses of the log.
    pub(crate) asked: Option<Vec<AskedWitness>>,
}

/// What handlers will share.
pub(crate) struct OpenedState {
    pub(crate) blocks: Blocks,
    pub(crate) log: Option<Arc<TransparencyLog>>,
    pub(crate) role: ServerRole,
    pub(crate) store: HeldStore,
    pub(crate) witness: Option<Arc<LogWitness>>,
}

pub(crate) async fn open(settings: &Settings, clock: &Clock) -> Result<Opened, StartError> {
    let data_dir = DataDir::lock(&settings.data_dir)?;
    let node = match settings.node.clone() {
        Some(node) => Some(UnstartedNode::prepare(node, &data_dir.node_name()).await?),
        None => None,
    };
    let database = node.as_ref().map(|node| node.database().clone());
    let role = match &node {
        Some(node) => node.store_role(clock).map_err(StartError::Threads)?,
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
    let copied = transparency::read_copied(&data_dir);
    let OpenedRole { store, role, webhooks } = match settings.mirror.clone() {
        None => open_own(&data_dir, opening, node, settings.webhooks.clone())?,
        Some(mirror) => open_mirror(&data_dir, opening, mirror).await?,
    };
    let log = settings.log.clone();
    let log = log.map(|log| transparency::start(&store, &data_dir, database, log, copied)).transpose()?;
    let (log, asked) = log.map(|StartedLog { log, asked }| (log, asked)).unzip();
    let blocks = Blocks::open(data_dir.blocks())?;
    let state = OpenedState { blocks, log, role, store: HeldStore { store, data_dir }, witness };
    Ok(Opened { state, webhooks, asked })
}

/// What there is to serve, and how this server stands to others.
struct OpenedRole {
    store: Store,
    role: ServerRole,
    webhooks: Webhooks,
}

/// Opens the data of a server on its own, or of a node.
fn open_own(
    data_dir: &DataDir,
    opening: OpenSettings,
    node: Option<UnstartedNode>,
    webhooks: Vec<Webhook>,
) -> Result<OpenedRole, StartError> {
    mirror::promote(data_dir)?;
    let clock = opening.clock.clone();
    let opened = open_repository(data_dir, opening)?;
    let database = node.as_ref().map(UnstartedNode::database);
    let webhooks = Webhooks::open(webhooks, data_dir, &opened.store, database)?;
    let role = match (node, opened.nonces) {
        (Some(node), _) => ServerRole::Node(node.start(&clock)),
        (None, nonces) => {
            ServerRole::Single { nonces: nonces.expect("a server on its own has its own nonces") }
        }
    };
    Ok(OpenedRole { store: opened.store, role, webhooks })
}

async fn open_mirror(
    data_dir: &DataDir,
    opening: OpenSettings,
    mirror: MirrorSettings,
) -> Result<OpenedRole, StartError> {
    let opening = OpenSettings { role: StoreRole::Follower, budget: None, ..opening };
    let OpenedMirror { store, state } = mirror::open(data_dir, mirror, opening).await?;
    // The origin sends webhooks.
    let webhooks = Webhooks::open(Vec::new(), data_dir, &store, None)?;
    Ok(OpenedRole { store, role: ServerRole::Mirror(state), webhooks })
}

// The reasons why a server does not start.

#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Data(#[from] OpenDataError),
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    #[error(transparent)]
    Fetch(#[from] SetupError),
    #[error(transparent)]
    Webhooks(#[from] ProgressError),
    #[error(transparent)]
    Blocks(#[from] UnreadableBlocks),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Log(#[from] LogStartError),
    #[error(transparent)]
    Witness(#[from] WitnessError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the threads that serve connections cannot be started")]
    Threads(#[source] io::Error),
    #[error(
        "this machine's clock is before 1970, or after the year 9999: set it, and start the server again"
    )]
    Clock,
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
}
