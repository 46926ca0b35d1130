//! The arguments of `countersign signers`.

use std::{path::PathBuf, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand, parser::ValueSource};
use countersign_core::documents::signers::Role;
use countersign_core::values::{other_format::OtherFormat, shown::shown_text};

use crate::args::client::{parse_duration, parse_format, parse_number};
use crate::words::error::CliError;

#[derive(Debug, Subcommand)]
pub(crate) enum SignersCommand {
    /// Write a signers file
    #[command(after_help = "\
KEY is a .pub file, a svc-pub: string or an ssh-ed25519 line. A name in front is optional:

  countersign signers new --artifact alice=alice.pub bob=bob.pub --threshold 2 -o FILE

A role can have several groups, which must all agree. Give each its keys and its threshold, artifact.1 for the first:

  countersign signers new --artifact alice=a.pub bob=b.pub --artifact build=build.pub \\
    --threshold artifact.1:1 --threshold artifact.2:1 -o FILE

A registrar is the key of a CI job. It registers releases, and cannot sign, propose, correct or revoke anything:

  countersign signers new --artifact alice=a.pub bob=b.pub --threshold 2 \\
    --registrar ci=ci.pub -o FILE

Builders build each release anew from its source, and state what they got. Their keys can do nothing else. With \
--require-rebuilds clients refuse a release until enough builders got the same:

  countersign signers new --artifact alice=a.pub bob=b.pub --threshold 2 \\
    --builder carol=c.pub dave=d.pub erin=e.pub --threshold builder:2 \\
    --rebuild-files '*.tar.gz' -o FILE

A log proves which release was completed last, and that it is not revoked. Witnesses make sure that the log shows everyone \
the same. Keys of both have the form NAME+ID+KEY; a server with a log shows its key at /log/key:

  countersign signers new --artifact alice=a.pub bob=b.pub --threshold 2 \\
    --log \"$(curl -s https://sign.example.org/log/key)\" \\
    --witness KEY KEY KEY --witness-threshold 2 --max-age 24h -o FILE

Require more than half of the witnesses. Otherwise the log alone can show different people different states. Name those that \
replay the rules, as `countersign witness` does, with --replaying. Otherwise the log alone can show everyone a false state.")]
    New(SignersNewArgs),
    /// Make the next signers file from the one in force
    #[command(after_help = "\
Examples:
  countersign signers edit acme/app --add dave=dave.pub --threshold 2 -o next.json
  countersign signers edit acme/app --replace bob=bob-new.pub -o next.json     a lost key
  countersign signers edit svc.signers.json --remove carol --add admin:dave=dave.pub
  countersign signers edit acme/app --add registrar:ci=ci.pub                  a key for CI
  countersign signers edit acme/app --add builder:carol=carol.pub --threshold builder:1
  countersign signers edit acme/app --log KEY --witness KEY KEY KEY --witness-threshold 2
  countersign signers edit acme/app --replaying witness.example
  countersign signers edit acme/app --max-age 7d

ROLE is artifact, admin, master, revocation, builder or registrar; without one it is artifact. Of several groups, artifact.2 is the second. \
The command shows what changes and what the new file withstands. Publish the file, and propose it with \
`countersign update`.")]
    Edit(SignersEditArgs),
    /// Validate a signers file; show who can act alone, how many keys can be lost or stolen, and how many witnesses
    /// must collude to deceive
    #[command(after_help = "\
Examples:
  countersign signers check svc.signers.json       a file, without a server
  countersign signers check acme/app               the file in force, and when each key last signed

For a project, the command also says what it would mean to lose the keys that have not signed for a year.")]
    Check(SignersCheckArgs),
    /// Show the history of a project's signers, verified link by link
    #[command(after_help = "\
Examples:
  countersign signers history acme/app             the whole history
  countersign signers history acme/app v1.0        up to the signers of that release

NAME can also be a path or a URL.")]
    History(SignersHistoryArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SignersHistoryArgs {
    /// A project, or a release
    #[arg(value_name = "NAME", num_args = 1..=2, required = true)]
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SignersCheckArgs {
    /// The signers file, or a project, whose signers file in force is read from its server
    #[arg(value_name = "PROJECT|FILE")]
    pub(crate) source: String,

    /// Read the project from a data directory, a bare repository or a clone; needs no network
    #[arg(long, value_name = "DIR")]
    pub(crate) repository: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SignersNewArgs {
    #[command(flatten)]
    pub(crate) roles: RoleKeys,

    /// How many signatures a role needs, as in 2 or admin:1; once for each role that has keys
    // The alias is the spelling of earlier scripts.
    #[arg(long, value_name = "[ROLE:]N", alias = "artifact-threshold", required = true)]
    pub(crate) threshold: Vec<String>,

    #[command(flatten)]
    pub(crate) rebuilds: WantedRebuildArgs,

    /// Keys of machines that register new releases, and can do nothing else
    #[arg(long = "registrar", value_name = "KEY", num_args = 1..)]
    pub(crate) registrars: Vec<String>,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[command(flatten)]
    pub(crate) servers: ListedServerArgs,

    /// Ask artifact signers to sign in these formats as well, for users of other programs: ssh, minisign, openpgp, or
    /// several as in ssh,openpgp
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', value_parser = parse_format)]
    pub(crate) format: Vec<OtherFormat>,

    /// How many hours a rotation waits if the masters have not signed it, 1 to 720; masters can veto it meanwhile
    #[arg(long, value_name = "HOURS", value_parser = parse_number::<u64>)]
    pub(crate) rotation_delay: Option<u64>,

    /// Where to write the file [default: standard output]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SignersEditArgs {
    /// The project, whose signers file in force is read from its server, or a signers file
    #[arg(value_name = "PROJECT|FILE")]
    pub(crate) source: String,

    /// Add a key, as in dave=dave.pub or admin:dave=dave.pub; can be repeated
    #[arg(long, value_name = "[ROLE:]NAME=KEY")]
    pub(crate) add: Vec<String>,

    /// Remove a key from every role; can be repeated
    #[arg(long, value_name = "NAME|KEY")]
    pub(crate) remove: Vec<String>,

    /// Put a new key in the place of another, in every role; can be repeated
    #[arg(long, value_name = "OLD=NEW")]
    pub(crate) replace: Vec<String>,

    /// How many signatures a role needs, as in 2 or admin:1; can be repeated
    #[arg(long, value_name = "[ROLE:]N")]
    pub(crate) threshold: Vec<String>,

    #[command(flatten)]
    pub(crate) rebuilds: WantedRebuildArgs,

    /// Let clients accept releases that no builder has reproduced
    #[arg(long, conflicts_with = "require_rebuilds")]
    pub(crate) no_require_rebuilds: bool,

    /// Remove the builders and what is wanted of them; with --add builder:NAME=KEY, before the new ones are added
    #[arg(long)]
    pub(crate) no_rebuilds: bool,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    /// Remove the log and its witnesses; with --log, before the new one is added
    #[arg(long)]
    pub(crate) no_log: bool,

    #[command(flatten)]
    pub(crate) servers: ListedServerArgs,

    /// Ask artifact signers to sign in these formats, and no others, as well: ssh, minisign, openpgp, or several
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', value_parser = parse_format)]
    pub(crate) format: Vec<OtherFormat>,

    /// Ask for no other formats
    #[arg(long, conflicts_with = "format")]
    pub(crate) no_formats: bool,

    /// Let rotations wait this many hours, 1 to 720; lowering it takes effect only after the delay in force
    #[arg(long, value_name = "HOURS", value_parser = parse_number::<u64>)]
    pub(crate) rotation_delay: Option<u64>,

    /// Let rotations take effect at once
    #[arg(long, conflicts_with = "rotation_delay")]
    pub(crate) no_rotation_delay: bool,

    /// Where to write the file [default: standard output]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What clap asks of options that are declared and read by hand.
macro_rules! by_hand {
    ($options:ty) => {
        impl Args for $options {
            fn augment_args(command: Command) -> Command {
                Self::declare(command)
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::declare(command)
            }
        }

        impl FromArgMatches for $options {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self::read(matches))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::read(matches);
                Ok(())
            }
        }
    };
}

by_hand!(RoleKeys);
by_hand!(WitnessKeys);
by_hand!(ListedServerArgs);

/// The keys of each role, one list for each time that its option was given. By hand, because a list does not say which
/// keys were given together.
#[derive(Debug, Default)]
pub(crate) struct RoleKeys(pub(crate) Vec<(Role, Vec<Vec<String>>)>);

/// The keys of the witnesses, in lists as those of a role.
#[derive(Debug, Default)]
pub(crate) struct WitnessKeys(pub(crate) Vec<Vec<String>>);

/// A group as its options give it. Keys are text: not every key there is a signer's.
#[derive(Debug)]
pub(crate) struct GivenGroup {
    pub(crate) threshold: usize,
    pub(crate) keys: Vec<String>,
}

/// Names a group: its role, and which of the role's groups it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupName {
    pub(crate) role: Role,
    /// The number of the group, counted from 0, or `None` if the role is given alone.
    pub(crate) number: Option<usize>,
}

impl GroupName {
    /// A threshold as the user writes it: `admin:2`, `artifact.2:1` or `2`.
    pub(crate) fn split_threshold(text: &str) -> Result<(Self, usize), CliError> {
        let (group, number) = Self::split(text)?;
        let threshold = number.parse().map_err(|_| {
            let message = format!("`--threshold {}` must be N or ROLE:N", shown_text(text));
            CliError::usage(message, "as in --threshold 2 or --threshold admin:1")
        })?;
        Ok((group, threshold))
    }

    /// `admin:REST`, `artifact.2:REST` or `REST`.
    pub(crate) fn split(text: &str) -> Result<(Self, &str), CliError> {
        let plain = (Self { role: Role::Artifact, number: None }, text);
        let Some((group, rest)) = text.split_once(':') else { return Ok(plain) };
        let (name, number) =
            group.split_once('.').map_or((group, None), |(name, number)| (name, Some(number)));
        // What is no role is the beginning of a key.
        let Some(role) = Role::ALL.into_iter().find(|role| role.name() == name) else {
            return Ok(plain);
        };
        let Some(number) = number else { return Ok((Self { role, number: None }, rest)) };
        match number.parse::<usize>().ok().and_then(|number| number.checked_sub(1)) {
            number @ Some(_) => Ok((Self { role, number }, rest)),
            None => Err(CliError::usage(
                format!("`{}` names no group", shown_text(group)),
                format!("{name}.1 is the first group, {name}.2 the second"),
            )),
        }
    }

    pub(crate) fn name(self) -> String {
        let name = self.role.name();
        self.number.map_or_else(|| name.to_owned(), |number| format!("{name}.{}", number + 1))
    }
}

fn role_help(role: Role) -> &'static str {
    match role {
        Role::Artifact => "Who signs releases",
        Role::Admin => "Who changes the signers [default: the artifact signers]",
        Role::Master => {
            "Who can change the signers when the admins have lost their keys; a master key has no other role"
        }
        Role::Revocation => "Who revokes releases [default: any one admin]",
        Role::Builder => {
            "Who builds releases anew from the source and states what came out; a builder has no other role"
        }
    }
}

impl RoleKeys {
    fn declare(command: Command) -> Command {
        Role::ALL.into_iter().fold(command, |command, role| {
            let keys = keys_option(role.name()).value_name("KEY");
            command.arg(keys.required(role == Role::Artifact).help(role_help(role)))
        })
    }

    fn read(matches: &ArgMatches) -> Self {
        Self(Role::ALL.map(|role| (role, read_occurrences(matches, role.name()))).into())
    }
}

const WITNESS: &str = "witness";

impl WitnessKeys {
    fn declare(command: Command) -> Command {
        let keys = keys_option(WITNESS).value_name("VKEY");
        command.arg(keys.help("The keys of all witnesses of the log; can be repeated"))
    }

    fn read(matches: &ArgMatches) -> Self {
        Self(read_occurrences(matches, WITNESS))
    }
}

fn keys_option(name: &'static str) -> Arg {
    Arg::new(name).long(name).num_args(1..).action(ArgAction::Append)
}

/// The values of an option, one list for each time that it was given.
fn read_occurrences(matches: &ArgMatches, option: &str) -> Vec<Vec<String>> {
    let given = matches.get_occurrences::<String>(option);
    given.map(|given| given.map(|keys| keys.cloned().collect()).collect()).unwrap_or_default()
}

/// The log that a signers file is to name, its witnesses in the order in which they were given, and the age of proofs.
#[derive(Debug, Default, Args)]
pub(crate) struct LogArgs {
    /// The key of the log that proves the newest state of the project, as in sign.example.org/log+ID+KEY
    #[arg(long, value_name = "VKEY")]
    pub(crate) log: Option<String>,

    #[command(flatten)]
    pub(crate) witnesses: WitnessKeys,

    /// How many of them must have seen a state
    #[arg(long, value_name = "N")]
    pub(crate) witness_threshold: Vec<usize>,

    /// Witnesses that replay the rules before they cosign, by their keys or names; ask their operators
    #[arg(long, value_name = "WITNESS", num_args = 1..)]
    pub(crate) replaying: Vec<String>,

    /// Witnesses that no longer count as replaying
    #[arg(long, value_name = "WITNESS", num_args = 1..)]
    pub(crate) not_replaying: Vec<String>,

    /// How old a proof can be, as in 30m, 24h or 7d [default, with new witnesses: 24h]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) max_age: Option<Duration>,
}

/// What a signers file is to want of builders.
#[derive(Debug, Default, Args)]
pub(crate) struct WantedRebuildArgs {
    /// The files that builders make, as in '*.tar.gz'; a star stands for any text [default: all files]
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub(crate) rebuild_files: Vec<String>,

    /// Let clients refuse releases that builders have not reproduced
    #[arg(long)]
    pub(crate) require_rebuilds: bool,
}

impl LogArgs {
    /// Puts witnesses into groups. One threshold is that of all keys. With more, each is that of the keys before it.
    pub(crate) fn witness_groups(&self) -> Result<Vec<GivenGroup>, CliError> {
        let (all, thresholds) = ([self.witnesses.0.concat()], &self.witness_threshold);
        let groups = if thresholds.len() == 1 { &all[..] } else { &self.witnesses.0 };
        let (given, needed) = (groups.len(), thresholds.len());
        if given != needed {
            return Err(CliError::usage(
                format!("--witness is given {given} times, and --witness-threshold {needed} times"),
                "give each group its threshold: --witness KEY… --witness-threshold N",
            ));
        }
        let pairs = thresholds.iter().zip(groups);
        Ok(pairs.map(|(threshold, keys)| GivenGroup { threshold: *threshold, keys: keys.clone() }).collect())
    }
}

/// The servers that a signers file is to name. Here `--server` is not the server to ask.
#[derive(Debug, Default)]
pub(crate) struct ListedServerArgs {
    pub(crate) urls: Vec<String>,
}

/// The global option of this name has it too, so that this one takes its place.
const SERVER: &str = "server";

impl ListedServerArgs {
    fn declare(command: Command) -> Command {
        command.arg(
            Arg::new(SERVER)
                .long(SERVER)
                .value_name("URL")
                .action(ArgAction::Append)
                .help("A server that clients ask about the project, written into the file; can be repeated, the best first"),
        )
    }

    fn read(matches: &ArgMatches) -> Self {
        // COUNTERSIGN_SERVER says which server to ask, not which to list.
        let is_given = matches.value_source(SERVER) == Some(ValueSource::CommandLine);
        let urls = matches.get_many::<String>(SERVER).filter(|_| is_given);
        Self { urls: urls.map(|urls| urls.cloned().collect()).unwrap_or_default() }
    }
}
