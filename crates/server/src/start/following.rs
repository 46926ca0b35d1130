//! The tasks that follow others: an order, an origin, a log.

use std::sync::Arc;

use countersign_store::clock::Clock;

use super::error::StartError;
use crate::{
    asking::{AskedWitness, AskedWitnesses, Restored},
    background::Background,
    mirror::{Follower, LogCopier, MirrorError},
    role::ServerRole,
    state::App,
    witness::{WatchParts, Watcher, WitnessSettings},
};

/// A node follows the order, and a mirror its origin.
pub(super) fn start_following(app: &App, clock: Clock) -> Result<Option<Background>, StartError> {
    let store = Arc::clone(&app.store);
    Ok(match &app.role {
        ServerRole::Single { .. } => None,
        ServerRole::Node(node) => Some(Background::start(|stopped| node.follow(store, stopped))),
        ServerRole::Mirror(state) => {
            let follower = Follower::new(Arc::clone(state), store, clock).map_err(MirrorError::from)?;
            Some(Background::start(|stop| follower.run(stop)))
        }
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
        let asking = AskedWitnesses::new(log, asked, stats, restored, app.clock.clone())?;
        witnessing.push(Background::start(|stop| asking.run(stop)));
    }
    if let (Some(witness), Some(settings), Some(mirror)) = (&app.witness, watching, app.role.mirror()) {
        let watcher = Watcher::new(WatchParts {
            witness: Arc::clone(witness),
            settings,
            origin: mirror.origin.clone(),
            store: Arc::clone(&app.store),
            // For files that can be deleted.
            dir: app.store.data_dir.witness().join("replay"),
            clock: app.clock.clone(),
        })?;
        witnessing.push(Background::start(|stop| watcher.run(stop)));
    }
    // A witness derives the log already, and need not be asked for it.
    if let (ServerRole::Mirror(mirror), None) = (&app.role, &app.witness) {
        let copier = LogCopier::new(Arc::clone(mirror), Arc::clone(&app.store), app.log.clone())?;
        witnessing.push(Background::start(|stop| copier.run(stop)));
    }
    Ok(witnessing)
}
