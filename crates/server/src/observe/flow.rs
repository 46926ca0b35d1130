//! How much is logged (D48): a limit for each kind of line, and one for all. The rest is counted.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use countersign_core::values::shown::shown_text;
use tracing::{
    Event,
    callsite::Identifier,
    field::{Field, Visit},
};

/// About a hundred lines a second, and a thousand at once.
pub const OF_A_KIND: LogRate = LogRate { bytes_per_second: 32 * 1024, burst: 256 * 1024 };
/// 8.9 MB in any minute.
pub const OF_ALL: LogRate = LogRate { bytes_per_second: 128 * 1024, burst: 1024 * 1024 };

#[derive(Debug, Clone, Copy)]
pub struct LogRate {
    pub bytes_per_second: u64,
    pub burst: u64,
}

impl LogRate {
    fn nanos(self, bytes: u64) -> u64 {
        bytes.saturating_mul(1_000_000_000) / self.bytes_per_second
    }
}

/// Lines from the same place in the code about answers of the same class. So a flood of refusals takes no room from
/// successful changes, nor from failures.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LineKind {
    callsite: Identifier,
    /// The first digit of the status; 0 for lines without one.
    class: u8,
}

impl LineKind {
    pub fn of(event: &Event<'_>) -> Self {
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
pub struct Flow(Mutex<Kinds>);

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
    fn has_room(&self, rate: LogRate, now: u64) -> bool {
        self.0 < now.saturating_add(rate.nanos(rate.burst))
    }

    fn charge(&mut self, rate: LogRate, bytes: u64, now: u64) {
        self.0 = self.0.max(now).saturating_add(rate.nanos(bytes));
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub like: String,
    pub class: u8,
    pub lines: u64,
}

impl Flow {
    /// Whether there is room for a line of this kind. If not, counts it. `now` is in nanoseconds of uptime.
    pub fn admits(&self, kind: &LineKind, now: u64) -> bool {
        let mut kinds = self.lock();
        let has_room = kinds.all.has_room(OF_ALL, now);
        let of_kind = kinds.each.entry(kind.clone()).or_default();
        let is_admitted = has_room && of_kind.used.has_room(OF_A_KIND, now);
        of_kind.left_out += u64::from(!is_admitted);
        is_admitted
    }

    /// For a line of so many bytes, with this message.
    pub fn charge(&self, kind: &LineKind, bytes: usize, message: &str, now: u64) {
        let (mut kinds, bytes) = (self.lock(), bytes as u64);
        kinds.all.charge(OF_ALL, bytes, now);
        let of_kind = kinds.each.entry(kind.clone()).or_default();
        of_kind.used.charge(OF_A_KIND, bytes, now);
        if of_kind.like.is_empty() {
            of_kind.like = shown_text(message);
        }
    }

    /// What was left out since the last call.
    pub fn take_left_out(&self) -> Vec<LeftOut> {
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
