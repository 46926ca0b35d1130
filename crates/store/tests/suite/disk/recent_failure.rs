//! How long a failure counts.

use std::time::Instant;

use countersign_store::machine::clock::{MEMORY, RecentFailure, uptime_nanos};

#[test]
fn a_failure_counts_until_a_success_or_for_half_a_minute() {
    uptime_nanos(Instant::now());
    let (trouble, now) = (RecentFailure::default(), Instant::now());
    assert!(!trouble.is_recent(now));
    trouble.note(false, now);
    assert!(trouble.is_recent(now));
    assert!(trouble.is_recent(now + MEMORY / 2));
    assert!(!trouble.is_recent(now + MEMORY));
    trouble.note(false, now + MEMORY);
    assert!(trouble.is_recent(now + MEMORY));
    trouble.note(true, now + MEMORY);
    assert!(!trouble.is_recent(now + MEMORY));
}
