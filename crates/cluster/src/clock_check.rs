//! Whether the clock of this node agrees with the database's, which is the clock of the whole order (D194).

use std::{
    fmt,
    time::{Duration, Instant, SystemTime},
};

use countersign_core::values::time::Timestamp;
use countersign_store::{clock::Clock, sequence::MAX_CLOCK_ERROR};
use thiserror::Error;

use crate::{error::DatabaseError, times};

/// A question to the database that also asks for its time.
#[derive(Debug)]
pub(crate) struct ClockQuestion(Instant);

/// The readings of both clocks at one moment, as well as that can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    pub node: Timestamp,
    pub database: Timestamp,
    /// How far `node` can be from the moment at which the database read its clock.
    slack: Duration,
}

/// The clock of this node is too far from the database's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}: the operator sets this machine's clock (docs/cluster.md, Clocks)")]
pub struct WrongNodeClock(ClockReading);

impl ClockQuestion {
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    /// Ends a reading when the answer has just come. The database read its clock at some moment since the question.
    pub(crate) fn end(self, clock: &Clock, shown: SystemTime) -> Result<ClockReading, DatabaseError> {
        let slack = self.0.elapsed();
        let strange = || DatabaseError::Strange("a time out of the calendar".to_owned());
        let database = times::from_system(shown).ok_or_else(strange)?;
        Ok(ClockReading { node: clock.now(), database, slack })
    }
}

impl ClockReading {
    /// How many milliseconds the node's clock is ahead of the database's, about. Less than 0 if it is behind.
    pub fn lead_millis(&self) -> i64 {
        let half = i128::try_from(self.slack.as_nanos() / 2).unwrap_or_default();
        let lead = self.node.nanos_since(self.database) - half;
        i64::try_from(lead / 1_000_000).unwrap_or(if lead < 0 { i64::MIN } else { i64::MAX })
    }

    /// Whether the two are no further apart than they may be. A slow answer accuses no clock.
    pub fn check(&self) -> Result<(), WrongNodeClock> {
        let ahead = self.node.ahead_of(self.database).is_some_and(|lead| lead > MAX_CLOCK_ERROR + self.slack);
        let behind = self.database.ahead_of(self.node).is_some_and(|lag| lag > MAX_CLOCK_ERROR);
        if ahead || behind { Err(WrongNodeClock(*self)) } else { Ok(()) }
    }
}

impl fmt::Display for ClockReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, database, .. } = self;
        let seconds = self.lead_millis().unsigned_abs().div_ceil(1_000);
        let side = if self.lead_millis() < 0 { "behind" } else { "ahead of" };
        write!(
            f,
            "the clock of this node shows {}, {seconds} s {side} the database's, which shows {}",
            node.to_whole_seconds(),
            database.to_whole_seconds()
        )
    }
}
