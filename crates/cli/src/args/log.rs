//! The arguments of commands that follow a log.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::options::{ProofArgs, parse_duration};

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

    /// Run this in a shell for each change, with the change as text on standard input, and as JSON in COUNTERSIGN_CHANGE
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,

    /// Where to remember how far it is [default: a file in the configuration directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,

    /// Check a file with evidence that a log has lied about the state, without a network, and do nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "once", "interval", "webhook", "exec", "state"])]
    pub(crate) check: Option<PathBuf>,
}
