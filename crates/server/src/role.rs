//! How this server stands to others: on its own, one of several, or a mirror.

use std::{sync::Arc, time::Instant};

use countersign_api::error_code::ErrorCode;
use countersign_cluster::clock_check::WrongNodeClock;
use countersign_core::{rules::auth, values::time::Timestamp};
use countersign_store::nonces::{NonceStats, Nonces};

use crate::{
    error::ApiError,
    health::NotReady,
    mirror::{MirrorState, state::NotTheOrigin},
    node::ClusterNode,
};

#[derive(Debug)]
pub enum ServerRole {
    /// On its own. It remembers the nonces that were used.
    Single { nonces: Nonces },
    /// One of several, which share nonces and the order of changes.
    Node(ClusterNode),
    /// It follows another server, and accepts nothing.
    Mirror(Arc<MirrorState>),
}

impl ServerRole {
    /// Before anything else of a signed request is looked at.
    pub fn check_accepts(&self) -> Result<(), NotTheOrigin> {
        match self {
            Self::Single { .. } | Self::Node(_) => Ok(()),
            Self::Mirror(mirror) => Err(mirror.refuse_signed()),
        }
    }

    /// Whether requests are judged by the right time, as far as a node can know. A server on its own has only its clock.
    pub fn check_clock(&self) -> Result<(), WrongNodeClock> {
        self.node().map_or(Ok(()), ClusterNode::check_clock)
    }

    pub fn mirror(&self) -> Option<&MirrorState> {
        match self {
            Self::Single { .. } | Self::Node(_) => None,
            Self::Mirror(mirror) => Some(mirror),
        }
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
            Self::Single { nonces } if nonces.stats().is_failing(now) => Err(NotReady::Nonces),
            Self::Single { .. } => Ok(()),
            Self::Node(node) => node.readiness(now),
            Self::Mirror(mirror) => Ok(mirror.check(now)?),
        }
    }

    pub fn node(&self) -> Option<&ClusterNode> {
        match self {
            Self::Single { .. } | Self::Mirror(_) => None,
            Self::Node(node) => Some(node),
        }
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
