//! What the data directory holds, opened for the part that this server plays.

use std::sync::Arc;

use countersign_forge::origin::speaks_for;
use countersign_log::{LogWitness, TransparencyLog};
use countersign_store::{
    Store, StoreRole,
    clock::Clock,
    data_dir::DataDir,
    open::{OpenSettings, open_repository},
};

use super::error::StartError;
use crate::{
    asking::AskedWitness,
    blocks::Blocks,
    config::Settings,
    held_store::HeldStore,
    mirror::{self, MirrorSettings, OpenedMirror},
    node::UnstartedNode,
    role::ServerRole,
    transparency::{self, StartedLog},
    webhooks::{Webhooks, settings::Webhook},
    witness,
};

pub(super) struct Opened {
    pub(super) state: OpenedState,
    pub(super) webhooks: Webhooks,
    /// The witnesses of the log.
    pub(super) asked: Option<Vec<AskedWitness>>,
}

/// What handlers will share.
pub(super) struct OpenedState {
    pub(super) blocks: Blocks,
    pub(super) log: Option<Arc<TransparencyLog>>,
    pub(super) role: ServerRole,
    pub(super) store: HeldStore,
    pub(super) witness: Option<Arc<LogWitness>>,
}

pub(super) async fn open(settings: &Settings, clock: &Clock) -> Result<Opened, StartError> {
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

/// On its own, or as a node.
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
