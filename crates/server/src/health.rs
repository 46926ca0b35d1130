//! Whether the server can do its work.

use std::sync::Arc;

use countersign_cluster::clock_check::WrongNodeClock;
use countersign_log::LogRefusal;
use thiserror::Error;

use crate::mirror::MirrorTrouble;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotReady {
    #[error("the server is stopping")]
    Stopping,
    #[error("the last change could not be committed to the repository")]
    Store,
    #[error("the last nonce could not be stored")]
    Nonces,
    #[error("the server's disk is full: its operator must make room")]
    DiskFull,
    #[error("the server's clock is behind its newest change: its operator must set it")]
    Clock,
    #[error("the database cannot be reached")]
    Database,
    #[error("this node is too far behind the others")]
    Lagging,
    #[error(transparent)]
    NodeClock(#[from] WrongNodeClock),
    #[error("this node has stopped following the others: {0}")]
    Halted(Arc<String>),
    #[error(transparent)]
    Mirror(#[from] MirrorTrouble),
    #[error("the log signs nothing: {0}")]
    Log(#[from] LogRefusal),
}
