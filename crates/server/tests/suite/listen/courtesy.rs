//! When a lane lets other threads go first.

use std::time::{Duration, Instant};

use countersign_server::listen::courtesy::{Courtesy, LONG, PAUSE};

const MOMENT: Duration = Duration::from_micros(1);

#[test]
fn a_lane_that_waited_long_keeps_to_itself_for_a_while() {
    let (courtesy, start) = (Courtesy::default(), Instant::now());
    assert!(courtesy.is_due(start));
    courtesy.note(start, start + LONG);
    assert!(courtesy.is_due(start + LONG), "that was not long");

    let late = start + LONG + MOMENT;
    courtesy.note(start, late);
    assert!(!courtesy.is_due(late) && !courtesy.is_due(late + PAUSE - MOMENT));
    assert!(courtesy.is_due(late + PAUSE));
}
