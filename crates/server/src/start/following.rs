//! The tasks that follow others: an order, an origin, a log.

use std::sync::Arc;

use countersign_store::clock::Clock;

use super::{background::Background, error::StartError};
use crate::{
    asking::{self, AskedWitness, Restored},
    mirror::{self, CopyParts, MirrorError},
    role::ServerRole,
    state::App,
    witness::{self, WatchParts, WitnessSettings},
};

/// A node follows the order, and a mirror its origin.
pub(super) fn start_following(app: &App, clock: Clock) -> Result<Option<Background>, StartError> {
    let store = Arc::clone(&app.store);
    Ok(match &app.role {
        ServerRole::Single { .. } => None,
        ServerRole::Node(node) => Some(Background::start(|stopped| node.follow(store, stopped))),
        ServerRole::Mirror(state) => Some(Background::start(
            mirror::follow(Arc::clone(state), store, clock).map_err(MirrorError::from)?,
        )),
    })
}

/// The tasks between a log and its witnesses, on whichever side this server is.
pub(super) fn start_witnessing(
    app: &App,
    asked: Option<Vec<AskedWitness>>,
    watching: Option<WitnessSettings>,
) -> Result<Vec<Background>, StartError> {
    let mut witnessing = Vec::new();
    if let (Some(log), Some(asked)) = (app.log.get(), asked) {
        let (stats, restored) = (app.cosigning.clone(), Restored::of(&app.role, app.now()));
        witnessing.push(Background::start(asking::ask_all(log, asked, stats, restored, app.clock.clone())?));
    }
    if let (Some(witness), Some(settings), Some(mirror)) = (&app.witness, watching, app.role.mirror()) {
        witnessing.push(Background::start(witness::watch(WatchParts {
            witness: Arc::clone(witness),
            settings,
            origin: mirror.origin.clone(),
            store: Arc::clone(&app.store),
            // For files that can be deleted.
            dir: app.store.data_dir.witness().join("replay"),
            clock: app.clock.clone(),
        })?));
    }
    // A witness derives the log already, and need not be asked for it.
    if let (ServerRole::Mirror(mirror), None) = (&app.role, &app.witness) {
        witnessing.push(Background::start(mirror::copy_log(CopyParts {
            mirror: Arc::clone(mirror),
            store: Arc::clone(&app.store),
            slot: app.log.clone(),
        })?));
    }
    Ok(witnessing)
}
