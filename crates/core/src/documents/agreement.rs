//! The agreement to a rotation that has all consent and waits (D131): since when, and until when. It lies beside the
//! pending signers file.

use std::time::Duration;

use serde::Serialize;

use crate::json_fields;
use crate::values::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// The time that the history will have: not before any of its signatures, nor before the file in force took effect.
    pub agreed_at: Timestamp,
    /// The time at which it takes effect, by the clock that showed the agreement. A clock that was wrong before does
    /// not delay it.
    pub due_at: Timestamp,
}

json_fields!(document Agreement { agreed_at, due_at });

impl Agreement {
    /// The earliest time at which the history can have it in force (D133); `None` if the calendar ends before.
    pub fn earliest(&self, delay: Duration) -> Option<Timestamp> {
        let earliest = self.agreed_at.later(delay);
        earliest.ahead_of(self.agreed_at).filter(|waited| *waited >= delay).map(|_| earliest)
    }
}
