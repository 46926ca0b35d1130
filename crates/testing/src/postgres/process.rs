//! The processes of one cluster: their log, their signals, and what ends them with the test program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::{fs::MetadataExt as _, process::CommandExt as _};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{env, fs, path::Path, path::PathBuf, time::Duration, time::Instant};

use tempfile::TempDir;

/// The longest time that anything here takes: a test that would hang fails instead.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

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
        let end = Instant::now() + TIMEOUT;
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
        let end = Instant::now() + TIMEOUT;
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

// Finds PostgreSQL's programs, and the user that runs them.

/// Names a directory with the programs of one PostgreSQL.
const OVERRIDE: &str = "COUNTERSIGN_POSTGRES";
/// Makes its absence a failure.
const NEEDED: &str = "COUNTERSIGN_NEED_POSTGRES";

#[derive(Debug, Clone)]
pub(super) struct Programs {
    dir: PathBuf,
    /// The user for PostgreSQL, which refuses to run as root.
    user: Option<LentUser>,
}

#[derive(Debug, Clone, Copy)]
struct LentUser {
    user: u32,
    group: u32,
}

impl Programs {
    pub(super) fn find() -> Option<Self> {
        if let Some(dir) = env::var_os(OVERRIDE).map(PathBuf::from) {
            assert!(is_complete(&dir), "{OVERRIDE}={} has no initdb, postgres and psql", dir.display());
            return Some(Self { dir, user: user() });
        }
        let Some(dir) = on_path().or_else(newest_package) else {
            assert!(env::var_os(NEEDED).is_none(), "PostgreSQL is not installed, and {NEEDED} is set");
            return None;
        };
        Some(Self { dir, user: user() })
    }

    /// A command for one of the programs, with nothing of the tester's environment that would lead it elsewhere.
    pub(super) fn command(&self, name: &str) -> Command {
        self.any_command(&self.dir.join(name))
    }

    /// A command for any program, as the user that owns the data.
    pub(super) fn any_command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default()).env("LC_ALL", "C");
        command.current_dir("/").stdin(Stdio::null());
        if let Some(LentUser { user, group }) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    pub(super) fn give(&self, path: &Path) {
        if let Some(LentUser { user, group }) = self.user {
            std::os::unix::fs::chown(path, Some(user), Some(group)).expect("root gives its files away");
        }
    }
}

/// Runs a command that must succeed; what it says on standard output.
#[track_caller]
pub(super) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(super) fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{} {}{}", output.status, text(&output.stdout), text(&output.stderr))
}

fn is_complete(dir: &Path) -> bool {
    ["initdb", "postgres", "psql", "pg_basebackup"].iter().all(|name| dir.join(name).is_file())
}

/// Links in `PATH` lead to the directory that has all programs.
fn on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let found = env::split_paths(&path).filter_map(|dir| dir.join("initdb").canonicalize().ok());
    found.filter_map(|initdb| initdb.parent().map(Path::to_owned)).find(|dir| is_complete(dir))
}

/// Finds the newest version. Debian keeps the programs of each version out of `PATH`; so does Red Hat.
fn newest_package() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let red_hat = fs::read_dir("/usr").into_iter().flatten().flatten();
    let red_hat = red_hat.filter(|entry| entry.file_name().to_string_lossy().starts_with("pgsql-"));
    let version = |dir: &PathBuf| {
        let name = dir.file_name()?.to_string_lossy().into_owned();
        name.trim_start_matches("pgsql-").parse::<u32>().ok()
    };
    let dirs = debian.chain(red_hat).map(|entry| entry.path());
    let newest = dirs.filter(|dir| is_complete(&dir.join("bin"))).max_by_key(version);
    newest.map(|dir| dir.join("bin"))
}

/// The user `nobody`, if we are root. It owns no cluster that is there, unlike `postgres`.
fn user() -> Option<LentUser> {
    let we_are_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !we_are_root {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(|id| id.parse().ok());
        Some(LentUser { user: numbers.next()??, group: numbers.next()?? })
    };
    Some(ids("nobody").or_else(|| ids("postgres")).expect("a user other than root, such as nobody"))
}

// A data directory that is made once for a test program. Each cluster starts from a copy.

/// The role that connects in tests. It owns the database and may do nothing else.
pub const ROLE: &str = "countersign";
pub const DATABASE: &str = "countersign";
pub const PASSWORD: &str = "for-tests-only";

#[derive(Debug)]
pub(super) struct Template {
    pub(super) programs: Programs,
    data: PathBuf,
    /// A static is never dropped: this removes the directory when the test program ends.
    _watch: Watch,
}

impl Template {
    pub(super) fn get() -> Option<&'static Self> {
        static TEMPLATE: OnceLock<Option<Template>> = OnceLock::new();
        let template = TEMPLATE.get_or_init(|| Programs::find().map(Self::make)).as_ref();
        if template.is_none() {
            println!("skipped: PostgreSQL is not installed");
        }
        template
    }

    fn make(programs: Programs) -> Self {
        let dir = new_dir(&programs);
        let watch = Watch::removing(dir.path());
        // From here on the watch removes it.
        let data = dir.keep().join("data");
        let mut initdb = programs.command("initdb");
        initdb.arg("-D").arg(&data).args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]);
        run(initdb.args(["--no-sync", "--wal-segsize=1"]));
        let mut single = programs.command("postgres");
        single.arg("--single").arg("-D").arg(&data).args(["-F", "-c", "password_encryption=scram-sha-256"]);
        single.arg("postgres").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        feed(
            &mut single,
            &format!(
                "create role {ROLE} login password '{PASSWORD}'\n\
                 create database {DATABASE} owner {ROLE}\n"
            ),
        );
        Self { programs, data, _watch: watch }
    }

    pub(super) fn copy_to(&self, data: &Path) {
        run(self.programs.any_command(Path::new("cp")).arg("-a").arg(&self.data).arg(data));
    }
}

/// A temporary directory that belongs to the user who runs PostgreSQL.
pub(super) fn new_dir(programs: &Programs) -> TempDir {
    let dir = TempDir::with_prefix("pg").expect("a temporary directory");
    programs.give(dir.path());
    dir
}
