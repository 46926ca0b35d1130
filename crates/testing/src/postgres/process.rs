//! The processes of one cluster: their log, their signals, and what ends them with the test program.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::programs::{Programs, said};

/// The longest time that anything here takes: a test that would hang fails instead.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Runs shell commands when the test program ends, however it ends.
#[derive(Debug)]
pub(super) struct Watch(Child);

impl Watch {
    pub(super) fn removing(dir: &Path) -> Self {
        Self::start("rm -rf -- \"$1\"", dir, "")
    }

    /// Ends the process, waits for up to ten seconds until it has ended, and removes the directory.
    fn ending(process: u32, dir: &Path) -> Self {
        let commands = "kill -s QUIT $2; i=0; while kill -s 0 $2 && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done; \
                        rm -rf -- \"$1\"";
        Self::start(commands, dir, &process.to_string())
    }

    /// The shell waits for the end of a pipe that this process alone holds open.
    fn start(commands: &str, dir: &Path, process: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("read -r _; {commands}"), "sh"]).arg(dir).arg(process).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(shell.spawn().expect("`sh` is there"))
    }
}

/// Ends the watch without running the commands.
impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command that must succeed, with this on its standard input.
#[track_caller]
pub(super) fn feed(command: &mut Command, input: &str) {
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{command:?}: {}", said(&output));
}

pub(super) fn send_signal(name: &str, processes: &[u32]) -> bool {
    let ids = processes.iter().map(ToString::to_string);
    let mut kill = Command::new("kill");
    // Some may have ended meanwhile.
    kill.args(["-s", name]).args(ids).stderr(Stdio::null());
    kill.status().expect("`kill` is there").success()
}

/// What a cluster has logged, over all its starts.
#[derive(Debug, Default, Clone)]
pub(super) struct ClusterLog(Arc<(Mutex<LogText>, Condvar)>);

#[derive(Debug, Default)]
struct LogText {
    text: String,
    /// Pipes that are read into it. That of a process that has ended may be among them for a moment.
    pipes: usize,
}

impl ClusterLog {
    fn lock(&self) -> MutexGuard<'_, LogText> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn text(&self) -> String {
        self.lock().text.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().text.len()
    }

    fn read_from(&self, pipe: impl std::io::Read + Send + 'static) {
        self.lock().pipes += 1;
        let log = self.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                log.lock().text += &format!("{}\n", String::from_utf8_lossy(&line));
                log.0.1.notify_all();
            }
            log.lock().pipes -= 1;
            log.0.1.notify_all();
        });
    }

    /// Waits until the log has these words behind its first `from` bytes; false if it ends before.
    pub(super) fn await_words(&self, words: &str, from: usize) -> bool {
        let end = Instant::now() + PATIENCE;
        let mut log = self.lock();
        while !log.text[from..].contains(words) {
            let left = end.saturating_duration_since(Instant::now());
            if log.pipes == 0 || left.is_zero() {
                return false;
            }
            log = self.0.1.wait_timeout(log, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// A running cluster: its first process, which started the others.
#[derive(Debug)]
pub(super) struct Postmaster {
    child: Child,
    watch: Option<Watch>,
}

impl Postmaster {
    /// Starts it and waits until it takes connections; `None` if it ended before.
    pub(super) fn start(programs: &Programs, dir: &Path, log: &ClusterLog) -> Option<Self> {
        let from = log.len();
        let mut command = programs.command("postgres");
        command.arg("-D").arg(dir.join("data")).process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("`postgres` starts");
        log.read_from(child.stderr.take().expect("piped"));
        let watch = Some(Watch::ending(child.id(), dir));
        let postmaster = Self { child, watch };
        log.await_words("database system is ready to accept", from).then_some(postmaster)
    }

    /// The processes of this cluster that there are now.
    fn processes(&self) -> Vec<u32> {
        let first = self.child.id();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mut processes: Vec<_> = ids.filter(|id| parent_of(*id) == Some(first)).collect();
        processes.insert(0, first);
        processes
    }

    /// The first one stops first, so it starts no more of them.
    pub(super) fn pause(&self) {
        send_signal("STOP", &[self.child.id()]);
        send_signal("STOP", &self.processes());
    }

    pub(super) fn resume(&self) {
        send_signal("CONT", &self.processes());
    }

    /// Sends a signal that ends the cluster, and waits for that.
    pub(super) fn end(mut self, signal: &str) {
        // A paused process ends when it goes on.
        self.resume();
        self.end_by(signal);
    }

    fn end_by(&mut self, signal: &str) {
        if self.watch.take().is_none() {
            return;
        }
        send_signal(signal, &[self.child.id()]);
        let end = Instant::now() + PATIENCE;
        // There is no event for the end of a process in std that also has an end of its own.
        while self.child.try_wait().is_ok_and(|status| status.is_none()) {
            if Instant::now() > end {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        if self.watch.is_some() {
            self.resume();
            self.end_by("QUIT");
        }
    }
}

/// The number behind the name in parentheses and the state, in Linux's `/proc/ID/stat`.
fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
