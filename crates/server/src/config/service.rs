//! The tables about clients: how often they can ask, how many connections they can have, and TLS.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use super::{error::ConfigError, positive};
use crate::{limits::Rates, listen::connections::ConnectionLimits, tls::TlsFiles};
use countersign_store::bucket::Rate;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const MAX_CONNECTIONS: usize = 8_192;
const MAX_CONNECTIONS_PER_ADDRESS: usize = 2_048;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateLimitsTable {
    enabled: Option<bool>,
    address_per_second: Option<u32>,
    address_burst: Option<u32>,
    authenticated_per_second: Option<u32>,
    authenticated_burst: Option<u32>,
    key_per_second: Option<u32>,
    key_burst: Option<u32>,
    fetches_per_minute: Option<u32>,
    fetches_burst: Option<u32>,
    address_fetches_per_minute: Option<u32>,
    address_fetches_burst: Option<u32>,
}

impl RateLimitsTable {
    /// `None` if they are switched off. Development mode is for one's own machine and has none (D37).
    pub(super) fn resolve(self, dev: bool) -> Result<Option<Rates>, ConfigError> {
        let rate = |per, count: u32, burst: u32| Rate::new(count.into(), per, burst.into());
        let rates = Rates {
            address: rate(
                SECOND,
                positive!(self, rate_limits.address_per_second, 1_000)?,
                positive!(self, rate_limits.address_burst, 5_000)?,
            ),
            address_authenticated: rate(
                SECOND,
                positive!(self, rate_limits.authenticated_per_second, 200)?,
                positive!(self, rate_limits.authenticated_burst, 2_000)?,
            ),
            key: rate(
                SECOND,
                positive!(self, rate_limits.key_per_second, 50)?,
                positive!(self, rate_limits.key_burst, 1_000)?,
            ),
            key_fetches: rate(
                MINUTE,
                positive!(self, rate_limits.fetches_per_minute, 60)?,
                positive!(self, rate_limits.fetches_burst, 300)?,
            ),
            address_fetches: rate(
                MINUTE,
                positive!(self, rate_limits.address_fetches_per_minute, 240)?,
                positive!(self, rate_limits.address_fetches_burst, 1_000)?,
            ),
        };
        Ok((self.enabled.unwrap_or(true) && !dev).then_some(rates))
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConnectionsTable {
    max: Option<usize>,
    per_address: Option<usize>,
}

impl ConnectionsTable {
    pub(super) fn resolve(self, dev: bool) -> Result<ConnectionLimits, ConfigError> {
        let total = positive!(self, connections.max, MAX_CONNECTIONS)?;
        let per_address = positive!(self, connections.per_address, MAX_CONNECTIONS_PER_ADDRESS)?;
        Ok(ConnectionLimits { total, per_address: (!dev).then_some(per_address) })
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
