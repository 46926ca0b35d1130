//! The arguments of `countersign incident` and `countersign drill`.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use countersign_core::values::time::Timestamp;

use super::options::parse_duration;

#[derive(Debug, Args)]
pub(crate) struct IncidentArgs {
    /// The keys that are stolen or lost: svc-pub:…, a .pub file, or with --project a name from the signers file
    #[arg(value_name = "KEY", required = true)]
    pub(crate) keys: Vec<String>,

    /// Only what was signed at this time or later: 2026-11-01, 2026-11-01T10:00:00Z, or a time ago as in 30d
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    pub(crate) since: Option<Since>,

    /// Look at this project only; can be repeated [default: every project that lists or listed a key]
    #[arg(long, value_name = "PROJECT")]
    pub(crate) project: Vec<String>,

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
    /// The project, whose signers file in force is read from its server, or a signers file
    #[arg(value_name = "PROJECT|FILE")]
    pub(crate) source: String,

    /// Keys that their owners no longer have, by name or in full
    #[arg(long, value_name = "KEY", num_args = 1..)]
    pub(crate) lose: Vec<String>,

    /// Keys that a thief has, by name or in full
    #[arg(long, value_name = "KEY", num_args = 1..)]
    pub(crate) steal: Vec<String>,

    /// Read the project from a data directory, a bare repository or a clone; needs no network
    #[arg(long, value_name = "DIR")]
    pub(crate) repository: Option<PathBuf>,
}

/// From when on.
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
