//! `countersign serve`, `countersign mirror` and `countersign witness`

mod check;

use std::{
    env, future::pending, io, io::Write as _, os::unix::process::CommandExt as _, path::Path, path::PathBuf,
    process::Command, time::Duration,
};

use countersign_core::log::policy::Policy;
use countersign_core::values::bounds::{LOG_LISTS, POLICY_BYTES};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey, VerifierKeyError};
use countersign_log::CheckpointSigner;
use countersign_server::follow::{network::LogListSource, witness::WitnessSettings};
use countersign_server::operate::{config::GivenSettings, config::LogFormat, config::Settings, observe};
use countersign_server::serve::{start, start::Running};
use countersign_store::machine::clock::Clock;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::args::{GlobalArgs, WitnessArgs, WitnessInitArgs, WitnessKeyType};
use crate::commands::{keygen::check_absent, keygen::write_pair, serve::check::read_log_key};
use crate::keys::{SecretBytes, witness_key::WitnessKey, witness_key::generate_ml_dsa};
use crate::words::{error::CliError, error::add_suffix, error::shown_path, output::Output};
use crate::{client::session, keys, settings::config_dir::read_bounded};

/// How much longer than its fetches a request under way may take, once the signal to stop came.
const DRAIN_MARGIN: Duration = Duration::from_secs(15);
/// How long a server that starts can take until it says why it is not ready.
const READY_SOON: Duration = Duration::from_secs(1);

pub(crate) fn run(given: GivenSettings, output: Output) -> Result<(), CliError> {
    if given.check == Some(true) {
        return check::run(given, output);
    }
    let settled = limit_allocator();
    let file = GivenSettings::read(given.config.as_deref());
    let (file_format, file_level) = match &file {
        Ok(file) => (file.log_format, file.log_level),
        Err(_) => (given.config.as_deref().and_then(GivenSettings::find_log_format), None),
    };
    let format = given.log_format.or(file_format).unwrap_or_default();
    let level = given.log_level.or(file_level).unwrap_or_default();
    let logging = observe::start_logging(format, level).map_err(broken("the log cannot be started"))?;
    if let Err(error) = settled {
        tracing::warn!(%error, "the server cannot limit what the allocator keeps: it can take more memory");
    }
    let served = file.map_err(CliError::from).and_then(|file| run_configured(given.or(file), output));
    match (served, format) {
        // A log of JSON has nothing else in it.
        (Err(error), LogFormat::Json) if !output.is_json() => {
            let text = error.to_string();
            // A line of the log has no line breaks: what stands below the first line has a field of its own.
            let (text, below) =
                text.split_once('\n').map_or((&*text, None), |(text, rest)| (text, Some(rest)));
            let detail = below.map(|below| below.lines().map(str::trim).collect::<Vec<_>>().join("; "));
            let source = (!error.causes().is_empty()).then(|| error.causes().join(": "));
            tracing::error!(error = text, detail, source, hint = error.hint(), "the server cannot run");
            drop(logging);
            std::process::exit(error.kind().exit_code().into())
        }
        (served, LogFormat::Text | LogFormat::Json) => served,
    }
}

fn run_configured(given: GivenSettings, output: Output) -> Result<(), CliError> {
    let mut settings = Settings::resolve(given)?;
    read_log_key(&mut settings, output)?;
    let runtime = session::runtime()?;
    let served = runtime.block_on(serve(settings));
    // Not waiting for what may still hang, such as a name that is being resolved.
    runtime.shutdown_background();
    served
}

async fn serve(settings: Settings) -> Result<(), CliError> {
    let mut signals = Signals::listen()?;
    let mut hangup = signal(SignalKind::hangup()).map_err(broken("signals cannot be received"))?;
    let (dev, drain) = (settings.dev, settings.timeouts.total + DRAIN_MARGIN);
    let running = tokio::select! {
        running = start::start(settings, Clock::system()) => running?,
        () = signals.next() => return Ok(()),
    };
    let announcing = async {
        if let Err(error) = announce(&running, dev).await {
            tracing::warn!(%error, "the ready line could not be printed to standard output");
        }
        pending::<()>().await;
    };
    let waiting = async {
        loop {
            tokio::select! {
                () = signals.next() => break,
                // A user who tries things out and closes the terminal leaves no server behind.
                _ = hangup.recv() => if dev && !running.is_tls() { break } else { reload(&running) },
            }
        }
    };
    tokio::select! {
        () = waiting => {}
        () = announcing => {}
    }
    tracing::info!("stopping: requests under way are finished first");
    tokio::select! {
        stopped = running.stop() => stopped.map_err(broken("the server ended with an error"))?,
        () = signals.next() => tracing::warn!("stopped at once, on a second signal"),
        () = tokio::time::sleep(drain) => tracing::warn!("some requests did not finish in time"),
    }
    Ok(())
}

/// Reads certificate, key and lists of logs again, on SIGHUP. What cannot be read leaves the server as it was.
fn reload(running: &Running) {
    running.reload_lists();
    match running.reload_certificate() {
        Ok(true) => tracing::info!("certificate and key were read again"),
        Ok(false) => tracing::info!("SIGHUP: there is no certificate to read again"),
        Err(error) => {
            let source = std::error::Error::source(&error).map(tracing::field::display);
            tracing::error!(%error, source, "the new certificate cannot be used: the old one stays");
        }
    }
}

/// One line on standard output, for people and for scripts that wait for it. A server that is not ready soon says so in
/// a line before it (D247).
async fn announce(running: &Running, dev: bool) -> io::Result<()> {
    let note = if dev { " (development mode: fetches from loopback, no rate limits)" } else { "" };
    if let Some(address) = running.metrics_address {
        tracing::info!("metrics on http://{address}/metrics");
    }
    let scheme = if running.is_tls() { "https" } else { "http" };
    let url = format!("{scheme}://{}{note}", running.address);
    if timeout(READY_SOON, running.await_ready()).await.is_err() {
        if let Err(reason) = running.app().readiness() {
            print_line(&format!("Countersign listens on {url} but is not ready yet: {reason}"))?;
        }
        running.await_ready().await;
    }
    print_line(&format!("Countersign is ready on {url}"))
}

fn print_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Waits until Ctrl-C or SIGTERM.
pub(crate) async fn wait_for_signal() -> Result<(), CliError> {
    Signals::listen()?.next().await;
    Ok(())
}

/// Ctrl-C and SIGTERM. Registered before the server is ready, so that none is missed.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> Result<Self, CliError> {
        let listen = |kind| signal(kind).map_err(broken("signals cannot be received"));
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn broken(what: &'static str) -> impl FnOnce(io::Error) -> CliError {
    move |source| CliError::other(what, "the log above may say more").because(source)
}

// `countersign witness`, and what an operator does for one.

const NAME_HINT: &str = "something like witness.example.org is usual: no spaces, and no +";

/// Runs `countersign witness`.
pub(crate) fn witness(global: &GlobalArgs, args: WitnessArgs, output: Output) -> Result<(), CliError> {
    let path = key_path(global)?;
    let key = WitnessKey::load(path, output)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => key.read_name(path)?.ok_or_else(|| {
            let message = format!("the key {} has no name in it", shown_path(path));
            CliError::usage(message, "pass --name NAME")
        })?,
    };
    let mut keys = vec![key];
    if let Some(path) = &args.ml_dsa_key {
        keys.push(load_second(path, &name, &args, &keys, output)?);
    }
    let signers = keys.into_iter().map(|key| key.into_signer(&name)).collect::<Result<_, _>>();
    let settings = WitnessSettings {
        signers: signers.map_err(|error| {
            CliError::usage(format!("a witness cannot be called `{name}`: {error}"), NAME_HINT)
        })?,
        log_key: args.log_key.clone(),
        logs: args.policy.as_deref().map(read_policy_logs).transpose()?.unwrap_or_default(),
        lists: read_lists(&args.log_list)?,
        is_polling: args.poll,
    };
    run(args.into_settings(settings), output)
}

/// The second key: one of each type, and both of one witness.
fn load_second(
    path: &Path,
    name: &str,
    args: &WitnessArgs,
    first: &[WitnessKey],
    output: Output,
) -> Result<WitnessKey, CliError> {
    let shown = shown_path(path);
    let key = WitnessKey::load(path, output)?;
    let written = if args.name.is_none() { key.read_name(path)? } else { None };
    if let Some(other) = written.filter(|written| written != name) {
        let message =
            format!("the key {shown} is that of the witness `{other}`, and the other one that of `{name}`");
        return Err(CliError::usage(message, "a witness has one name: pass --name NAME, or another key"));
    }
    match (key, first) {
        (key @ WitnessKey::MlDsa { .. }, [WitnessKey::Ed25519(_)]) => Ok(key),
        (WitnessKey::MlDsa { .. } | WitnessKey::Ed25519(_), _) => Err(CliError::usage(
            format!("{shown} is not a second key of another type"),
            "pass an Ed25519 key as --key and an ML-DSA-44 key as --ml-dsa-key, or the only key as --key",
        )),
    }
}

/// A new key of a witness, and what becomes of it.
struct MadeKey {
    path: PathBuf,
    private: SecretBytes,
    /// What stands in the file with the public half.
    line: String,
    key: VerifierKey,
}

impl MadeKey {
    fn make(path: PathBuf, name: &str, is_ml_dsa: bool) -> Result<Self, CliError> {
        let bad_name = |error: VerifierKeyError| CliError::usage(error.to_string(), NAME_HINT);
        if is_ml_dsa {
            let (private, secret) = generate_ml_dsa(name)?;
            let key = CheckpointSigner::with_ml_dsa(name, secret).map_err(bad_name)?.key().clone();
            return Ok(Self { path, private, line: key.to_string(), key });
        }
        let new = keys::generate(name, None)?;
        let key = VerifierKey::new(name, KeyKind::Witness, new.public).map_err(bad_name)?;
        Ok(Self { path, private: new.private, line: new.public.to_ssh_line(name), key })
    }

    fn to_json(&self) -> Value {
        let (file, name) = (shown_path(&self.path), self.key.name());
        json!({ "key_file": file, "name": name, "witness": self.key.to_string() })
    }
}

/// Runs `countersign admin witness init`.
pub(crate) fn init_witness(
    global: &GlobalArgs,
    args: &WitnessInitArgs,
    output: Output,
) -> Result<(), CliError> {
    let (path, name) = (key_path(global)?, &args.name);
    let make = |suffix, is_ml_dsa| MadeKey::make(add_suffix(path, suffix), name, is_ml_dsa);
    let made = match args.key_type {
        WitnessKeyType::Ed25519 => vec![make("", false)?],
        WitnessKeyType::MlDsa44 => vec![make("", true)?],
        WitnessKeyType::Both => vec![make("", false)?, make(".ml-dsa", true)?],
    };
    for MadeKey { path, .. } in &made {
        check_absent(path)?;
        check_absent(&add_suffix(path, ".pub"))?;
    }
    for MadeKey { path, private, line, .. } in &made {
        write_pair(path, private, line)?;
    }
    let files: Vec<String> = made.iter().map(|made| shown_path(&made.path).to_string()).collect();
    let (keys, these) = match files.as_slice() {
        [only] => (format!("key {only}"), "this line"),
        [..] => (
            format!("keys {}", files.join(" and ")),
            "these lines, whose keys belong into one group and count once,",
        ),
    };
    let in_policy = |(made, suffix): (&MadeKey, &str)| {
        let key = output.strong(&made.key.to_string());
        format!("witness {}{suffix} {key} https://ADDRESS\n", name.replace('/', "-"))
    };
    let text = format!(
        "Made the {keys}. Begin to witness:\n\n\
         countersign witness URL --key {} --data-dir DIR --listen ADDR:PORT\n\n\
         Give the operator of the log {these} for the witnesses file, with the address at which you can be reached, or \
         without one if you use --poll:\n\n{}",
        files.join(" --ml-dsa-key "),
        made.iter().zip(["", "-ml-dsa"]).map(in_policy).collect::<String>(),
    );
    let mut answer = made[0].to_json();
    if let Some(second) = made.get(1) {
        answer["second"] = second.to_json();
    }
    output.result(&text, &answer)
}

fn key_path(global: &GlobalArgs) -> Result<&Path, CliError> {
    global.key.as_deref().ok_or_else(|| {
        let hint = "pass --key FILE; `countersign admin witness init --key FILE --name NAME` makes one";
        CliError::usage("a witness needs a key of its own", hint)
    })
}

/// The logs of a policy file. A witness needs nothing else of it, so a quorum can be missing.
fn read_policy_logs(path: &Path) -> Result<Vec<VerifierKey>, CliError> {
    let bytes = read_bounded(path, POLICY_BYTES)?;
    let policy = Policy::parse(&bytes)
        .or_else(|error| Policy::parse(&[bytes.as_slice(), b"\nquorum none\n"].concat()).map_err(|_| error));
    let policy = policy.map_err(|error| {
        let message = format!("{} is not a policy: {error}", shown_path(path));
        CliError::usage(message, "write a line `log VKEY` for each log")
    })?;
    Ok(policy.log_keys())
}

fn read_lists(lists: &[LogListSource]) -> Result<Vec<LogListSource>, CliError> {
    if lists.len() > LOG_LISTS {
        let message =
            format!("a witness reads at most {LOG_LISTS} lists of logs, and there are {}", lists.len());
        return Err(CliError::usage(
            message,
            "leave some out: it never forgets the logs that it knows from them",
        ));
    }
    Ok(lists.to_vec())
}

// Memory of large answers goes back to the system.
//
// glibc raises the size above which it asks the system for each piece of memory, up to 32 MiB, and then keeps what was
// freed in many half-filled heaps. Under 28 clients that register and read indexes of 1 to 2 MiB, a server took 394 MiB
// where 140 were enough. Only the environment at the start of a program can set that size without `unsafe`, so the
// server starts itself once more with it: the same process, under the same id. docs/performance.md has newer figures.
// The log says if it fails.

const SETTING: &str = "MALLOC_MMAP_THRESHOLD_";
const BYTES: &str = "131072";

/// Whether this C library is meant, and the operator has not chosen for themselves.
fn is_wanted() -> bool {
    cfg!(all(target_os = "linux", target_env = "gnu"))
        && env::var_os(SETTING).is_none()
        && env::var_os("GLIBC_TUNABLES").is_none()
}

/// Returns if there is nothing to do, or with the reason why it cannot be done. Then the server needs more memory, and
/// works the same.
fn limit_allocator() -> io::Result<()> {
    if !is_wanted() {
        return Ok(());
    }
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_else(|| "countersign".into());
    Err(Command::new(env::current_exe()?).arg0(name).args(arguments).env(SETTING, BYTES).exec())
}
