//! Whether the server can do its work.

use thiserror::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotReady {
    #[error("the server is stopping")]
    Stopping,
    #[error("the last change could not be committed to the repository")]
    Store,
    #[error("the last nonce could not be stored")]
    Nonces,
}
