//! `mirror`, `witness`, `admin` and `fsck`. `countersign_server::operate::config` declares the flags of `serve`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use countersign_core::rules::place::path_of_url;
use countersign_core::values::{path::PathError, path::RepoPath, verifier_key::VerifierKey};
use countersign_server::follow::{
    mirror::exchange::OriginAddress, network::LogListSource, witness::WitnessSettings,
};
use countersign_server::operate::config::{CopyFlags, GivenDatabase, GivenSettings};
use countersign_store::ObjectId;

use crate::args::client::parse_number;

#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// List projects, and what is pending in them
    Projects(ProjectsArgs),
    /// Remove a project's pending registration or signers proposal
    Drop(DropArgs),
    /// Refuse changes of a key, a host or a project; what is stored stays readable
    #[command(after_help = "\
Examples:
  countersign admin block svc-pub:…                       a key, even if others send its signatures
  countersign admin block alice.pub                       the key in a file
  countersign admin block spam.example                    all projects on a host
  countersign admin block https/github.com/443/acme/app   a project
  countersign admin block https/github.com/443/acme       all projects of an owner

A block is in force at once and survives a restart. The server answers such changes with 403.")]
    Block(BlockArgs),
    /// Accept changes again
    Unblock(BlockArgs),
    /// List what is blocked
    Blocks(FileArgs),
    /// Show how a running server is doing
    Stats(FileArgs),
    /// Several nodes on one database (docs/cluster.md)
    Cluster {
        #[command(subcommand)]
        command: ClusterCommand,
    },
    /// Accept requests again after the clock was wrong
    #[command(after_help = "\
If the server's clock was far ahead for a while, the server can refuse fresh requests until that time comes. Set the \
clock right, stop the server, and run this command. From then on the server refuses requests that were signed before; \
clients sign again. A request that was signed for a later time, while the clock was ahead, can be sent again when that \
time comes.")]
    ResetNonces(FileArgs),
    /// The log of all commits
    Log {
        #[command(subcommand)]
        command: LogCommand,
    },
    /// Decide about a mirror that has stopped following
    Mirror {
        #[command(subcommand)]
        command: MirrorCommand,
    },
    /// Make the key of a witness, or decide about one that has stopped
    Witness {
        #[command(subcommand)]
        command: WitnessCommand,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum WitnessCommand {
    /// Make a key for a witness: FILE and FILE.pub
    #[command(
        override_usage = "countersign admin witness init --key <FILE> --name <NAME> [--type <TYPE>]",
        after_help = "\
With `--type both`, the second key is FILE.ml-dsa with FILE.ml-dsa.pub, and `countersign witness` takes both: \
--key FILE --ml-dsa-key FILE.ml-dsa. However many keys a witness has, it counts once. C2SP asks new witnesses for \
ML-DSA-44, which a quantum computer does not break; many logs and clients know only Ed25519 yet."
    )]
    Init(WitnessInitArgs),
    /// Cosign a forked log again
    #[command(after_help = "\
A witness stops for a log whose key has signed two checkpoints that contradict each other. The evidence is in \
witness/evidence-… in the data directory. Show it to the operator of the log, and to everyone who relies on it: a forked \
log cannot be repaired. The witness keeps its record, so it only cosigns what continues the history that it knows, and \
stops again if it sees another one. The evidence stays.")]
    Resume(FileArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WitnessInitArgs {
    /// The name under which the witness signs, for all time; the host's name is usual
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,

    /// What it signs with
    #[arg(long = "type", value_name = "TYPE", default_value = "ed25519")]
    pub(crate) key_type: WitnessKeyType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WitnessKeyType {
    Ed25519,
    #[value(name = "ml-dsa-44")]
    MlDsa44,
    Both,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MirrorCommand {
    /// Follow the origin again
    #[command(after_help = "\
A mirror stops following if its origin shows another past than before, or a commit that breaks the rules. It stays \
stopped, even after a restart, until you run this command. The file mirror.refused in the data directory says which \
commits. Find out what happened first: the origin's operator may have lost commits, or someone may have changed its \
history.

After this command, the mirror asks its origin again, from its own newest commit on. It discards nothing, and it stops again if the \
origin still shows the same. To follow a history that was rewritten, begin with an empty data directory; to keep the \
mirror's history, promote it with `countersign serve`.")]
    Resume(FileArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Make a key for a log, and print the `[log]` table for the configuration
    #[command(after_help = "\
Example:
  countersign admin log init --data-dir /var/lib/countersign --origin sign.example.org/log

The key goes to log/key in the data directory. It is never overwritten. Run this as the user of the server, who must read \
it. Put the printed table into the configuration file, \
and start the server again. The server then signs a checkpoint of all its commits whenever there is something new.")]
    Init(LogInitArgs),
    /// Show how far the log has come, and what its witnesses have cosigned
    #[command(after_help = "\
The page /log of the server says the same to everyone. The server must run. On a mirror it is about the copy of the \
origin's log.")]
    Status(FileArgs),
    /// Give up commits that witnesses have seen, and let the log sign others in their place
    #[command(after_help = "\
Example:
  countersign admin log accept-loss --origin sign.example.org/log --size 5172

A log that was restored from an older copy signs nothing while witnesses have seen commits that it does not have. The \
server's log, /readyz and `countersign admin stats` say how many. Get them from a mirror or a witness if any has them \
(docs/transparency.md). Use this command only if they are lost for good.

What you give up: the log contradicts itself from then on. Witnesses that have seen the lost commits never cosign it \
again, and hold its own signatures as evidence. So no proof with their cosignatures is ever newer than today. Clients \
that have seen the lost commits refuse the log as forked. Changes in the lost commits, such as a revocation, are gone.

A log with a new origin is better: nothing contradicts it. Stop the server, move the directory log in the data directory \
away, run `countersign admin log init` with a new --origin, change [log] in the configuration, and tell projects and \
witnesses the new key.

The server must run. In a cluster, run this on each node. The checkpoints of the lost commits stay in log/lost-SIZE.")]
    AcceptLoss(AcceptLossArgs),
    /// Show the log a checkpoint that it has signed and does not remember
    #[command(after_help = "\
Example:
  countersign admin log take-checkpoint checkpoint.txt

Some witnesses say only how many commits they have seen. If the server was restored together with all its commits, it \
does not know whether these are the ones, and signs nothing. A checkpoint with the log's own signature tells it: one that a \
user, a mirror or a witness has, of at least so many commits. The log goes on if it continues the checkpoint, and signs \
nothing otherwise. The server must run.")]
    TakeCheckpoint(TakeCheckpointArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AcceptLossArgs {
    /// The name of the log
    #[arg(long, value_name = "NAME")]
    pub(crate) origin: String,

    /// How many commits witnesses have seen, as the server says
    #[arg(long, value_name = "COMMITS", value_parser = parse_number::<u64>)]
    pub(crate) size: u64,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TakeCheckpointArgs {
    /// A checkpoint, as /log/checkpoint shows it
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogInitArgs {
    /// The name of the log for all time: the address of the server without https://, and /log
    #[arg(long, value_name = "NAME")]
    pub(crate) origin: String,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Put the data directory of a stopped server into an empty database, so that nodes can continue from there
    Init(ClusterArgs),
    /// Show the nodes, how far each came, and how far it lags behind
    Status(ClusterArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// The database, as for `serve`. With a password in it, set COUNTERSIGN_DATABASE instead
    /// [env: COUNTERSIGN_DATABASE=]
    #[arg(long, value_name = "URL")]
    database: Option<GivenDatabase>,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}

impl ClusterArgs {
    pub(crate) fn database(&self) -> Option<GivenDatabase> {
        self.database.clone().or_else(GivenDatabase::from_environment)
    }
}

#[derive(Debug, Args)]
pub(crate) struct MirrorArgs {
    /// The server to follow, such as https://sign.example.org; another mirror will do
    #[arg(value_name = "URL", env = "COUNTERSIGN_MIRROR_OF", hide_env_values = true)]
    origin: OriginAddress,

    #[command(flatten)]
    pub(crate) flags: CopyFlags,
}

#[derive(Debug, Args)]
pub(crate) struct WitnessArgs {
    /// The server to follow, such as https://sign.example.org
    #[arg(value_name = "URL", env = "COUNTERSIGN_WITNESS_OF", hide_env_values = true)]
    origin: OriginAddress,

    /// The name of the witness [default: the comment in the key file]
    #[arg(long, value_name = "NAME", env = "COUNTERSIGN_WITNESS_NAME", hide_env_values = true)]
    pub(crate) name: Option<String>,

    /// A second key, of type ML-DSA-44, with which it signs as well
    #[arg(long, value_name = "FILE", env = "COUNTERSIGN_WITNESS_ML_DSA_KEY", hide_env_values = true)]
    pub(crate) ml_dsa_key: Option<PathBuf>,

    /// The key of the server's log [default: the one that the server shows the first time]
    #[arg(long, value_name = "VKEY", value_parser = VerifierKey::parse_log)]
    pub(crate) log_key: Option<VerifierKey>,

    /// A policy file (c2sp.org/tlog-policy) with other logs to cosign, a line `log VKEY` for each
    #[arg(long, value_name = "FILE", env = "COUNTERSIGN_WITNESS_POLICY", hide_env_values = true)]
    pub(crate) policy: Option<PathBuf>,

    /// A list of logs that a witness network publishes (logs/v0): cosign these logs as well, as often as the list says.
    /// It is read every hour; the witness never forgets a log. Can be repeated
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) log_list: Vec<LogListSource>,

    /// Fetch checkpoints and post cosignatures, if the server cannot reach this machine
    #[arg(long)]
    pub(crate) poll: bool,

    #[command(flatten)]
    pub(crate) flags: CopyFlags,
}

impl MirrorArgs {
    pub(crate) fn into_settings(self) -> GivenSettings {
        GivenSettings { mirror_of: Some(self.origin), ..self.flags.into() }
    }
}

impl WitnessArgs {
    pub(crate) fn into_settings(self, witness: WitnessSettings) -> GivenSettings {
        GivenSettings { mirror_of: Some(self.origin), witness: Some(witness), ..self.flags.into() }
    }
}

/// Where the server's files are.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// The server's data directory [default: ./countersign-data, or else that of the packaged configuration]
    #[arg(long, value_name = "DIR", env = "COUNTERSIGN_DATA_DIR", hide_env_values = true)]
    pub(crate) data_dir: Option<PathBuf>,

    /// Configuration file (TOML) [default: /etc/countersign/countersign.toml, unless ./countersign-data is there]
    #[arg(long, value_name = "FILE", env = "COUNTERSIGN_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FsckArgs {
    /// A server's data directory, its repository, a clone of it, or the URL of a running server
    #[arg(value_name = "DATA_DIR|URL")]
    pub(crate) target: PathBuf,

    /// Keep the copy that is made of a running server, and fetch only what is new next time
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Trust the state at this commit, and check only what came after it
    #[arg(long, value_name = "COMMIT", value_parser = parse_commit)]
    pub(crate) since: Option<ObjectId>,
}

/// An abbreviation, or the name of a branch, would let the repository choose which commit is meant.
fn parse_commit(text: &str) -> Result<ObjectId, &'static str> {
    const WRONG: &str = "write all 40 hexadecimal digits of the commit, as the check before printed them";
    ObjectId::from_hex(text.as_bytes()).map_err(|_| WRONG)
}

#[derive(Debug, Args)]
pub(crate) struct ProjectsArgs {
    /// Only this project (acme/app, its URL or its path), or those below a directory, as in https/github.com/443/acme
    #[arg(value_name = "NAME", value_parser = parse_path_or_url)]
    pub(crate) below: Option<RepoPath>,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}

fn parse_path_or_url(text: &str) -> Result<RepoPath, PathError> {
    path_of_url(text).map_or_else(|| RepoPath::parse(text), Ok)
}

#[derive(Debug, Args)]
pub(crate) struct BlockArgs {
    /// A key (svc-pub:…, an ssh-ed25519 line or a .pub file), a host, a project, or a directory of projects
    #[arg(value_name = "KEY|HOST|PROJECT")]
    pub(crate) what: String,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DropArgs {
    /// Project (acme/app, its URL or its path)
    pub(crate) project: String,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}
