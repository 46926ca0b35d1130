//! The command line. Its texts are the reference: docs/cli.md is made from them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::{output::ColorChoice, prompt::Confirmation};

pub(crate) use client::*;
pub(crate) use serve::{AdminCommand, DropArgs, FileArgs, FsckArgs, ResetNoncesArgs, ServeArgs};

mod client;
#[cfg(test)]
mod reference;
mod serve;

const DEFAULT_SERVER: &str = "http://127.0.0.1:3000";

/// Collects enough of the right signatures on software releases, and lets anyone check them.
#[derive(Debug, Parser)]
#[command(
    version,
    arg_required_else_help = true,
    after_help = "\
Try it:     countersign demo
Download:   countersign download https://github.com/acme/app/releases/download/v1.0/app.tar.gz
Sign:       countersign pending; countersign sign --all

Exit codes: 0 fine, 1 other error, 2 usage, 3 verification failed, 4 revoked, 5 not reachable."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every client command understands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The signing server
    #[arg(long, global = true, value_name = "URL", env = "COUNTERSIGN_SERVER", hide_env_values = true, default_value = DEFAULT_SERVER)]
    pub(crate) server: String,

    /// Your key: an OpenSSH private key, or a .pub file whose private half the agent at SSH_AUTH_SOCK has
    #[arg(long, global = true, value_name = "FILE", env = "COUNTERSIGN_KEY", hide_env_values = true)]
    pub(crate) key: Option<PathBuf>,

    /// Read the passphrase of the key from the first line of this file instead of asking
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,

    /// Do not ask: sign, revoke or forget what is shown
    #[arg(long, short = 'y', global = true)]
    pub(crate) yes: bool,

    /// Print one JSON object on standard output, for errors too
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Print nothing but errors, questions and what was asked for
    #[arg(long, short = 'q', global = true)]
    pub(crate) quiet: bool,

    /// Colours
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: ColorChoice,
}

impl GlobalArgs {
    pub(crate) fn confirmation(&self) -> Confirmation {
        if self.yes { Confirmation::Given } else { Confirmation::Ask }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Download a file that enough of the right people have signed
    #[command(after_help = "\
Examples:
  countersign download https://github.com/acme/app/releases/download/v1.0/app.tar.gz
  countersign download https://dl.example.org/acme/app/1.0/app.tar.gz --signers-digest sha512:…

The file gets its name only after every check has passed. On the first download from a project its signers file is \
read from the project's own forge as well, and remembered; later, the history that the server shows must continue \
what was remembered. Without a forge to ask, take the digest of the signers file from a place that you trust and \
pass it as --signers-digest (`sha512sum svc.signers.json`).")]
    Download(DownloadArgs),
    /// Verify a file that you already have
    #[command(after_help = "\
Examples:
  countersign verify app.tar.gz --url https://github.com/acme/app/releases/download/v1.0/app.tar.gz
  countersign verify app.tar.gz --bundle app.bundle.json          without any network")]
    Verify(VerifyArgs),
    /// Save everything that is needed to verify a release offline, in one file
    #[command(after_help = "\
Example:
  countersign bundle https://github.com/acme/app/releases/download/v1.0/app.tar.gz -o app.bundle.json

It covers all files of the release. A computer that does not know the project needs the digest that this prints, from \
a place that it trusts: countersign verify FILE --bundle BUNDLE --signers-digest sha512:…")]
    Bundle(BundleArgs),
    /// Show the history of a project's signers, verified link by link
    #[command(after_help = "\
Examples:
  countersign chain https/github.com/443/acme/app                    the whole history
  countersign chain https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json    up to who signed it

PATH may also be written as a URL.")]
    Chain(ChainArgs),
    /// Show or forget the projects that this computer has accepted
    Trust {
        #[command(subcommand)]
        command: TrustCommand,
    },
    /// Make a key pair in OpenSSH format: FILE and FILE.pub
    #[command(after_help = "\
Keys of `ssh-keygen -t ed25519` work as well, and so does an agent: `--key FILE.pub` signs through SSH_AUTH_SOCK. \
Without a terminal to ask for a passphrase, pass --password-file FILE or --no-password.")]
    Keygen(KeygenArgs),
    /// Make or check a signers file
    Signers {
        #[command(subcommand)]
        command: SignersCommand,
    },
    /// Register a project by the URL of its signers file
    #[command(after_help = "\
Examples:
  countersign register https://github.com/acme/app/blob/main/svc.signers.json
  countersign register https://dl.example.org/acme/app/svc.signers.json

Everyone who is listed in the file then signs it once: countersign sign --all")]
    Register(ProposeArgs),
    /// Propose a new signers file for a registered project
    #[command(after_help = "\
Example:
  countersign update https://github.com/acme/app/blob/main/svc.signers/next.json

Publish the new file beside the one in force, propose it, and have it signed: by enough of the admins before and \
after, and by everyone who joins. Once it is in force, put it in the place of the old one.")]
    Update(ProposeArgs),
    /// Register a release, so that it can be signed
    #[command(after_help = "\
Examples:
  countersign release https://github.com/acme/app/releases/tag/v1.0
  countersign release --checksums https://dl.example.org/acme/app/1.0/SHA256SUMS")]
    Release(ReleaseArgs),
    /// List what waits for your signature
    Pending,
    /// Sign releases and signers files, after showing what they are
    #[command(after_help = "\
Examples:
  countersign sign --all
  countersign sign https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json --files dist --require-match

On a computer without a network:
  countersign sign PATH --export request.json            where there is a network, with any key
  countersign sign --detached request.json -o signatures.json      where the key is
  countersign sign --submit signatures.json              where there is a network, with any key")]
    Sign(SignArgs),
    /// Show who has signed a file, and who is missing
    #[command(after_help = "\
Examples:
  countersign status https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json
  countersign status --wait --timeout 2h https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json

With --wait it ends with 0 once a release is complete, or proposed signers are in force; with 4 where the release was \
revoked; with 1 where it was replaced or dropped, or the time is over. It survives restarts of the server. No key is \
needed. What it tells is what the server says: `countersign verify` and `countersign download` prove it.")]
    Status(StatusArgs),
    /// Print what happens on the server, as it happens
    #[command(after_help = "\
Examples:
  countersign watch                                         everything, until Ctrl-C
  countersign watch https/github.com/443/acme               of one owner
  countersign watch --mine --type registration,proposal,release --key KEY     what I am asked to sign
  countersign watch --json --since COMMIT                   also what happened since

One line for each event: when, what, where, and by which key. Without --since it begins now. After a lost connection it \
goes on where it was. Events are what the server says, and prove nothing.")]
    Watch(WatchArgs),
    /// Revoke a release that is fully signed
    #[command(after_help = "\
Examples:
  countersign revoke https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json --reason \"leaks keys\"
  countersign revoke https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json     co-sign what others began

Where the signers file has no revocation keys, one admin is enough. It cannot be undone.")]
    Revoke(RevokeArgs),
    /// Ask the server whether it is there and, with --key, whether it accepts your signature
    Ping,
    /// See it all at work on this computer, in a few seconds
    #[command(after_help = "\
Starts a signing server and a file server in a temporary directory, and goes through everything with them: keys, \
registration, a release signed by two of three, a verified download, a tampered file, a change of signers, a \
revocation. Needs no network and leaves nothing behind.")]
    Demo(DemoArgs),
    /// Print a completion script for your shell
    #[command(after_help = "\
Example:
  countersign completions bash > ~/.local/share/bash-completion/completions/countersign")]
    Completions(CompletionsArgs),
    /// Serve the files of a directory on this computer, to try things out
    ServeFiles(ServeFilesArgs),
    /// Run the signing server
    #[command(after_help = "\
Examples:
  countersign serve --dev                        try it out on this machine
  countersign serve --file-server dl.example.org let projects on that host register
  countersign serve --config countersign.toml    everything from a file

Every flag of the server can also be set by its environment variable, or by a key of the same name (with _ for -) in \
the configuration file. A flag beats the environment, which beats the file.")]
    Serve(ServeArgs),
    /// Maintain the data directory of a server that is stopped
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Check that every commit of a server's repository is a legal change
    #[command(after_help = "\
Examples:
  countersign fsck countersign-data              the data directory, also beside a running server
  countersign fsck signing-history.git           a clone of its repository
  countersign fsck countersign-data --since 4f…  only what came after a commit that was checked before

Replays the whole history by the server's own rules, and verifies each change, every signature and every threshold. \
Names commit and file of whatever does not fit, and exits with 3 then. Only reads. The last line of a good check is \
the commit to pass as --since next time; keep it in a safe place: with it, a history that was cut off or rewritten \
is found out as well.")]
    Fsck(FsckArgs),
}
