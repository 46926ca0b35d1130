//! Options and values that several commands take.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use countersign_core::rules::place::path_of_url;
use countersign_core::values::{digest::Sha512, other_format::OtherFormat, path::RepoPath, time::parse_span};

use crate::{output::ColorChoice, prompt::Confirmation};

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

    /// When to print colours
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: ColorChoice,
}

impl GlobalArgs {
    pub(crate) fn confirmation(&self) -> Confirmation {
        if self.yes { Confirmation::Given } else { Confirmation::Ask }
    }
}

/// Where trust in a project begins, at its first download, and which proof of the newest state is enough.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProofArgs {
    /// Digest of a signers file of the project, from a place that you trust; what `sha512sum` prints will do
    #[arg(long, value_name = "SHA512", value_parser = parse_digest)]
    pub(crate) signers_digest: Option<Sha512>,

    /// Your own policy: which log and witnesses must show that the release is not revoked [default: what is set, else what
    /// the project's signers file says]
    #[arg(long, value_name = "FILE", conflicts_with = "no_log_check")]
    pub(crate) policy: Option<PathBuf>,

    /// Refuse a proof older than this, as in 90s, 30m, 2h or 1d [default: what your policy says, or what is set, or a day; and
    /// without a policy of your own, what the project's signers file says]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "no_log_check")]
    pub(crate) max_age: Option<Duration>,

    /// Do not look at the log: a hidden revocation or change of signers then goes unnoticed
    #[arg(long)]
    pub(crate) no_log_check: bool,
}

pub(super) fn parse_format(text: &str) -> Result<OtherFormat, &'static str> {
    OtherFormat::parse(text).map_err(|_| "write ssh, minisign, or both as in ssh,minisign")
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

/// As we print it, or as `sha512sum` does: `sha512:HEX`, `HEX` or `HEX  FILE`.
fn parse_digest(text: &str) -> Result<Sha512, &'static str> {
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    // Before the name of a file with a backslash or a line end in it.
    let first = first.strip_prefix('\\').unwrap_or(first);
    let hex = first.strip_prefix("sha512:").unwrap_or(first);
    Sha512::parse_any_case(hex)
        .ok_or("must be a SHA-512 digest: 128 hexadecimal digits, as `sha512sum` prints it")
}
