//! The thread that writes log lines. Nothing else waits for it. Lines that it cannot take in time, or cannot write, are
//! lost and counted.

use std::{
    fmt,
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
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
    written: AtomicU64,
    left_out: AtomicU64,
    overflowed: AtomicU64,
    unwritten: AtomicU64,
    has_failed: AtomicBool,
    /// Since when a line is being written, in nanoseconds of uptime; 0 if none is.
    writing_since: AtomicU64,
}

impl LogStats {
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Lines beyond the rate of their kind.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Lines that came while too many others waited.
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// Lines that standard error did not take.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }

    /// Whether the log cannot be written: the last line was refused, or one has been waiting for seconds.
    pub fn is_failing(&self, now: Instant) -> bool {
        let since = self.writing_since.load(Ordering::Relaxed);
        let stuck = u64::try_from(STUCK.as_nanos()).unwrap_or(u64::MAX);
        let is_stuck = since != 0 && uptime_nanos(now).saturating_sub(since) >= stuck;
        is_stuck || self.has_failed.load(Ordering::Relaxed)
    }

    pub(super) fn note_left_out(&self) {
        self.left_out.fetch_add(1, Ordering::Relaxed);
    }

    fn lost(&self) -> u64 {
        self.overflowed() + self.unwritten()
    }
}

enum Message {
    Line(String),
    /// Dropped once all lines before it are written.
    Finish(SyncSender<()>),
}

#[derive(Clone)]
pub(super) struct LogQueue {
    sender: SyncSender<Message>,
    stats: Arc<LogStats>,
}

impl LogQueue {
    /// Never waits.
    pub(super) fn put(&self, line: String) {
        if self.sender.try_send(Message::Line(line)).is_err() {
            self.stats.overflowed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The log of this process. Dropping it writes the lines that wait, for at most two seconds.
#[must_use = "lines that wait are written when this is dropped"]
pub struct Logging(LogQueue);

impl Drop for Logging {
    fn drop(&mut self) {
        let until = Instant::now() + LAST_LINES;
        let (finished, wait) = sync_channel(0);
        let mut message = Message::Finish(finished);
        // While the queue is full, earlier lines are still to be written.
        while let Err(error) = self.0.sender.try_send(message) {
            let std::sync::mpsc::TrySendError::Full(back) = error else { return };
            if Instant::now() >= until {
                return;
            }
            message = back;
            thread::sleep(Duration::from_millis(10));
        }
        let _ = wait.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

impl fmt::Debug for Logging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logging")
    }
}

/// Starts the thread, which lasts as long as the process.
pub(super) fn start_writer(
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
        count.fetch_add(1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    /// What a test decides about a log, and what was written to it.
    #[derive(Clone, Default)]
    struct Sink(Arc<(Mutex<SinkState>, Condvar)>);

    #[derive(Default)]
    struct SinkState {
        text: String,
        is_full: bool,
        is_stuck: bool,
        waits: bool,
    }

    impl Sink {
        fn set(&self, change: impl FnOnce(&mut SinkState)) {
            change(&mut self.0.0.lock().unwrap());
            self.0.1.notify_all();
        }

        fn wait_until(&self, is: impl Fn(&SinkState) -> bool) {
            let state = self.0.0.lock().unwrap();
            let (state, waited) =
                self.0.1.wait_timeout_while(state, Duration::from_secs(20), |state| !is(state)).unwrap();
            assert!(!waited.timed_out(), "{}", state.text);
        }

        fn text(&self) -> String {
            self.0.0.lock().unwrap().text.clone()
        }
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut state = self.0.0.lock().unwrap();
            state.waits = true;
            self.0.1.notify_all();
            let mut state = self.0.1.wait_while(state, |state| state.is_stuck).unwrap();
            state.waits = false;
            if state.is_full {
                return Err(io::ErrorKind::StorageFull.into());
            }
            state.text.push_str(str::from_utf8(bytes).unwrap());
            self.0.1.notify_all();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start(sink: &Sink) -> (LogQueue, Logging, Arc<LogStats>) {
        let stats = Arc::<LogStats>::default();
        let started = start_writer(sink.clone(), Style::Text, Arc::default(), Arc::clone(&stats));
        let (queue, logging) = started.unwrap();
        (queue, logging, stats)
    }

    #[test]
    fn what_waits_is_written_when_the_log_ends() {
        let sink = Sink::default();
        let (queue, logging, stats) = start(&sink);
        for n in 0..QUEUE {
            queue.put(format!("{n}\n"));
        }
        drop(logging);
        assert_eq!(sink.text().lines().count(), QUEUE);
        assert_eq!((stats.written(), stats.lost()), (QUEUE as u64, 0));
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_told_of_when_it_works_again() {
        let sink = Sink::default();
        let (queue, logging, stats) = start(&sink);
        sink.set(|state| state.is_full = true);
        for _ in 0..3 {
            queue.put("lost\n".to_owned());
        }
        drop(logging);
        assert!(stats.is_failing(Instant::now()));
        // Three lines of the test, and the report about them.
        assert_eq!((stats.written(), stats.unwritten(), sink.text().as_str()), (0, 4, ""));
        sink.set(|state| state.is_full = false);
        drop(Logging(queue));
        assert!(!stats.is_failing(Instant::now()));
        assert!(
            sink.text().ends_with(" WARN 3 log lines were lost: they could not be written\n"),
            "{}",
            sink.text()
        );
    }

    #[test]
    fn a_log_that_is_stuck_takes_as_many_lines_as_may_wait_and_keeps_none_waiting() {
        uptime_nanos(Instant::now());
        let sink = Sink::default();
        let (queue, _logging, stats) = start(&sink);
        sink.set(|state| state.is_stuck = true);
        queue.put("first\n".to_owned());
        sink.wait_until(|state| state.waits);
        for n in 0..QUEUE {
            queue.put(format!("{n}\n"));
        }
        assert_eq!(stats.overflowed(), 0, "the last that may wait");
        queue.put("one too many\n".to_owned());
        assert_eq!(stats.overflowed(), 1);
        assert!(!stats.is_failing(Instant::now()) && stats.is_failing(Instant::now() + STUCK));
        sink.set(|state| state.is_stuck = false);
        sink.wait_until(|state| state.text.lines().count() == QUEUE + 1);
        assert!(!stats.is_failing(Instant::now() + STUCK));
    }
}
