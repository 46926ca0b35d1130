//! The agreement to a rotation that has all consent and waits (D131): since when, and until when. It lies beside the
//! pending signers file.

use std::time::Duration;

use serde::Serialize;

use crate::values::{
    json::{self, Json, ParseError},
    time::Timestamp,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// The time that the history will have: not before any of its signatures, nor before the file in force took effect.
    pub agreed_at: Timestamp,
    /// The time at which it takes effect, by the clock that showed the agreement. A clock that was wrong before does
    /// not delay it.
    pub due_at: Timestamp,
}

impl Agreement {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().object(&["agreed_at", "due_at"])?;
        Ok(Self {
            agreed_at: object.required("agreed_at")?.parsed(Timestamp::parse)?,
            due_at: object.required("due_at")?.parsed(Timestamp::parse)?,
        })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(self)
    }

    /// The earliest time at which the history can have it in force (D133); `None` if the calendar ends before.
    pub fn earliest(&self, delay: Duration) -> Option<Timestamp> {
        let earliest = self.agreed_at.later(delay);
        earliest.ahead_of(self.agreed_at).filter(|waited| *waited >= delay).map(|_| earliest)
    }
}
