//! The program under test: `countersign serve` as a process of its own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::{fs::File, net::SocketAddr, path::Path, path::PathBuf, sync::Mutex, sync::mpsc, time::Duration};

use tempfile::TempDir;

use super::{environment::clear_environment, git::Git, http, http::Reply, http::Request, reference};

const START: Duration = Duration::from_secs(30);

/// How the program is started. Nothing of the tester's own environment reaches it.
#[derive(Clone, Default)]
pub(crate) struct Launch {
    args: Vec<String>,
    env: Vec<(String, String)>,
    current_dir: Option<PathBuf>,
    /// Writing beyond the limit for the size of a file is an error, as on a full disk, and not the end of the process.
    survives_file_limit: bool,
    /// So many bytes for the data directory.
    small_disk: Option<usize>,
    log: LogEnd,
}

/// Where the log goes.
#[derive(Clone, Default)]
pub(crate) enum LogEnd {
    /// To the test, which reads all of it.
    #[default]
    Read,
    /// Into a pipe that is never read.
    Unread,
    File(PathBuf),
    /// Standard error is closed.
    Closed,
}

impl Launch {
    /// `serve` alone: no address, no data directory.
    pub(crate) fn bare() -> Self {
        Self::default().arg("serve")
    }

    /// `serve` on a free port of loopback with this data directory.
    pub(crate) fn serve(data_dir: &Path) -> Self {
        Self::bare().args(["--listen", "127.0.0.1:0"]).args(["--data-dir", path_text(data_dir)])
    }

    /// `mirror` of this server on a free port of loopback with this data directory.
    pub(crate) fn mirror(origin: &str, data_dir: &Path) -> Self {
        Self::default()
            .args(["mirror", origin, "--listen", "127.0.0.1:0"])
            .args(["--data-dir", path_text(data_dir)])
    }

    /// At an address that it keeps when it is started again.
    pub(crate) fn at(mut self, address: SocketAddr) -> Self {
        let flag = self.args.iter().position(|arg| arg == "--listen").expect("it listens somewhere");
        self.args[flag + 1] = address.to_string();
        self
    }

    pub(crate) fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    pub(crate) fn args<'a>(self, args: impl IntoIterator<Item = &'a str>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Gives the server a configuration file of this text, which lies beside its data directory.
    #[track_caller]
    pub(crate) fn configured(self, text: &str) -> Self {
        let path = Path::new(self.data_dir()).with_extension("toml");
        std::fs::write(&path, text).expect("a writable directory");
        self.args(["--config", path_text(&path)])
    }

    /// Starts a server with metrics on a free port ([`TestServer::metrics_address`]).
    pub(crate) fn with_metrics(self) -> Self {
        self.args(["--metrics-listen", "127.0.0.1:0"])
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn current_dir(mut self, dir: &Path) -> Self {
        self.current_dir = Some(dir.to_owned());
        self
    }

    pub(crate) fn surviving_file_limit(mut self) -> Self {
        self.survives_file_limit = true;
        self
    }

    /// The data directory is a file system of its own, which only the server sees.
    pub(crate) fn on_small_disk(mut self, bytes: usize) -> Self {
        self.small_disk = Some(bytes);
        self
    }

    fn data_dir(&self) -> &str {
        let flag = self.args.iter().position(|arg| arg == "--data-dir").expect("it has a data directory");
        &self.args[flag + 1]
    }

    pub(crate) fn with_log(mut self, log: LogEnd) -> Self {
        self.log = log;
        self
    }

    pub(crate) fn command(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_countersign");
        let shell = match (self.survives_file_limit, &self.log) {
            // What is ignored stays ignored in the program that takes the shell's place.
            (true, _) => Some("trap '' XFSZ; exec \"$0\" \"$@\""),
            (false, LogEnd::Closed) => Some("exec \"$0\" \"$@\" 2>&-"),
            (false, LogEnd::Read | LogEnd::Unread | LogEnd::File(_)) => None,
        };
        let mut command = Command::new(if shell.is_some() { "sh" } else { program });
        if let Some(script) = shell {
            command.args(["-c", script, program]);
        } else if let Some(bytes) = self.small_disk {
            let dir = self.data_dir();
            let script = format!(
                "mkdir -p '{dir}' && mount -t tmpfs -o size={bytes} none '{dir}' && exec \"$0\" \"$@\""
            );
            command = Command::new("unshare");
            command.args(["--map-root-user", "--mount", "sh", "-c", &script, program]);
        }
        command.args(&self.args).stdin(Stdio::null());
        clear_environment(&mut command);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(dir) = &self.current_dir {
            command.current_dir(dir);
        }
        command
    }

    /// Runs the program until it ends by itself.
    pub(crate) fn output(&self) -> Output {
        self.command().output().expect("the program starts")
    }

    /// What the program says on standard error when it refuses to start; it must not succeed.
    #[track_caller]
    pub(crate) fn refusal(&self) -> String {
        let mut child =
            self.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let (stdout, stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        // A program that serves instead of refusing would never end: its ready line ends the test.
        let mut ready = String::new();
        BufReader::new(stdout).read_line(&mut ready).expect("standard output is readable");
        if !ready.is_empty() {
            let _ = child.kill();
        }
        let mut said = String::new();
        BufReader::new(stderr).read_to_string(&mut said).expect("standard error is readable");
        let status = child.wait().expect("it ends");
        assert!(ready.is_empty(), "it serves although it should refuse: {ready}");
        assert!(status.code().is_some_and(|code| code != 0), "ended with {status}: {said}");
        assert!(!said.trim().is_empty() && !said.contains("panicked"), "not a clear error: {said:?}");
        said
    }

    /// Starts the program and waits for its first line, which has its address.
    #[track_caller]
    fn start(&self) -> Process {
        let stderr = match &self.log {
            LogEnd::Read | LogEnd::Unread | LogEnd::Closed => Stdio::piped(),
            LogEnd::File(path) => File::options().write(true).open(path).expect("a file to write to").into(),
        };
        let mut command = self.command();
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("the program starts");
        let log = match &self.log {
            LogEnd::Read => child.stderr.take().map(Log::of),
            // The child keeps its end of the pipe, or has none.
            LogEnd::Unread | LogEnd::Closed | LogEnd::File(_) => None,
        };
        let stdout = drain_lines(child.stdout.take().expect("piped"));
        match stdout.recv_timeout(START) {
            Ok(ready) => {
                Process { address: parse_ready(&ready), ready, stdout: Mutex::new(stdout), child, log }
            }
            Err(_) => {
                let _ = child.kill();
                let status = child.wait();
                let log = log.map(Log::read_to_end).unwrap_or_default();
                panic!("no ready line ({status:?}): {log}")
            }
        }
    }
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}

/// Reads a pipe to its end, so that the program never waits for a reader.
fn drain_lines(pipe: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
        }
    });
    receiver
}

/// What the program logs: the lines that are still to come, and those that were read.
struct Log(Mutex<(mpsc::Receiver<String>, String)>);

impl Log {
    fn of(pipe: impl std::io::Read + Send + 'static) -> Self {
        Self(Mutex::new((drain_lines(pipe), String::new())))
    }

    #[track_caller]
    fn await_words(&self, words: &str, times: usize) {
        let mut log = self.0.lock().expect("no reader has failed");
        let (lines, read) = &mut *log;
        while read.matches(words).count() < times {
            let Ok(line) = lines.recv_timeout(START) else { panic!("no {words:?} in the log: {read}") };
            *read += &line;
            read.push('\n');
        }
    }

    /// What follows these words in their line.
    #[track_caller]
    fn await_rest(&self, words: &str) -> String {
        self.await_words(words, 1);
        let log = self.0.lock().expect("no reader has failed");
        let rest = log.1.split(words).nth(1).and_then(|rest| rest.lines().next());
        rest.expect("the words were read").to_owned()
    }

    fn read_to_end(self) -> String {
        let (lines, mut read) = self.0.into_inner().expect("no reader has failed");
        for line in lines {
            read += &line;
            read.push('\n');
        }
        read
    }
}

fn parse_ready(line: &str) -> SocketAddr {
    let address = line.split_once("://").map(|(_, rest)| rest.split(' ').next().unwrap_or(rest));
    let address = address.unwrap_or_else(|| panic!("no address in the ready line: {line}"));
    address.trim_end_matches('/').parse().unwrap_or_else(|_| panic!("no address in the ready line: {line}"))
}

struct Process {
    child: Child,
    address: SocketAddr,
    /// The first line that it printed.
    ready: String,
    /// The lines after it.
    stdout: Mutex<mpsc::Receiver<String>>,
    log: Option<Log>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server with a data directory that lives as long as the test.
pub(crate) struct TestServer {
    launch: Launch,
    process: Option<Process>,
    dir: TempDir,
}

impl TestServer {
    /// A server in development mode on an empty data directory.
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::start_with(|launch| launch.arg("--dev"))
    }

    #[track_caller]
    pub(crate) fn start_with(adapt: impl FnOnce(Launch) -> Launch) -> Self {
        let mut server = Self::prepare(adapt);
        server.start_again();
        server
    }

    /// A server on a clone of this one's repository, which knows what the clone says and nothing else.
    #[track_caller]
    pub(crate) fn clone_mirror(&self) -> Self {
        let mut copy = Self::prepare(|launch| launch.arg("--dev"));
        std::fs::create_dir(copy.data_dir()).expect("a new directory");
        let target = copy.repository();
        Git::at(self.repository()).run(&["clone", "--quiet", "--mirror", ".", path_text(&target)]);
        copy.start_again();
        copy
    }

    /// A server that is not started yet: its data directory does not exist.
    pub(crate) fn prepare(adapt: impl FnOnce(Launch) -> Launch) -> Self {
        Self::prepare_as(|data_dir| adapt(Launch::serve(data_dir)))
    }

    /// A program that is not started yet, and is told of its data directory.
    pub(crate) fn prepare_as(launch: impl FnOnce(&Path) -> Launch) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let launch = launch(&dir.path().join("data"));
        Self { launch, process: None, dir }
    }

    /// Another program on the same data directory, from the next start on.
    pub(crate) fn change_launch(&mut self, launch: impl FnOnce(&Path) -> Launch) {
        self.launch = launch(&self.data_dir());
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.data_dir().join("repo.git")
    }

    pub(crate) fn launch(&self) -> &Launch {
        &self.launch
    }

    /// What its operator runs beside it, or while it is stopped.
    pub(crate) fn admin(&self, args: &[&str]) -> Launch {
        let launch = Launch::default().arg("admin").args(args.iter().copied());
        launch.args(["--data-dir", path_text(&self.data_dir())])
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    fn process(&self) -> &Process {
        self.process.as_ref().expect("the server runs")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.process().address
    }

    /// Where the running server has its metrics, as its log says.
    #[track_caller]
    pub(crate) fn metrics_address(&self) -> SocketAddr {
        let log = self.process().log.as_ref().expect("the test reads the log");
        let told = log.await_rest("metrics on http://");
        told.split('/').next().unwrap_or(&told).parse().unwrap_or_else(|_| panic!("no address: {told}"))
    }

    pub(crate) fn ready_line(&self) -> &str {
        &self.process().ready
    }

    /// Waits until the next line that it prints begins with these words.
    #[track_caller]
    pub(crate) fn await_output(&self, words: &str) {
        let line = self.process().stdout.lock().expect("no reader has failed").recv_timeout(START);
        assert!(line.as_ref().is_ok_and(|line| line.starts_with(words)), "{line:?}");
    }

    /// The answer, which must be one that the reference describes.
    #[track_caller]
    pub(crate) fn send(&self, request: &Request) -> Reply {
        let reply = http::send(self.address(), request);
        reference::check_reply(request, &reply);
        reply
    }

    pub(crate) fn get(&self, target: &str) -> Reply {
        self.send(&Request::get(target))
    }

    /// How large a file the running server may write from now on, in bytes, or `unlimited`.
    pub(crate) fn limit_files(&self, size: &str) {
        let id = self.process().child.id().to_string();
        let limit = format!("--fsize={size}:");
        let set = Command::new("prlimit").args(["--pid", &id, &limit]).status().expect("`prlimit` is there");
        assert!(set.success());
    }

    /// Sends a signal without waiting for what it does.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process().child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().expect("`kill` is there");
        assert!(sent.success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.process.take().expect("the server runs").child.wait().expect("the server ends")
    }

    /// Stops the server as an operator does.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Stops the server; everything that it has logged.
    pub(crate) fn stop_and_read_log(&mut self) -> String {
        self.signal("TERM");
        let mut process = self.process.take().expect("the server runs");
        process.child.wait().expect("the server ends");
        process.log.take().expect("the test reads the log").read_to_end()
    }

    /// Waits until the log has these words so many times.
    #[track_caller]
    pub(crate) fn await_log(&self, words: &str, times: usize) {
        self.process().log.as_ref().expect("the test reads the log").await_words(words, times);
    }

    /// Ends the server as a power cut does.
    pub(crate) fn kill9(&mut self) {
        let mut process = self.process.take().expect("the server runs");
        process.child.kill().expect("SIGKILL is sent");
        process.child.wait().expect("the server ends");
    }

    #[track_caller]
    pub(crate) fn start_again(&mut self) {
        assert!(self.process.is_none(), "the server runs already");
        self.process = Some(self.launch.start());
    }

    /// Starts the server, and ends it as a power cut does, ready or not.
    pub(crate) fn start_and_kill(&self, after: Duration) {
        assert!(self.process.is_none(), "the server runs already");
        let mut command = self.launch.command();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(after);
        child.kill().expect("SIGKILL is sent");
        child.wait().expect("the server ends");
    }

    #[track_caller]
    pub(crate) fn restart(&mut self) {
        assert_eq!(self.stop().code(), Some(0), "a server that is asked to stop exits with 0");
        self.start_again();
    }

    #[track_caller]
    pub(crate) fn crash_and_restart(&mut self) {
        self.kill9();
        self.start_again();
    }
}
