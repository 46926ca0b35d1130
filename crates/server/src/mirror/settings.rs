//! What a mirror is told at its start: which server it follows, and how far behind it is still ready.

use std::time::Duration;

use super::address::OriginAddress;

#[derive(Debug, Clone)]
pub struct MirrorSettings {
    pub origin: OriginAddress,
    /// How long a mirror can be out of date before it is not ready.
    pub max_lag: Duration,
}
