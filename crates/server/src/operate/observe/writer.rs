//! The thread that writes log lines. Nothing else waits for it. Lines that it cannot take in time, or cannot write, are
//! lost and counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::{collections::HashMap, io, io::Write, thread, time::Duration, time::Instant};

use countersign_core::values::shown::shown_text;
use countersign_store::machine::clock::{lock, uptime_nanos};
use tracing::{Event, Level, callsite::Identifier, field::Field, field::Visit};

use crate::metrics::Counter;
use crate::operate::observe::{line, line::Fields, line::Style};

/// Lines that can wait: 4 MiB at most.
const QUEUE: usize = 1_024;
/// How often to report what was left out, and to retry a log that failed.
const REPORT: Duration = Duration::from_secs(10);
/// After this long, a line that was not taken is unlikely to be taken soon.
const STUCK: Duration = Duration::from_secs(5);
/// Time for the lines that wait when the process ends.
const LAST_LINES: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub struct LogStats {
    pub written: Counter,
    /// Lines beyond the rate of their kind.
    pub left_out: Counter,
    /// Lines that came while too many others waited.
    pub overflowed: Counter,
    /// Lines that standard error did not take.
    pub unwritten: Counter,
    has_failed: AtomicBool,
    /// The time since which a line is being written, in nanoseconds of uptime; 0 if none is.
    writing_since: AtomicU64,
}

impl LogStats {
    /// Whether the log cannot be written: the last line was refused, or one has been waiting for seconds.
    pub fn is_failing(&self, now: Instant) -> bool {
        let since = self.writing_since.load(Ordering::Relaxed);
        let stuck = u64::try_from(STUCK.as_nanos()).unwrap_or(u64::MAX);
        let is_stuck = since != 0 && uptime_nanos(now).saturating_sub(since) >= stuck;
        is_stuck || self.has_failed.load(Ordering::Relaxed)
    }

    fn lost(&self) -> u64 {
        self.overflowed.get() + self.unwritten.get()
    }
}

#[derive(Debug)]
enum Message {
    Line(String),
    /// Dropped once all lines before it are written.
    Finish(SyncSender<()>),
}

#[derive(Debug, Clone)]
pub struct LogQueue {
    sender: SyncSender<Message>,
    pub(crate) stats: Arc<LogStats>,
}

impl LogQueue {
    /// Hands over a line. This never waits.
    pub fn put(&self, line: String) {
        if self.sender.try_send(Message::Line(line)).is_err() {
            self.stats.overflowed.add(1);
        }
    }

    /// Waits until the lines before it are written, for at most two seconds.
    pub fn finish(&self) {
        let until = Instant::now() + LAST_LINES;
        let (finished, wait) = sync_channel(0);
        let mut message = Message::Finish(finished);
        // While the queue is full, earlier lines are still to be written.
        while let Err(error) = self.sender.try_send(message) {
            let TrySendError::Full(back) = error else { return };
            if Instant::now() >= until {
                return;
            }
            message = back;
            thread::sleep(Duration::from_millis(10));
        }
        let _ = wait.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

/// The log of this process. Dropping it writes the lines that wait, for at most two seconds.
#[derive(Debug)]
#[must_use = "lines that wait are written when this is dropped"]
pub struct Logging(LogQueue);

impl Drop for Logging {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Starts the thread, which lasts as long as the process.
pub fn start_writer(
    sink: impl Write + Send + 'static,
    style: Style,
    flow: Arc<Flow>,
    stats: Arc<LogStats>,
) -> io::Result<(LogQueue, Logging)> {
    let (sender, queue) = sync_channel(QUEUE);
    let told = stats.lost();
    let writer = LogWriter { sink, style, flow, stats: Arc::clone(&stats), told, reported: Instant::now() };
    thread::Builder::new().name("log".to_owned()).spawn(move || writer.run(&queue))?;
    let queue = LogQueue { sender, stats };
    Ok((queue.clone(), Logging(queue)))
}

struct LogWriter<W> {
    sink: W,
    style: Style,
    flow: Arc<Flow>,
    stats: Arc<LogStats>,
    /// How many lost lines were reported.
    told: u64,
    reported: Instant,
}

impl<W: Write> LogWriter<W> {
    fn run(mut self, queue: &Receiver<Message>) {
        loop {
            match queue.recv_timeout(REPORT.saturating_sub(self.reported.elapsed())) {
                Ok(Message::Line(line)) => {
                    self.write(&line);
                }
                Ok(Message::Finish(finished)) => {
                    self.report();
                    drop(finished);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.reported.elapsed() >= REPORT {
                self.report();
            }
        }
    }

    /// Returns whether it was written.
    fn write(&mut self, line: &str) -> bool {
        let stats = &self.stats;
        stats.writing_since.store(uptime_nanos(Instant::now()).max(1), Ordering::Relaxed);
        let written = self.sink.write_all(line.as_bytes()).and_then(|()| self.sink.flush());
        stats.writing_since.store(0, Ordering::Relaxed);
        stats.has_failed.store(written.is_err(), Ordering::Relaxed);
        let count = if written.is_ok() { &stats.written } else { &stats.unwritten };
        count.add(1);
        written.is_ok()
    }

    /// Reports how many lines are missing.
    fn report(&mut self) {
        let seconds = self.reported.elapsed().as_secs().max(1);
        self.reported = Instant::now();
        for left_out in self.flow.take_left_out() {
            let message = format!("left out {} lines like this in the last {seconds} s", left_out.lines);
            let class = (left_out.class > 0).then(|| format!("{}xx", left_out.class));
            let fields = Fields::of(message, [("like", Some(left_out.like)), ("status", class)]);
            self.write(&line::write(self.style, Level::WARN, None, &fields));
        }
        let lost = self.stats.lost();
        if lost > self.told {
            let message = format!("{} log lines were lost: they could not be written", lost - self.told);
            // This line can be lost as well, which is not worth a line.
            if self.write(&line::write(self.style, Level::WARN, None, &Fields::of(message, []))) {
                self.told = lost;
            } else {
                self.told += 1;
            }
        }
    }
}

// Limits on how much is logged (D48): one for each kind of line, and one for all. Lines beyond them are counted.

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
    /// The kinds of lines. There are at most as many as places in the code that log, times the classes of answers.
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
    /// Whether anything is left. The line that uses up the rest can be larger than it.
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
    /// Returns whether there is room for a line of this kind, and counts the line if not. `now` is in nanoseconds of
    /// uptime.
    pub fn admits(&self, kind: &LineKind, now: u64) -> bool {
        let mut kinds = lock(&self.0);
        let has_room = kinds.all.has_room(OF_ALL, now);
        let of_kind = kinds.each.entry(kind.clone()).or_default();
        let is_admitted = has_room && of_kind.used.has_room(OF_A_KIND, now);
        of_kind.left_out += u64::from(!is_admitted);
        is_admitted
    }

    /// Counts a line of so many bytes, with this message.
    pub fn charge(&self, kind: &LineKind, bytes: usize, message: &str, now: u64) {
        let (mut kinds, bytes) = (lock(&self.0), bytes as u64);
        kinds.all.charge(OF_ALL, bytes, now);
        let of_kind = kinds.each.entry(kind.clone()).or_default();
        of_kind.used.charge(OF_A_KIND, bytes, now);
        if of_kind.like.is_empty() {
            of_kind.like = shown_text(message);
        }
    }

    /// What was left out since the last call.
    pub fn take_left_out(&self) -> Vec<LeftOut> {
        let mut kinds = lock(&self.0);
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
}
