//! The thread that writes log lines. Nothing else waits for it. Lines that it cannot take in time, or cannot write, are
//! lost and counted.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use tracing::Level;

use super::{
    fields::Fields,
    flow::Flow,
    line::{self, Style},
};
use crate::counting::Counter;
use countersign_store::clock::uptime_nanos;

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
    /// Since when a line is being written, in nanoseconds of uptime; 0 if none is.
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
    pub(super) stats: Arc<LogStats>,
}

impl LogQueue {
    /// Never waits.
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
