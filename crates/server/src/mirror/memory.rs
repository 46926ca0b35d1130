//! What a mirror's data directory remembers beside the repository: its origin, and why it no longer follows it.

use std::{
    io,
    path::{Path, PathBuf},
};

use countersign_core::values::{shown::shown_text, time::Timestamp};
use countersign_store::data_dir::DataDir;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::address::OriginAddress;
use countersign_store::durable;

/// Far more than an address or a refusal takes.
const MAX_BYTES: u64 = 64 << 10;

/// Why a mirror has stopped following, until its operator decides (D75).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowRefusal {
    pub at: String,
    pub origin: String,
    pub reason: String,
    /// The commit that the mirror has where the origin shows another one.
    pub ours: Option<String>,
    /// The commit that the origin shows.
    pub theirs: Option<String>,
}

#[derive(Debug, Error)]
#[error("{} cannot be {action}", path.display())]
pub struct MemoryError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// The files of one data directory. The caller holds its lock.
#[derive(Debug, Clone)]
pub struct MirrorMemory {
    origin: PathBuf,
    refused: PathBuf,
}

impl MirrorMemory {
    pub fn at(data_dir: &Path) -> Self {
        Self { origin: DataDir::mirror_origin_at(data_dir), refused: DataDir::mirror_refused_at(data_dir) }
    }

    /// The address that this mirror has followed, as it was written; `None` if this is no mirror's directory.
    pub fn origin(&self) -> Result<Option<String>, MemoryError> {
        let text = durable::read_text(&self.origin, MAX_BYTES).map_err(fail("read", &self.origin))?;
        Ok(text.map(|text| shown_text(text.trim())))
    }

    pub fn set_origin(&self, origin: &OriginAddress) -> Result<(), MemoryError> {
        durable::replace(&self.origin, &format!("{origin}\n")).map_err(fail("written", &self.origin))
    }

    /// The directory is no mirror's any more.
    pub fn forget_origin(&self) -> Result<(), MemoryError> {
        durable::remove(&self.origin).map(drop).map_err(fail("removed", &self.origin))
    }

    /// A file that cannot be understood is a refusal as well.
    pub fn refusal(&self) -> Result<Option<FollowRefusal>, MemoryError> {
        let text = durable::read_text(&self.refused, MAX_BYTES).map_err(fail("read", &self.refused))?;
        Ok(text.map(|text| {
            serde_json::from_str(&text).unwrap_or_else(|_| FollowRefusal {
                at: "an unknown time".to_owned(),
                origin: "unknown".to_owned(),
                reason: format!("{} cannot be understood", self.refused.display()),
                ours: None,
                theirs: None,
            })
        }))
    }

    pub fn set_refusal(&self, refusal: &FollowRefusal) -> Result<(), MemoryError> {
        let mut text = serde_json::to_string_pretty(refusal).expect("text is always JSON");
        text.push('\n');
        durable::replace(&self.refused, &text).map_err(fail("written", &self.refused))
    }

    /// The operator's decision to try again. Whether there was a refusal.
    pub fn forget_refusal(&self) -> Result<bool, MemoryError> {
        durable::remove(&self.refused).map_err(fail("removed", &self.refused))
    }
}

impl FollowRefusal {
    pub(super) fn new(origin: &OriginAddress, at: Timestamp, reason: String) -> Self {
        let at = at.to_whole_seconds().to_string();
        Self { at, origin: origin.to_string(), reason: shown_text(&reason), ours: None, theirs: None }
    }
}

fn fail(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> MemoryError {
    let path = path.to_owned();
    move |source| MemoryError { action, path, source }
}
