//! The arguments of the client commands.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use clap_complete::Shell;
use countersign_api::event::EventKind;
use countersign_core::rules::place::path_of_url;
use countersign_core::values::time::{Timestamp, parse_span};
use countersign_core::values::{digest::Sha512, other_format::OtherFormat, path::RepoPath};
use serde::Serialize;

use crate::settings::client_config::Setting;
use crate::words::output::{ColorChoice, OutputsArgs};

#[derive(Debug, Args)]
pub(crate) struct DownloadArgs {
    /// The URL of a file, a release, or a project for its newest release: the highest complete version
    #[arg(value_name = "NAME", num_args = 1..=2, required = true)]
    pub(crate) names: Vec<String>,

    /// Download only files of a release whose names fit, as in '*linux*'; can be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,

    /// Where to put the file, or the directory for files [default: their names in the current directory]
    #[arg(long, short = 'o', value_name = "FILE|DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Replace files that are there and differ
    #[arg(long)]
    pub(crate) force: bool,

    /// Stop after this many bytes if the signed index does not give the file's size
    #[arg(long, value_name = "BYTES", default_value_t = 2 << 30, value_parser = parse_number::<u64>)]
    pub(crate) max_size: u64,

    #[command(flatten)]
    pub(crate) proof: ProofArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The files to verify; of a directory, all files in it
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Where a single file came from [default: the server finds the release by the file's digest]
    #[arg(long, value_name = "URL", conflicts_with_all = ["bundle", "release"])]
    pub(crate) url: Option<String>,

    /// The release that the files must belong to, named as for `countersign status`
    #[arg(long, value_name = "NAME", num_args = 1..=2, conflicts_with = "bundle")]
    pub(crate) release: Vec<String>,

    /// The project that you mean [default: the one that this computer knows, else you are asked]
    #[arg(long, value_name = "PROJECT", conflicts_with_all = ["bundle", "release", "url"])]
    pub(crate) project: Option<String>,

    /// The bundle with the evidence; needs no network
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) bundle: Option<PathBuf>,

    /// The staple of the release, instead of the one in the bundle or on the server
    #[arg(long, value_name = "STAPLE", conflicts_with = "no_log_check")]
    pub(crate) staple: Option<PathBuf>,

    /// Refuse unless every file of the release is there under its name, and nothing else; needs --release or --bundle
    #[arg(long, conflicts_with = "url")]
    pub(crate) whole: bool,

    #[command(flatten)]
    pub(crate) proof: ProofArgs,

    #[command(flatten)]
    pub(crate) outputs: OutputsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// The release, or the URL of one of its files
    #[arg(value_name = "NAME", num_args = 1..=2, required = true)]
    pub(crate) names: Vec<String>,

    /// Where to write the bundle
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) proof: ProofArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The release, or the URL of one of its files
    #[arg(value_name = "NAME", num_args = 1..=2, required = true)]
    pub(crate) names: Vec<String>,

    /// The directory to write to: a new one, or an empty one
    #[arg(long, short = 'o', value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// The tool that people verify with
    #[arg(long = "for", value_name = "TOOL", value_enum)]
    pub(crate) format: ExportFormat,

    /// Write to a directory that is not empty: replace files of the same names, and leave others
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) proof: ProofArgs,
}

/// The tool that an export is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExportFormat {
    /// OpenSSL 3 or newer
    Openssl,
    /// ssh-keygen of OpenSSH 8.1 or newer; needs signatures in this format
    Ssh,
    /// minisign 0.10 or newer; needs signatures in this format
    Minisign,
    /// sqv, gpgv, gpg and others that read OpenPGP; needs signatures in this format
    Openpgp,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// List the projects, their accepted history, the revocations seen, and the logs
    List,
    /// Forget a project or a log, so that the next download begins anew with it
    Remove {
        /// The project or the log, as `trust list` shows it
        #[arg(value_name = "PROJECT|LOG")]
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show what is set, and for what
    Show,
    /// Set the server, the key, the policy or the age of proofs
    Set(ConfigSetArgs),
    /// Remove a setting
    Unset {
        /// What to remove
        #[arg(value_name = "SETTING", value_enum)]
        setting: Setting,

        #[command(flatten)]
        scope: ScopeArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ConfigSetArgs {
    /// What to set
    #[arg(value_name = "SETTING", value_enum)]
    pub(crate) setting: Setting,

    /// The server's address, the file with the key or the policy, or an age as in 12h or 7d
    #[arg(value_name = "VALUE")]
    pub(crate) value: String,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// What a setting is for; all projects without either.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// Only for this project
    #[arg(long, value_name = "PROJECT", conflicts_with = "host")]
    pub(crate) project: Option<String>,

    /// Only for projects on this host
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// Where to write the private key; the public key goes to FILE.pub [default: ~/.ssh/id_ed25519]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// A comment for the public key
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) comment: String,

    /// Do not protect the private key with a passphrase
    #[arg(long, conflicts_with = "password_file")]
    pub(crate) no_password: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The project's address on its forge or file server
    #[arg(value_name = "PROJECT_URL")]
    pub(crate) url: Option<String>,

    /// Your own name in the signers file
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The other signers: NAME=KEY, with a .pub file, a svc-pub: string or an ssh-ed25519 line; can be repeated
    #[arg(long = "signer", value_name = "NAME=KEY", num_args = 1..)]
    pub(crate) signers: Vec<String>,

    /// How many of the signers must sign a release
    #[arg(long, value_name = "N", value_parser = parse_number::<usize>)]
    pub(crate) threshold: Option<usize>,

    /// Do not protect a new private key with a passphrase
    #[arg(long, conflicts_with = "password_file")]
    pub(crate) no_password: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProposeArgs {
    /// The signers file's page on a branch of the forge, or its address on a file server
    #[arg(value_name = "SIGNERS_URL")]
    pub(crate) url: String,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["names", "checksums"]))]
pub(crate) struct ReleaseArgs {
    /// The release's page on its forge, or the project and the tag; on a file server, the directory with its SHA256SUMS
    #[arg(value_name = "RELEASE_URL|NAME", num_args = 1..=2)]
    pub(crate) names: Vec<String>,

    /// Checksums files (SHA256SUMS and the like) of a release on a file server, all in one directory
    #[arg(long, value_name = "URL", num_args = 1..)]
    pub(crate) checksums: Vec<String>,

    /// Succeed if the release is registered already, as when a job runs again
    #[arg(long)]
    pub(crate) if_needed: bool,

    #[command(flatten)]
    pub(crate) outputs: OutputsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PendingArgs {
    /// What waits for this key instead of yours: a .pub file, a svc-pub: string or an ssh-ed25519 line
    #[arg(long = "for", value_name = "KEY")]
    pub(crate) key_of: Option<String>,

    /// Only what is in this project, or below this path
    #[arg(long, value_name = "PROJECT")]
    pub(crate) project: Option<String>,

    /// Only these kinds
    #[arg(long = "type", value_name = "KIND", value_delimiter = ',', value_parser = ["release", "signers", "revocation", "rebuild"])]
    pub(crate) kinds: Vec<String>,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["names", "all", "detached", "submit"]))]
pub(crate) struct SignArgs {
    /// Releases or projects to sign, as `countersign pending` lists them
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Sign everything that waits for this key, including new projects that list it
    #[arg(long, conflicts_with = "output")]
    pub(crate) all: bool,

    /// Sign only if your own files in this directory are those of the release, all of them, byte for byte. If you sign
    /// for openpgp, each of them is signed by itself as well
    #[arg(long, value_name = "DIR", conflicts_with_all = ["submit", "export"])]
    pub(crate) files: Option<PathBuf>,

    /// Sign the SHA256SUMS of the release for other programs as well, beside what the signers file asks for: ssh,
    /// minisign, openpgp, or several as in ssh,openpgp
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', value_parser = parse_format, conflicts_with_all = ["submit", "export"])]
    pub(crate) also: Vec<OtherFormat>,

    /// Sign in no other format, whatever the signers file asks for
    #[arg(long, conflicts_with_all = ["also", "submit", "export"])]
    pub(crate) no_formats: bool,

    /// With --yes: sign also what a builder did not get from the source
    #[arg(long, conflicts_with_all = ["submit", "export"])]
    pub(crate) despite_rebuilds: bool,

    #[command(flatten)]
    pub(crate) carried: CarriedArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// A release, or a project
    #[arg(value_name = "NAME", num_args = 1..=2, required = true)]
    pub(crate) names: Vec<String>,

    /// Wait until the file is complete, or a pending signers file is in force
    #[arg(long)]
    pub(crate) wait: bool,

    /// Wait until builders have reproduced the release as well; done by itself if its signers file requires it
    #[arg(long, requires = "wait")]
    pub(crate) reproduced: bool,

    /// Wait no longer than this, as in 90s, 30m, 2h or 1d [default: as long as it takes]
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) outputs: OutputsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReleasesArgs {
    /// The project
    #[arg(value_name = "PROJECT")]
    pub(crate) project: String,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Parts of a project's address, all of which must occur in it, or a URL in it
    #[arg(value_name = "WORD", required = true)]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Only events at this path and below it
    #[arg(value_name = "PREFIX", value_parser = parse_path)]
    pub(crate) prefix: Option<RepoPath>,

    /// Only what waits for the signature of your --key
    #[arg(long, conflicts_with = "waiting_for")]
    pub(crate) mine: bool,

    /// Only what waits for the signature of this key: a .pub file, a svc-pub: string or an ssh-ed25519 line
    #[arg(long, value_name = "KEY")]
    pub(crate) waiting_for: Option<String>,

    /// Only these kinds: registration, proposal, signature, complete, agreed, veto, vetoed, activated, release,
    /// withdrawn, objection, objection-withdrawn, rebuild, rebuild-differs, revocation, revoked, dropped
    #[arg(long = "type", value_name = "KIND", value_delimiter = ',', value_parser = parse_kind)]
    pub(crate) kinds: Vec<EventKind>,

    /// Begin after this commit, one of the server's newest 10,000
    #[arg(long, value_name = "COMMIT", value_parser = parse_commit)]
    pub(crate) since: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PingArgs {
    /// Fail unless the server can accept changes (/readyz), as the health check of a container does
    #[arg(long)]
    pub(crate) ready: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the server, files and keys until Ctrl-C, so that you can look around
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Where to write the pages, one for each command [default: print the page of the program itself]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeFilesArgs {
    /// The directory to serve
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,

    /// Address and port to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8000")]
    pub(crate) listen: SocketAddr,
}

pub(super) fn parse_number<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "it must be a whole number")
}

fn parse_kind(text: &str) -> Result<EventKind, String> {
    let known = EventKind::ALL.map(EventKind::name).join(", ");
    EventKind::parse(text).map_err(|_| format!("it is not one of {known}"))
}

fn parse_commit(text: &str) -> Result<String, &'static str> {
    let is_id = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_ascii_lowercase()).ok_or("write all 40 hexadecimal digits of the commit")
}

// The arguments of `countersign incident` and `countersign drill`.

/// The keys that something happened to.
#[derive(Debug, Args)]
pub(crate) struct TroubledKeyArgs {
    /// Keys that their owners no longer have: svc-pub:…, a .pub file, or with a PROJECT a name from its signers file
    #[arg(long, value_name = "KEY", num_args = 1..)]
    pub(crate) lose: Vec<String>,

    /// Keys that a thief has, named in the same ways
    #[arg(long, value_name = "KEY", num_args = 1..)]
    pub(crate) steal: Vec<String>,
}

impl TroubledKeyArgs {
    /// All of them. An incident asks what they touched, whatever happened to them.
    pub(crate) fn all(&self) -> Vec<String> {
        [self.lose.as_slice(), &self.steal].concat()
    }
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("whose").required(true).multiple(true).args(["lose", "steal"]))]
pub(crate) struct IncidentArgs {
    /// The projects to look at [default: every project that lists or listed a key]
    #[arg(value_name = "PROJECT")]
    pub(crate) projects: Vec<String>,

    #[command(flatten)]
    pub(crate) keys: TroubledKeyArgs,

    /// Only what was signed at this time or later: 2026-11-01, 2026-11-01T10:00:00Z, or a time ago as in 30d
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    pub(crate) since: Option<Since>,

    /// Read a data directory, a bare repository or a clone instead of asking a server; needs no network
    #[arg(long, value_name = "DIR")]
    pub(crate) repository: Option<PathBuf>,

    /// Prepare here, for review: new signers files, revocations to sign, and the commands in order
    #[arg(long, short = 'o', value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Why, for the prepared revocations; everyone can read it
    #[arg(long, value_name = "TEXT", requires = "output")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DrillArgs {
    /// The projects, whose signers files in force are read from their server, or signers files
    #[arg(value_name = "PROJECT|FILE", required = true)]
    pub(crate) sources: Vec<String>,

    #[command(flatten)]
    pub(crate) keys: TroubledKeyArgs,

    /// Read the projects from a data directory, a bare repository or a clone; needs no network
    #[arg(long, value_name = "DIR")]
    pub(crate) repository: Option<PathBuf>,
}

/// A point in time at which a question begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Since {
    At(Timestamp),
    Ago(Duration),
}

fn parse_since(text: &str) -> Result<Since, &'static str> {
    if let Ok(ago) = parse_duration(text) {
        return Ok(Since::Ago(ago));
    }
    let at = Timestamp::parse(text).or_else(|_| Timestamp::parse(&format!("{text}T00:00:00Z")));
    at.map(Since::At).map_err(
        |_| "write a date, a time with its zone, or a time ago: 2026-11-01, 2026-11-01T10:00:00Z, 30d",
    )
}

// The arguments of commands that follow a log.

#[derive(Debug, Args)]
pub(crate) struct StapleArgs {
    /// A bundle, whose staple is replaced; or the release, or the URL of one of its files
    #[arg(value_name = "FILE|NAME", num_args = 1..=2, required = true)]
    pub(crate) names: Vec<String>,

    /// Where to write the bundle or the staple [default: the bundle itself, or NAME.staple.json]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) proof: ProofArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MonitorArgs {
    /// The server whose log to follow
    #[arg(value_name = "URL", required_unless_present = "check")]
    pub(crate) url: Option<String>,

    /// The projects to watch [default: those whose signers files list your --key, now or later]
    #[arg(value_name = "PROJECT")]
    pub(crate) projects: Vec<String>,

    /// Look once; exit code 9 if something changed, or witnesses do not confirm the log
    #[arg(long)]
    pub(crate) once: bool,

    /// How often to look, as in 90s, 30m, 2h or 1d
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s", conflicts_with = "once")]
    pub(crate) interval: Duration,

    /// Send each change there, as JSON in a POST request
    #[arg(long, value_name = "URL")]
    pub(crate) webhook: Option<String>,

    /// Run this in a shell for each change, with the change as text on standard input, and as JSON in
    /// COUNTERSIGN_CHANGE
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,

    /// Where to remember how far it is [default: a file in the configuration directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,

    /// Check a file with evidence that a log has lied about the state, without a network, and do nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "once", "interval", "webhook", "exec", "state"])]
    pub(crate) check: Option<PathBuf>,
}

// Options and values that several commands take.

/// Options of every client command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The signing server [default: the one that is set or remembered for the project, see `countersign config`]
    #[arg(long, global = true, value_name = "URL", env = "COUNTERSIGN_SERVER", hide_env_values = true)]
    pub(crate) server: Option<String>,

    /// Your OpenSSH private key, or a .pub file to sign through the agent at SSH_AUTH_SOCK [default: the one that is
    /// set, else the listed one that the agent holds or ~/.ssh/id_ed25519 has]
    #[arg(long, global = true, value_name = "FILE", env = "COUNTERSIGN_KEY", hide_env_values = true)]
    pub(crate) key: Option<PathBuf>,

    /// Read the key's passphrase from the first line of this file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,

    /// Answer every question with yes: sign, revoke, replace or forget without asking
    #[arg(long, short = 'y', global = true)]
    pub(crate) yes: bool,

    /// Print one JSON object on standard output, also for errors
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Print only errors, questions and the result
    #[arg(long, short = 'q', global = true)]
    pub(crate) quiet: bool,

    /// Show whole keys and digests in lists
    #[arg(long, global = true)]
    pub(crate) full: bool,

    /// When to print colours; auto is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: ColorChoice,
}

/// Where trust in a project begins, at its first download, and which proof of the newest state is enough.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProofArgs {
    /// Digest of a signers file of the project, from a place that you trust; what `sha512sum` prints will do
    #[arg(long, value_name = "SHA512", value_parser = parse_digest)]
    pub(crate) signers_digest: Option<Sha512>,

    /// Your own policy: which log and witnesses must show that the release is not revoked [default: what is set, else
    /// what the project's signers file says]
    #[arg(long, value_name = "FILE", conflicts_with = "no_log_check")]
    pub(crate) policy: Option<PathBuf>,

    /// Refuse a proof older than this, as in 90s, 30m, 2h or 1d [default: what your policy says, or what is set, or a
    /// day; and without a policy of your own, what the project's signers file says]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "no_log_check")]
    pub(crate) max_age: Option<Duration>,

    /// Do not look at the log: a hidden revocation or change of signers then goes unnoticed
    #[arg(long)]
    pub(crate) no_log_check: bool,

    /// Refuse a release that some of its revokers want revoked, also before enough of them have signed
    #[arg(long)]
    pub(crate) strict: bool,
}

pub(super) fn parse_format(text: &str) -> Result<OtherFormat, &'static str> {
    OtherFormat::parse(text).map_err(|_| "write ssh, minisign, openpgp, or several as in ssh,openpgp")
}

pub(crate) fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    parse_span(text).ok_or("write a number and a unit, as in 90s, 30m, 2h or 1d")
}

/// A path, or the URL that it stands for.
pub(super) fn parse_path(text: &str) -> Result<RepoPath, String> {
    if text.contains("://") {
        let path = path_of_url(text);
        return path.ok_or_else(|| "write it as a path, as in https/github.com/443/acme/app".to_owned());
    }
    RepoPath::parse(text).map_err(|error| error.to_string())
}

/// Reads a digest as we or `sha512sum` print it: `sha512:HEX`, `HEX` or `HEX  FILE`.
fn parse_digest(text: &str) -> Result<Sha512, &'static str> {
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    // Before the name of a file with a backslash or a line end in it.
    let first = first.strip_prefix('\\').unwrap_or(first);
    let hex = first.strip_prefix("sha512:").unwrap_or(first);
    Sha512::parse_any_case(hex)
        .ok_or("must be a SHA-512 digest: 128 hexadecimal digits, as `sha512sum` prints it")
}

// The arguments of commands that withdraw, object, revoke and veto.

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).args(["names", "detached", "submit"]))]
pub(crate) struct VetoArgs {
    /// The project whose proposed signers are not wanted
    #[arg(value_name = "PROJECT", num_args = 1)]
    pub(crate) names: Vec<String>,

    /// Why; everyone can read it. Leave it out to join a veto that another master began
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["detached", "submit"])]
    pub(crate) reason: Option<String>,

    #[command(flatten)]
    pub(crate) carried: CarriedArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WithdrawArgs {
    /// The release
    #[arg(value_name = "NAME", num_args = 1..=2, required = true)]
    pub(crate) names: Vec<String>,

    /// Why, for everyone to read
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("word").required(true).args(["reason", "withdraw"]))]
pub(crate) struct ObjectArgs {
    /// The release
    #[arg(value_name = "NAME", num_args = 1..=2, required = true)]
    pub(crate) names: Vec<String>,

    /// What is wrong with it, for everyone to read
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Take your objection back
    #[arg(long)]
    pub(crate) withdraw: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).args(["names", "detached", "submit"]))]
pub(crate) struct RebuildArgs {
    /// The release
    #[arg(value_name = "NAME", num_args = 1..=2)]
    pub(crate) names: Vec<String>,

    /// The directory with the files that you built, under the names that they have in the release
    #[arg(long, value_name = "DIR", conflicts_with_all = ["detached", "submit"])]
    pub(crate) files: Option<PathBuf>,

    /// The whole id of the commit that you built, as `git rev-parse HEAD` prints it
    #[arg(long, value_name = "COMMIT", value_parser = parse_source, conflicts_with_all = ["detached", "submit"])]
    pub(crate) source: Option<String>,

    #[command(flatten)]
    pub(crate) carried: CarriedArgs,
}

/// The whole id of a commit. A short one can mean another commit tomorrow.
fn parse_source(text: &str) -> Result<String, &'static str> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_whole = is_hex && matches!(text.len(), 40 | 64);
    is_whole.then(|| text.to_ascii_lowercase()).ok_or("write the whole id, as `git rev-parse HEAD` prints it")
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).args(["names", "detached", "submit"]))]
pub(crate) struct RevokeArgs {
    /// The release
    #[arg(value_name = "NAME", num_args = 1..=2)]
    pub(crate) names: Vec<String>,

    /// Why, for everyone to read; leave it out to join a revocation that others began
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["detached", "submit"])]
    pub(crate) reason: Option<String>,

    #[command(flatten)]
    pub(crate) carried: CarriedArgs,

    /// Do not wait until witnesses of the log have seen the revocation
    #[arg(long)]
    pub(crate) no_wait: bool,

    /// Wait for them no longer than this, as in 90s, 30m, 2h or 1d
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2m")]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct CarriedArgs {
    /// Write what is to be signed to this file, for a computer without a network; needs no key
    #[arg(long, value_name = "FILE", conflicts_with_all = ["detached", "submit"])]
    pub(crate) export: Option<PathBuf>,

    /// Sign what --export wrote, without a network; needs -o
    #[arg(long, value_name = "FILE", requires = "output")]
    pub(crate) detached: Option<PathBuf>,

    /// Submit what --detached signed, with any key
    #[arg(long, value_name = "SIGNATURES")]
    pub(crate) submit: Option<PathBuf>,

    /// Where --detached writes the signatures
    #[arg(long, short = 'o', value_name = "SIGNATURES", conflicts_with_all = ["names", "submit"])]
    pub(crate) output: Option<PathBuf>,
}
