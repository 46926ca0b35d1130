//! The table about mirrors.

use std::time::Duration;

use super::{
    error::{ConfigError, MAX_SECONDS},
    numbers::table,
};
use crate::mirror::{MirrorSettings, address::OriginAddress};

table! {
    pub(super) struct MirrorTable in mirror {
        max_lag_seconds: u64 = 300,
    }
}

impl MirrorTable {
    pub(super) fn resolve(
        self,
        origin: Option<OriginAddress>,
    ) -> Result<Option<MirrorSettings>, ConfigError> {
        self.check()?;
        if self.max_lag_seconds > MAX_SECONDS {
            let reason = format!("at most {MAX_SECONDS}, which is a day");
            return Err(ConfigError::Value { key: "mirror.max_lag_seconds", reason });
        }
        let max_lag = Duration::from_secs(self.max_lag_seconds);
        Ok(origin.map(|origin| MirrorSettings { origin, max_lag }))
    }
}
