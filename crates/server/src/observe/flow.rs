//! How much is logged (D48): a limit for each kind of line, and one for all. The rest is counted.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use countersign_core::values::shown::shown_text;
use tracing::{
    Event,
    callsite::Identifier,
    field::{Field, Visit},
};

use countersign_store::clock::uptime_nanos;

/// About a hundred lines a second, and a thousand at once.
pub(super) const OF_A_KIND: Share = Share { bytes_per_second: 32 * 1024, burst: 256 * 1024 };
/// 8.9 MB in any minute.
pub(super) const OF_ALL: Share = Share { bytes_per_second: 128 * 1024, burst: 1024 * 1024 };

#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) bytes_per_second: u64,
    pub(super) burst: u64,
}

impl Share {
    fn nanos(self, bytes: u64) -> u64 {
        bytes.saturating_mul(1_000_000_000) / self.bytes_per_second
    }
}

/// Lines from the same place in the code about answers of the same class. So a flood of refusals takes no room from
/// successful changes, nor from failures.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LineKind {
    callsite: Identifier,
    /// The first digit of the status; 0 for lines without one.
    class: u8,
}

impl LineKind {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let mut class = StatusClass(0);
        event.record(&mut class);
        Self { callsite: event.metadata().callsite(), class: class.0 }
    }
}

struct StatusClass(u8);

impl Visit for StatusClass {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "status" {
            self.0 = u8::try_from(value / 100).unwrap_or(0);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

#[derive(Debug, Default)]
pub(super) struct Flow(Mutex<Kinds>);

#[derive(Debug, Default)]
struct Kinds {
    all: Used,
    /// As many as places in the code that log, times the classes of answers.
    each: HashMap<LineKind, KindFlow>,
}

#[derive(Debug, Default)]
struct KindFlow {
    used: Used,
    /// The message of its first line.
    like: String,
    /// Lines left out since the last report.
    left_out: u64,
}

/// The time, in nanoseconds of uptime, at which everything used has come back.
#[derive(Debug, Default)]
struct Used(u64);

impl Used {
    /// Whether anything is left. The line that uses it up can be larger.
    fn has_room(&self, share: Share, now: u64) -> bool {
        self.0 < now.saturating_add(share.nanos(share.burst))
    }

    fn charge(&mut self, share: Share, bytes: u64, now: u64) {
        self.0 = self.0.max(now).saturating_add(share.nanos(bytes));
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) like: String,
    pub(super) class: u8,
    pub(super) lines: u64,
}

impl Flow {
    /// Whether there is room for a line of this kind. If not, counts it.
    pub(super) fn admits(&self, kind: &LineKind) -> bool {
        self.admits_at(kind, uptime_nanos(Instant::now()))
    }

    fn admits_at(&self, kind: &LineKind, now: u64) -> bool {
        let mut kinds = self.lock();
        let has_room = kinds.all.has_room(OF_ALL, now);
        let of_kind = kinds.each.entry(kind.clone()).or_default();
        let is_admitted = has_room && of_kind.used.has_room(OF_A_KIND, now);
        of_kind.left_out += u64::from(!is_admitted);
        is_admitted
    }

    /// For a line of so many bytes, with this message.
    pub(super) fn charge(&self, kind: &LineKind, bytes: usize, message: &str) {
        self.charge_at(kind, bytes, message, uptime_nanos(Instant::now()));
    }

    fn charge_at(&self, kind: &LineKind, bytes: usize, message: &str, now: u64) {
        let (mut kinds, bytes) = (self.lock(), bytes as u64);
        kinds.all.charge(OF_ALL, bytes, now);
        let of_kind = kinds.each.entry(kind.clone()).or_default();
        of_kind.used.charge(OF_A_KIND, bytes, now);
        if of_kind.like.is_empty() {
            of_kind.like = shown_text(message);
        }
    }

    /// What was left out since the last call.
    pub(super) fn take_left_out(&self) -> Vec<LeftOut> {
        let mut kinds = self.lock();
        let left_out = kinds.each.iter_mut().filter(|(_, of_kind)| of_kind.left_out > 0);
        let mut left_out: Vec<_> = left_out
            .map(|(kind, of_kind)| {
                let lines = std::mem::take(&mut of_kind.left_out);
                LeftOut { like: of_kind.like.clone(), class: kind.class, lines }
            })
            .collect();
        left_out.sort_by(|a, b| (&a.like, a.class).cmp(&(&b.like, b.class)));
        left_out
    }

    /// Nothing panics while this is locked.
    fn lock(&self) -> MutexGuard<'_, Kinds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing::Subscriber;
    use tracing_subscriber::{
        Layer,
        layer::{Context, SubscriberExt as _},
    };

    use super::*;

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
                if flow.admits_at(kind, now) {
                    flow.charge_at(kind, 512, "answered", now);
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
        assert_ne!(kinds[0].callsite, kinds[3].callsite);
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
}
