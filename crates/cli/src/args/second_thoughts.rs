//! Withdrawing, objecting, revoking and vetoing.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args};

use super::options::parse_duration;

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
