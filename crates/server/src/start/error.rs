//! Why a server does not start.

use std::{io, net::SocketAddr};

use countersign_forge::fetch::SetupError;
use countersign_store::{data_dir::DataDirError, open::OpenDataError};
use thiserror::Error;

use crate::{
    blocks::UnreadableBlocks, mirror::MirrorError, node::NodeError, tls::TlsError,
    transparency::LogStartError, webhooks::progress::ProgressError, witness::WitnessError,
};

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
