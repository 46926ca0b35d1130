//! The arguments of the client commands.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use clap_complete::Shell;
use countersign_api::event::EventKind;
use countersign_core::values::{other_format::OtherFormat, path::RepoPath};
use serde::Serialize;

use super::options::{ProofArgs, parse_duration, parse_format, parse_path};
use super::second_thoughts::CarriedArgs;
use crate::{client_config::Setting, job_outputs::OutputsArgs};

#[derive(Debug, Args)]
pub(crate) struct DownloadArgs {
    /// The URL of a file, a release, or a project for its newest release: the highest complete version
    #[arg(value_name = "NAME", num_args = 1..=2, required = true)]
    pub(crate) names: Vec<String>,

    /// Of a release, only files whose names fit, as in '*linux*'; can be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,

    /// Where to put the file, or the directory for files [default: their names in the current directory]
    #[arg(long, short = 'o', value_name = "FILE|DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Replace files that are there and differ
    #[arg(long)]
    pub(crate) force: bool,

    /// Stop after this many bytes if the signed index does not give the file's size
    #[arg(long, value_name = "BYTES", default_value_t = 2 << 30)]
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
}

#[derive(Debug, Args)]
pub(crate) struct ChainArgs {
    /// A project, or a release
    #[arg(value_name = "NAME", num_args = 1..=2, required = true)]
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// List the projects, their accepted history, the revocations seen, and the logs
    List,
    /// Forget a log, so that the next download accepts the log that the server shows
    ForgetLog {
        /// The origin of the log, as `trust list` shows it
        #[arg(value_name = "ORIGIN")]
        origin: String,
    },
    /// Forget a project, so that the next download begins anew
    Remove {
        /// The project, as `trust list` shows it
        #[arg(value_name = "PROJECT")]
        project: String,
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
    /// Where to write the private key; the public key goes to FILE.pub
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// A comment for the public key
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) comment: String,

    /// Do not protect the private key with a passphrase
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
#[command(group = ArgGroup::new("source").required(true).args(["url", "checksums"]))]
pub(crate) struct ReleaseArgs {
    /// The release's page on its forge
    #[arg(value_name = "RELEASE_URL")]
    pub(crate) url: Option<String>,

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
    #[arg(long = "type", value_name = "KIND", value_delimiter = ',', value_parser = ["release", "signers", "revocation"])]
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

    /// Compare the release with your own files in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["submit", "export"])]
    pub(crate) files: Option<PathBuf>,

    /// Refuse to sign unless --files DIR holds every file of the release, byte for byte
    #[arg(long, requires = "files")]
    pub(crate) require_match: bool,

    /// Sign the SHA256SUMS of the release for ssh-keygen or minisign as well, beside what the signers file asks for: ssh,
    /// minisign or both
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', value_parser = parse_format, conflicts_with_all = ["submit", "export"])]
    pub(crate) also: Vec<OtherFormat>,

    /// Sign in no other format, whatever the signers file asks for
    #[arg(long, conflicts_with_all = ["also", "submit", "export"])]
    pub(crate) no_formats: bool,

    #[command(flatten)]
    pub(crate) carried: CarriedArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// A release, or a project whose new signers file is pending
    #[arg(value_name = "NAME", num_args = 1..=2, required = true)]
    pub(crate) names: Vec<String>,

    /// Wait until the file is complete, or a pending signers file is in force
    #[arg(long)]
    pub(crate) wait: bool,

    /// Wait no longer than this, as in 90s, 30m, 2h or 1d [default: as long as it takes]
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) outputs: OutputsArgs,
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
    /// withdrawn, objection, objection-withdrawn, revocation, revoked, dropped
    #[arg(long = "type", value_name = "KIND", value_delimiter = ',', value_parser = parse_kind)]
    pub(crate) kinds: Vec<EventKind>,

    /// Begin after this commit, one of the server's newest 10,000
    #[arg(long, value_name = "COMMIT", value_parser = parse_commit)]
    pub(crate) since: Option<String>,
}

/// For a key on a computer without a network.
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

fn parse_kind(text: &str) -> Result<EventKind, String> {
    let known = EventKind::ALL.map(EventKind::name).join(", ");
    EventKind::parse(text).map_err(|_| format!("it is not one of {known}"))
}

fn parse_commit(text: &str) -> Result<String, &'static str> {
    let is_id = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_ascii_lowercase()).ok_or("write all 40 hexadecimal digits of the commit")
}
