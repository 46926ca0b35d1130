//! The clock for TLS, to the database and of servers alike.

use countersign_store::clock::since_1970;
use rustls::{pki_types::UnixTime, time_provider::TimeProvider};

/// The default provider panics if the clock is before 1970.
#[derive(Debug)]
pub struct MachineTime;

impl TimeProvider for MachineTime {
    fn current_time(&self) -> Option<UnixTime> {
        since_1970().map(UnixTime::since_unix_epoch)
    }
}
