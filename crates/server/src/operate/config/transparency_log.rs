//! The table `[log]`: the log of all commits, and its witnesses.

use std::{error::Error, fs, io::Read as _, path::PathBuf, sync::Arc, time::Duration};

use countersign_core::log::policy::Policy;
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{bounds::POLICY_BYTES, key::PublicKey, shown::shown_text};
use countersign_log::CheckpointSigner;
use serde::Deserialize;

use crate::operate::config::{source::ConfigError, source::MAX_SECONDS, tables::refuse_zero};

const DEFAULT_CHECKPOINT: u64 = 5;
const DEFAULT_HEARTBEAT: u64 = 60;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogTable {
    origin: Option<String>,
    key_file: Option<PathBuf>,
    checkpoint_seconds: Option<u64>,
    heartbeat_seconds: Option<u64>,
    witnesses_file: Option<PathBuf>,
}

/// A server that keeps a log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    pub origin: String,
    /// The file with the log's key, or with its public half if an agent has the private half.
    pub key_file: PathBuf,
    /// The signer, or `None` until the program has read the key. The server speaks to no agent.
    pub signer: Option<Arc<CheckpointSigner>>,
    pub checkpoint_every: Duration,
    pub heartbeat_every: Duration,
    /// The witnesses to ask, and how many of them must answer.
    pub witnesses: Option<Policy>,
}

impl LogTable {
    pub(crate) fn resolve(self) -> Result<LogSettings, ConfigError> {
        let missing =
            |key| ConfigError::value(key, "is missing: `countersign admin log init` prints the table");
        let checkpoint = self.checkpoint_seconds.unwrap_or(DEFAULT_CHECKPOINT);
        let heartbeat = self.heartbeat_seconds.unwrap_or(DEFAULT_HEARTBEAT);
        let seconds = [("log.checkpoint_seconds", checkpoint), ("log.heartbeat_seconds", heartbeat)];
        refuse_zero(&seconds.map(|(key, seconds)| (key, seconds == 0)))?;
        if let Some((key, _)) = seconds.into_iter().find(|(_, seconds)| *seconds > MAX_SECONDS) {
            return Err(ConfigError::value(key, format!("at most {MAX_SECONDS}, which is a day")));
        }
        Ok(LogSettings {
            origin: self.origin.ok_or_else(|| missing("log.origin"))?,
            key_file: self.key_file.ok_or_else(|| missing("log.key_file"))?,
            signer: None,
            checkpoint_every: Duration::from_secs(checkpoint),
            heartbeat_every: Duration::from_secs(heartbeat),
            witnesses: self.witnesses_file.map(read_policy).transpose()?,
        })
    }
}

impl LogSettings {
    /// The key under the name of the origin, if the witnesses file has nothing against it.
    pub fn verifier_key(&self, key: PublicKey) -> Result<VerifierKey, ConfigError> {
        let named = VerifierKey::new(&self.origin, KeyKind::Log, key)
            .map_err(|error| ConfigError::value("log.origin", error))?;
        let refuse = |reason: String| Err(ConfigError::value("log.witnesses_file", reason));
        let Some(policy) = &self.witnesses else { return Ok(named) };
        let has_this_key = |witness: &VerifierKey| witness.key() == key;
        if policy.witness_keys().iter().any(has_this_key) {
            return refuse(format!("the log's key {key} is a witness's as well (D90)"));
        }
        if !policy.logs().is_empty() && !policy.log_keys().contains(&named) {
            return refuse(format!("it is about other logs: add the line `log {named}`"));
        }
        Ok(named)
    }
}

fn read_policy(path: PathBuf) -> Result<Policy, ConfigError> {
    let wrong = |error: &dyn Error| {
        let shown = shown_text(&path.to_string_lossy());
        ConfigError::value("log.witnesses_file", format!("{shown} cannot be used: {error}"))
    };
    let mut bytes = Vec::new();
    let file = fs::File::open(&path).map_err(|error| wrong(&error))?;
    file.take(POLICY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| wrong(&error))?;
    Policy::parse(&bytes).map_err(|error| wrong(&error))
}
