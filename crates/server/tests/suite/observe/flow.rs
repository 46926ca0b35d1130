//! How much is logged.

use std::sync::{Arc, Mutex};

use countersign_server::operate::observe::writer::{Flow, LeftOut, LineKind, OF_A_KIND, OF_ALL};
use tracing::{Event, Subscriber};
use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt as _};

const SECOND: u64 = 1_000_000_000;

/// The kinds of the events that `work` makes.
fn kinds(work: impl FnOnce()) -> Vec<LineKind> {
    struct Seen(Arc<Mutex<Vec<LineKind>>>);
    impl<S: Subscriber> Layer<S> for Seen {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.0.lock().unwrap().push(LineKind::of(event));
        }
    }
    let seen = Arc::default();
    let subscriber = tracing_subscriber::registry().with(Seen(Arc::clone(&seen)));
    tracing::subscriber::with_default(subscriber, work);
    std::mem::take(&mut seen.lock().unwrap())
}

/// How many bytes are written of so many 512-byte lines at each of these seconds.
fn written(flow: &Flow, kind: &LineKind, seconds: std::ops::Range<u64>, lines: usize) -> u64 {
    let mut bytes = 0;
    for now in seconds.map(|second| second * SECOND) {
        for _ in 0..lines {
            if flow.admits(kind, now) {
                flow.charge(kind, 512, "answered", now);
                bytes += 512;
            }
        }
    }
    bytes
}

#[test]
fn a_kind_is_a_place_in_the_program_and_a_class_of_answers() {
    let answered = |status: u16| tracing::info!(status, "answered");
    let kinds = kinds(|| {
        answered(401);
        answered(404);
        answered(500);
        tracing::info!("something else");
    });
    assert_eq!(kinds[0], kinds[1]);
    assert_ne!(kinds[1], kinds[2]);
    assert!(kinds[..3].iter().all(|kind| *kind != kinds[3]));
}

#[test]
fn a_kind_has_its_burst_and_its_rate_and_the_rest_is_counted() {
    let kinds = kinds(|| tracing::info!("a line"));
    let flow = Flow::default();
    assert_eq!(written(&flow, &kinds[0], 1..2, 512), OF_A_KIND.burst, "the last that is admitted");
    assert!(flow.take_left_out().is_empty());
    assert_eq!(written(&flow, &kinds[0], 1..2, 3), 0, "the first that is left out");
    let left_out = LeftOut { like: "answered".to_owned(), class: 0, lines: 3 };
    assert_eq!(flow.take_left_out(), [left_out]);
    assert!(flow.take_left_out().is_empty(), "told once");
    assert_eq!(written(&flow, &kinds[0], 2..12, 1_000), 10 * OF_A_KIND.bytes_per_second);
}

#[test]
fn a_flood_of_refusals_leaves_room_for_changes_and_failures() {
    let answered = |status: u16| tracing::info!(status, "answered");
    let kinds = kinds(|| [401, 201, 500].into_iter().for_each(answered));
    let flow = Flow::default();
    for second in 1..60 {
        written(&flow, &kinds[0], second..second + 1, 10_000);
        assert_eq!(written(&flow, &kinds[1], second..second + 1, 50), 50 * 512);
        assert_eq!(written(&flow, &kinds[2], second..second + 1, 50), 50 * 512);
    }
}

#[test]
fn all_kinds_together_stay_below_ten_megabytes_in_a_minute() {
    let log = |status: u16| {
        tracing::info!(status, "one");
        tracing::info!(status, "another");
        tracing::error!(status, "a third");
    };
    let kinds = kinds(|| (1..=5).map(|class| class * 100).for_each(log));
    assert_eq!(kinds.len(), 15);
    let flow = Flow::default();
    let second =
        |second| kinds.iter().map(|kind| written(&flow, kind, second..second + 1, 1_000)).sum::<u64>();
    let bytes: u64 = (1..=60).map(second).sum();
    assert!(bytes < 10_000_000, "{bytes}");
    assert!(bytes >= 60 * OF_ALL.bytes_per_second, "{bytes}");
}
