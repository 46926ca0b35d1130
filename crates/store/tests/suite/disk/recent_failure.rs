//! How long a failure counts.

use std::time::Instant;

use countersign_store::machine::clock::{MEMORY, RecentFailure, WriteFailure, uptime_nanos};

#[test]
fn a_failure_counts_until_a_success_or_for_half_a_minute_and_keeps_its_cause() {
    uptime_nanos(Instant::now());
    for cause in [WriteFailure::NoRoom, WriteFailure::Other].map(Some) {
        let (trouble, now) = (RecentFailure::default(), Instant::now());
        assert_eq!(trouble.recent(now), None);
        trouble.note(cause, now);
        assert_eq!(trouble.recent(now), cause);
        assert_eq!(trouble.recent(now + MEMORY / 2), cause);
        assert_eq!(trouble.recent(now + MEMORY), None);
        trouble.note(cause, now + MEMORY);
        assert_eq!(trouble.recent(now + MEMORY), cause);
        trouble.note(None, now + MEMORY);
        assert_eq!(trouble.recent(now + MEMORY), None);
    }
}
