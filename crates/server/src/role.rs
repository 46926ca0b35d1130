//! How this server stands to others: on its own, or one of several.

use std::time::Instant;

use countersign_core::{rules::auth, values::time::Timestamp};
use countersign_store::nonces::{NonceStats, Nonces};

use crate::{error::ApiError, health::NotReady, node::ClusterNode};

#[derive(Debug)]
pub enum ServerRole {
    /// On its own. It remembers the nonces that were used.
    Single { nonces: Nonces },
    /// One of several, which share nonces and the order of changes.
    Node(ClusterNode),
}

impl ServerRole {
    /// Uses up the nonce of a request that was signed at this time. After `Ok` no other request has it, and the newest
    /// head has every change that was acknowledged before.
    pub async fn accept(&self, nonce: [u8; 16], signed: Timestamp) -> Result<(), ApiError> {
        match self {
            Self::Single { nonces } => {
                check_floor(nonces.floor(), signed)?;
                Ok(nonces.remember(nonce, auth::nonce_expiry(signed)).await?)
            }
            Self::Node(node) => node.accept(nonce, signed).await,
        }
    }

    pub fn nonces(&self) -> Option<&NonceStats> {
        match self {
            Self::Single { nonces } => Some(nonces.stats()),
            Self::Node(node) => Some(node.nonces()),
        }
    }

    pub fn readiness(&self, now: Instant) -> Result<(), NotReady> {
        match self {
            Self::Single { nonces } if nonces.stats().is_failing(now) => Err(NotReady::Nonces),
            Self::Single { .. } => Ok(()),
            Self::Node(node) => node.readiness(now),
        }
    }

    pub fn node(&self) -> Option<&ClusterNode> {
        match self {
            Self::Single { .. } => None,
            Self::Node(node) => Some(node),
        }
    }
}

/// The server does not know which nonces were used before a restore, so all from that time count as used (D31).
fn check_floor(floor: Option<Timestamp>, signed: Timestamp) -> Result<(), ApiError> {
    let Some(floor) = floor.filter(|floor| signed < *floor) else { return Ok(()) };
    Err(ApiError::unauthorized(format!(
        "the timestamp is from before this server was restored, at {floor}: sign the request again; if that time is still \
         to come, the operator can help (docs/operations.md, The clock)"
    )))
}
