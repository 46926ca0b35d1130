//! The server, and the bare handler to compare it with. Each is its own process, so that its memory and time are not
//! mixed with those of the load. Both are this program again, with a hidden argument.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{ffi::OsStr, fs, fs::File, io, net::SocketAddr, path::Path, sync::Arc, thread};

use axum::{Router, routing::get};
use countersign_core::values::{key::SecretKey, verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_log::CheckpointSigner;
use countersign_server::operate::config::{GivenSettings, LogFormat, LogLevel, LogSettings, Settings};
use countersign_server::operate::observe;
use countersign_server::serve::start;
use countersign_store::machine::clock::Clock;
use serde::Serialize;
use tokio::{net::TcpListener, runtime::Builder, runtime::Runtime};

use crate::Failure;

/// Works even if the program was rebuilt since it started.
const OWN_PROGRAM: &str = "/proc/self/exe";
const READY: &str = "ready ";
const PUBLISHES: &str = "publishes ";
/// The unit of times in `/proc/PID/stat`, the same on every Linux.
const TICK: Duration = Duration::from_millis(10);
const STOP_TIME: Duration = Duration::from_secs(60);

pub(crate) fn settings(data_dir: &Path) -> Result<Settings, Failure> {
    let given = GivenSettings {
        listen: Some(([127, 0, 0, 1], 0).into()),
        data_dir: Some(data_dir.to_owned()),
        dev: Some(true),
        ..GivenSettings::default()
    };
    Ok(Settings::resolve(given)?)
}

/// The runtime of `countersign serve`.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

/// A log without witnesses, with a key that is not secret.
fn log_settings(data_dir: &Path) -> Result<LogSettings, Failure> {
    let secret = SecretKey::from_seed(&[7; 32]);
    let origin = "bench.example/log";
    let key = VerifierKey::new(origin, KeyKind::Log, secret.public_key())?;
    Ok(LogSettings {
        origin: origin.to_owned(),
        key_file: data_dir.join("not-read"),
        signer: Some(Arc::new(CheckpointSigner::with_key(key, secret))),
        checkpoint_every: Duration::from_secs(5),
        heartbeat_every: Duration::from_secs(60),
        witnesses: None,
    })
}

/// Serves `data_dir` until standard input ends.
pub(crate) fn serve(data_dir: &Path, keeps_log: bool) -> Result<(), Failure> {
    let _logging = observe::start_logging(LogFormat::Text, LogLevel::default())?;
    runtime()?.block_on(async {
        let log = keeps_log.then(|| log_settings(data_dir)).transpose()?;
        let settings = Settings { log, ..settings(data_dir)? };
        let running = start::start(settings, Clock::system()).await?;
        println!("{READY}{}", running.address);
        wait_for_end_of_input().await?;
        println!("{PUBLISHES}{}", running.app().store.publishes());
        Ok(tokio::time::timeout(STOP_TIME, running.stop()).await??)
    })
}

/// The limit of the HTTP library: a handler that answers 2 KB from memory.
pub(crate) fn serve_bare() -> Result<(), Failure> {
    static CONTENT: [u8; 2_048] = [b'x'; 2_048];
    runtime()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{READY}{}", listener.local_addr()?);
        let router = Router::new().route("/", get(async || CONTENT.as_slice()));
        tokio::select! {
            served = axum::serve(listener, router) => Ok(served?),
            ended = wait_for_end_of_input() => ended,
        }
    })
}

async fn wait_for_end_of_input() -> Result<(), Failure> {
    tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}

/// One of the two, as the load sees it.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    /// From the start of the process to the line that says that it is ready.
    pub(crate) started_in: Duration,
}

#[derive(Clone, Copy, Serialize)]
pub(crate) struct Memory {
    pub(crate) resident_bytes: u64,
    /// The part that is mapped from files, mostly packs. The system frees it when others need the memory.
    pub(crate) mapped_bytes: u64,
    pub(crate) peak_bytes: u64,
}

impl Process {
    /// The log goes to a file below `beside`, like a service's log.
    pub(crate) fn start_server(data_dir: &Path, keeps_log: bool, beside: &Path) -> Result<Self, Failure> {
        let log = beside.join("server.log");
        let mut arguments: Vec<&OsStr> = vec!["--serve".as_ref(), data_dir.as_os_str()];
        if keeps_log {
            arguments.insert(0, "--log".as_ref());
        }
        let start = Self::start(&arguments, File::create(&log)?.into());
        start.map_err(|error| format!("{error}\n{}", fs::read_to_string(&log).unwrap_or_default()).into())
    }

    pub(crate) fn start_bare() -> Result<Self, Failure> {
        Self::start(&["--bare".as_ref()], Stdio::inherit())
    }

    fn start(arguments: &[&OsStr], log: Stdio) -> Result<Self, Failure> {
        let begun = Instant::now();
        let mut command = Command::new(OWN_PROGRAM);
        let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or("the server has no output")?;
        let (mut output, mut line) = (BufReader::new(output), String::new());
        output.read_line(&mut line)?;
        let started_in = begun.elapsed();
        let Some(address) = line.trim_end().strip_prefix(READY) else {
            let status = child.wait()?;
            return Err(format!("the server did not start: {status}").into());
        };
        Ok(Self { address: address.parse()?, child, output, started_in })
    }

    pub(crate) fn memory(&self) -> Result<Memory, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = |name: &str| -> Result<u64, Failure> {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = value.and_then(|value| value.trim().strip_suffix(" kB"));
            Ok(kib.ok_or_else(|| format!("no {name} in /proc/PID/status"))?.parse::<u64>()? * 1_024)
        };
        Ok(Memory {
            resident_bytes: field("VmRSS:")?,
            mapped_bytes: field("RssFile:")?,
            peak_bytes: field("VmHWM:")?,
        })
    }

    /// The processor time that it has used, in user and in kernel mode.
    pub(crate) fn cpu_time(&self) -> Result<Duration, Failure> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name in parentheses can contain spaces. These are the 14th and 15th fields.
        let (_, fields) = stat.rsplit_once(')').ok_or("/proc/PID/stat has no name in it")?;
        let mut ticks = 0;
        for field in fields.split_whitespace().skip(11).take(2) {
            ticks += field.parse::<u32>()?;
        }
        Ok(TICK * ticks)
    }

    /// Waits until it has done nothing for half a second. The server folds packs after the start and after the last
    /// answer.
    pub(crate) fn wait_until_idle(&self) -> Result<(), Failure> {
        let give_up = Instant::now() + STOP_TIME;
        let mut before = self.cpu_time()?;
        while Instant::now() < give_up {
            thread::sleep(Duration::from_millis(500));
            let now = self.cpu_time()?;
            if now - before <= TICK {
                break;
            }
            before = now;
        }
        Ok(())
    }

    /// Ends a server in order. Returns how many rounds of fsync its commits took.
    pub(crate) fn stop(mut self) -> Result<u64, Failure> {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest)?;
        let status = self.child.wait()?;
        let publishes = rest.lines().find_map(|line| line.strip_prefix(PUBLISHES));
        match publishes {
            Some(count) if status.success() => Ok(count.parse()?),
            Some(_) | None => Err(format!("the server did not stop in order: {status}").into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After `stop` both fail, as expected.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
