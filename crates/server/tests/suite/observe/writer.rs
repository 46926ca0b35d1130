//! The thread that writes log lines.

use std::{io, io::Write, sync::Arc, sync::Condvar, sync::Mutex, time::Duration, time::Instant};

use countersign_server::operate::observe::writer::{LogQueue, start_writer};
use countersign_server::operate::observe::{LogStats, Logging, Style};
use countersign_store::machine::clock::uptime_nanos;

/// Lines that can wait.
const QUEUE: usize = 1_024;
const STUCK: Duration = Duration::from_secs(5);

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
    assert_eq!((stats.written.get(), stats.overflowed.get() + stats.unwritten.get()), (QUEUE as u64, 0));
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
    assert_eq!((stats.written.get(), stats.unwritten.get(), sink.text().as_str()), (0, 4, ""));
    sink.set(|state| state.is_full = false);
    queue.finish();
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
    assert_eq!(stats.overflowed.get(), 0, "the last that may wait");
    queue.put("one too many\n".to_owned());
    assert_eq!(stats.overflowed.get(), 1);
    assert!(!stats.is_failing(Instant::now()) && stats.is_failing(Instant::now() + STUCK));
    sink.set(|state| state.is_stuck = false);
    sink.wait_until(|state| state.text.lines().count() == QUEUE + 1);
    assert!(!stats.is_failing(Instant::now() + STUCK));
}
