//! The tables about clients: how often they can ask, how many connections they can have, and TLS.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use super::{error::ConfigError, numbers::table};
use crate::{connections::ConnectionLimits, limits::Rates, tls::TlsFiles};
use countersign_store::bucket::Rate;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

table! {
    pub(super) struct RateLimitsTable in rate_limits {
        [enabled = true]
        address_per_second: u32 = 1_000,
        address_burst: u32 = 5_000,
        authenticated_per_second: u32 = 200,
        authenticated_burst: u32 = 2_000,
        key_per_second: u32 = 50,
        key_burst: u32 = 1_000,
        fetches_per_minute: u32 = 60,
        fetches_burst: u32 = 300,
        address_fetches_per_minute: u32 = 240,
        address_fetches_burst: u32 = 1_000,
    }
}

impl RateLimitsTable {
    /// `None` if they are switched off. Development mode is for one's own machine and has none (D37).
    pub(super) fn resolve(self, dev: bool) -> Result<Option<Rates>, ConfigError> {
        self.check()?;
        let rate = |count: u32, per, burst: u32| Rate::new(count.into(), per, burst.into());
        let rates = Rates {
            address: rate(self.address_per_second, SECOND, self.address_burst),
            address_authenticated: rate(self.authenticated_per_second, SECOND, self.authenticated_burst),
            key: rate(self.key_per_second, SECOND, self.key_burst),
            key_fetches: rate(self.fetches_per_minute, MINUTE, self.fetches_burst),
            address_fetches: rate(self.address_fetches_per_minute, MINUTE, self.address_fetches_burst),
        };
        Ok((self.enabled && !dev).then_some(rates))
    }
}

table! {
    pub(super) struct ConnectionsTable in connections {
        max: usize = 8_192,
        per_address: usize = 2_048,
    }
}

impl ConnectionsTable {
    pub(super) fn resolve(self, dev: bool) -> Result<ConnectionLimits, ConfigError> {
        self.check()?;
        Ok(ConnectionLimits { total: self.max, per_address: (!dev).then_some(self.per_address) })
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsTable {
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
}

impl TlsTable {
    pub(super) fn resolve(
        self,
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> Result<Option<TlsFiles>, ConfigError> {
        match (cert.or(self.cert_file), key.or(self.key_file)) {
            (Some(cert), Some(key)) => Ok(Some(TlsFiles { cert, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(ConfigError::HalfOfTls { missing: "key (--tls-key, or tls.key_file)" }),
            (None, Some(_)) => {
                Err(ConfigError::HalfOfTls { missing: "certificate (--tls-cert, or tls.cert_file)" })
            }
        }
    }
}
