//! What the operator sets.

use std::time::Duration;

use super::address::OriginAddress;

#[derive(Debug, Clone)]
pub struct MirrorSettings {
    pub origin: OriginAddress,
    /// How long a mirror can be out of date before it is not ready.
    pub max_lag: Duration,
}
