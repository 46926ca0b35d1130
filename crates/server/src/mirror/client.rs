//! What a mirror and a witness ask their origin for, beside its journal.

use std::time::Duration;

use countersign_core::values::{
    bounds::NOTE_BYTES,
    verifier_key::{KeyKind, VerifierKey, VerifierKeyError},
    wire::routes::LOG_KEY,
};
use countersign_forge::https::SetupError;
use thiserror::Error;

use super::address::OriginAddress;
use crate::brief_client::{BriefAnswer, BriefClient, BriefError};

#[derive(Debug)]
pub(crate) struct OriginClient {
    origin: OriginAddress,
    client: BriefClient,
}

#[derive(Debug, Error)]
pub(crate) enum OriginError {
    #[error(transparent)]
    Exchange(#[from] BriefError),
    #[error("the origin answered with {status}: {message}")]
    Status { status: u16, message: String, wait: Option<Duration> },
    #[error("the origin shows no key of a log: {0}")]
    Key(#[from] VerifierKeyError),
}

impl OriginClient {
    pub(crate) fn new(origin: OriginAddress) -> Result<Self, SetupError> {
        Ok(Self { origin, client: BriefClient::new(NOTE_BYTES)? })
    }

    /// What the origin serves at this route.
    pub(crate) async fn get(&self, route: &str) -> Result<Vec<u8>, OriginError> {
        check_status(self.client.get(&format!("{}{route}", self.origin)).await?)
    }

    pub(crate) async fn post(&self, route: &str, body: String) -> Result<(), OriginError> {
        check_status(self.client.post(&format!("{}{route}", self.origin), body).await?).map(drop)
    }

    /// The key of its log, by its own word.
    pub(crate) async fn log_key(&self) -> Result<VerifierKey, OriginError> {
        let text = String::from_utf8_lossy(&self.get(LOG_KEY).await?).into_owned();
        Ok(VerifierKey::parse_kind(text.trim(), KeyKind::Log)?)
    }
}

impl OriginError {
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            Self::Exchange(_) | Self::Key(_) => None,
        }
    }

    /// How long the origin asks to be left alone.
    pub(crate) fn asked_wait(&self) -> Option<Duration> {
        match self {
            Self::Status { wait, .. } => *wait,
            Self::Exchange(_) | Self::Key(_) => None,
        }
    }
}

fn check_status(answer: BriefAnswer) -> Result<Vec<u8>, OriginError> {
    if answer.status == 200 {
        return Ok(answer.body);
    }
    let (status, wait) = (answer.status, answer.retry_after);
    Err(OriginError::Status { status, message: answer.excerpt(), wait })
}
