//! The command line. A test makes docs/cli.md from its texts. A new command also needs its name in `help.rs`.

mod client;
pub(crate) mod help;
mod serve;
mod signers;

use clap::{Parser, Subcommand};
use countersign_server::operate::config::GivenSettings;

pub(crate) use crate::args::{client::*, serve::*, signers::*};
use crate::words::output::quote;

/// Collects signatures on software releases, and lets anyone check them.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Command {
    /// The one release or project that the command is about, as the user typed it.
    pub(crate) fn named(&self) -> Option<String> {
        let names = match self {
            Self::Download(args) => &args.names,
            Self::Bundle(args) => &args.names,
            Self::Export(args) => &args.names,
            Self::Staple(args) => &args.names,
            Self::Signers { command: SignersCommand::History(args) } => &args.names,
            Self::Sign(args) => &args.names,
            Self::Status(args) => &args.names,
            Self::Withdraw(args) => &args.names,
            Self::Object(args) => &args.names,
            Self::Rebuild(args) => &args.names,
            Self::Revoke(args) => &args.names,
            Self::Veto(args) => &args.names,
            _ => return None,
        };
        (1..=2)
            .contains(&names.len())
            .then(|| names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(" "))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Download a file and verify that enough of the right people signed it
    #[command(after_help = "\
Examples:
  countersign download https://github.com/acme/app/releases/download/v1.0/app.tar.gz
  countersign download https://dl.example.org/acme/app/1.0/app.tar.gz --signers-digest sha512:…

The file gets its name only after every check has passed. On the first download from a project, the client also reads \
the signers file from the project's own forge and remembers it. Later, the history that the server shows must continue \
the remembered one. If the client cannot ask a forge, take the digest of the signers file from a place that you trust \
and pass it as --signers-digest (`sha512sum svc.signers.json`).")]
    Download(DownloadArgs),
    /// Verify a file that you already have
    #[command(after_help = "\
Examples:
  countersign verify app.tar.gz --url https://github.com/acme/app/releases/download/v1.0/app.tar.gz
  countersign verify app.tar.gz --bundle app.bundle.json          without any network")]
    Verify(VerifyArgs),
    /// Save the evidence for a release in one file, to verify it offline
    #[command(after_help = "\
Example:
  countersign bundle https://github.com/acme/app/releases/download/v1.0/app.tar.gz \\
      -o app.bundle.json

The bundle covers all files of the release. To verify it on a computer that does not know the project, pass the digest \
that this command prints, from a place that you trust:
  countersign verify FILE --bundle BUNDLE --signers-digest sha512:…")]
    Bundle(BundleArgs),
    /// Write a release for verification with tools that people already have
    #[command(after_help = "\
Examples:
  countersign export https://github.com/acme/app/releases/tag/v1.0 -o app-1.0-openssl --for openssl
  sh app-1.0-openssl/verify.sh ~/Downloads      on any computer, with OpenSSL 3 and no countersign

The client verifies the release as `countersign download` does. A revoked release, or one that still collects signatures, \
is refused. Then it writes the signed index, the signers file, the signatures, the keys, a SHA256SUMS and verify.sh. \
Nothing is signed. The script checks every signature, counts the signers of each group, and then checks the files that \
are in the directory.

The script cannot vouch for itself. The command prints its SHA-256: publish it where your users trust you. Another export \
gives the same script until a revocation begins or a builder adds a statement, so anyone can compare. The script does not \
know of a later revocation. docs/export.md says what else it does not check.")]
    Export(ExportArgs),
    /// Save what the log proves about a release now, in its bundle or in a file
    #[command(after_help = "\
Examples:
  countersign staple app.bundle.json                                  a new staple for a bundle
  countersign staple https/github.com/443/acme/app v1.0 -o app.staple.json
  countersign verify app.tar.gz --bundle app.bundle.json --staple app.staple.json --max-age 1d

A staple of a few kilobytes shows, offline, that witnesses of the server's log saw the release complete and not revoked, \
when, and whether it was the newest. Put it beside the files of the release, on any host, and renew it as often as your \
users want it to be fresh.")]
    Staple(StapleArgs),
    /// Show or forget the projects and logs that this computer has accepted
    Trust {
        #[command(subcommand)]
        command: TrustCommand,
    },
    /// Show or set which server, key, policy and age of proofs are used, for all projects, a host or one project
    #[command(after_help = "\
Examples:
  countersign config                                          show everything that is set
  countersign config set server https://sign.example.org     for all projects
  countersign config set server https://sign.example.org --host github.com
  countersign config set key ~/.ssh/id_release --project https/github.com/443/acme/app

The settings are in config.toml in the configuration directory, and you can edit that file:

  server = \"https://sign.example.org\"

  [servers.\"github.com\"]
  server = \"https://sign.example.org\"

  [projects.\"https/github.com/443/acme/app\"]
  server = \"https://sign.acme.example\"
  key = \"~/.ssh/id_release\"
  policy = \"acme.policy\"
  max-age = \"12h\"

A policy file (c2sp.org/tlog-policy) says which log and witnesses must show the newest state, whatever signers files say:

  log sign.acme.example/log+7a5b3c2d+AQ…
  witness alpha witness.example.org/alpha+1b2c3d4e+BA…
  witness beta beta.example.net+5f6a7b8c+BA…
  group both all alpha beta
  quorum both
  #countersign replaying alpha
  #countersign max-age 12h

Lines with #countersign are comments to other tools. They name witnesses that replay the rules, and say how old a proof can \
be. Without an age it is the max-age that is set, else a day.

A project's setting beats its host's, which beats the one for all. The client remembers a project's server when it first \
meets the project. If the project's signers file named the server, `discovered = true` stands beside it: the client asks \
such a server only over https and at a public address. --server, --key and their environment variables beat the file.")]
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
    /// Begin: make a signers file, and a key if you have none
    #[command(after_help = "\
Examples:
  countersign init                                       asks for everything
  countersign init https://github.com/acme/app --name alice \\
      --signer bob=bob.pub carol=carol.pub --threshold 2 --server https://sign.example.org

Writes svc.signers.json, and says which commands come next. Your own key is the one that --key names, that is set, that \
the agent holds, or that is in ~/.ssh/id_ed25519. If you have no key yet, the command makes one there. It replaces no file. \
Without a terminal, it names the flag of each missing answer.

The file lists you and the others as artifact signers. `countersign signers new` also writes other roles, registrars for CI \
and logs.")]
    Init(InitArgs),
    /// Make a key pair in OpenSSH format: FILE and FILE.pub
    #[command(after_help = "\
Examples:
  countersign keygen                          ~/.ssh/id_ed25519, which is used without --key
  countersign keygen --out ~/.ssh/id_release

Replaces no file. Keys from `ssh-keygen -t ed25519` work too. So does an agent: `--key FILE.pub` signs through SSH_AUTH_SOCK. Without a \
terminal, pass --password-file FILE or --no-password.")]
    Keygen(KeygenArgs),
    /// Make, change or check a signers file
    Signers {
        #[command(subcommand)]
        command: SignersCommand,
    },
    /// Register a project by the URL of its signers file
    #[command(after_help = "\
Examples:
  countersign register https://github.com/acme/app/blob/main/svc.signers.json
  countersign register https://dl.example.org/acme/app/svc.signers.json

Then everyone in the file signs it once: countersign sign --all")]
    Register(ProposeArgs),
    /// Propose a new signers file for a registered project
    #[command(after_help = "\
Example:
  countersign update https://github.com/acme/app/blob/main/svc.signers/next.json

Publish the new file beside the one in force, and propose it. Enough of the old admins, enough of the new admins and \
every added key must sign it. If the file in force has `rotation_delay_hours`, it then waits that many hours, unless the \
masters have signed as well. Until then the masters can stop it with \
`countersign veto`. Once it is in force, put it in the place of the old file.")]
    Update(ProposeArgs),
    /// Register a release for signing
    #[command(after_help = "\
Examples:
  countersign release https://github.com/acme/app/releases/tag/v1.0
  countersign release acme/app v1.0                a registered project on a forge: the same page
  countersign release --checksums https://dl.example.org/acme/app/1.0/SHA256SUMS

A release that still collects signatures can be registered again, to correct it. Its signatures are then dropped. The command \
names them, and asks first.")]
    Release(ReleaseArgs),
    /// List what waits for your signature; needs no passphrase
    #[command(after_help = "\
Examples:
  countersign pending
  countersign pending --type release --project https/github.com/443/acme/app
  countersign pending --for alice.pub --json

Begun revocations come first. You can paste NAME after `countersign sign`, `countersign status` or \
`countersign revoke`.")]
    Pending(PendingArgs),
    /// Show releases and signers files, then sign them
    #[command(after_help = "\
Examples:
  countersign sign --all
  countersign sign acme/app v1.0 --files dist      only if dist holds the same files

On a computer without a network:
  countersign sign NAME --export request.json                      online, without a key
  countersign sign --detached request.json -o signatures.json      offline, with your key
  countersign sign --submit signatures.json                        online, with any key

Objections of other signers come first. You cannot take a signature back, because anyone can submit it again. \
If you signed by mistake, `countersign object` tells the signers after you, and `countersign withdraw` takes the release \
back while it collects signatures.")]
    Sign(SignArgs),
    /// Show how far a release or a project is, and who is missing
    #[command(after_help = "\
Examples:
  countersign status acme/app                       the project: who signs, and what is open
  countersign status acme/app v1.0                  one release; acme/app@v1.0 is the same
  countersign status acme/app@latest                the newest release
  countersign status acme/app v1.0 --wait --timeout 2h

With --wait, the command exits with 0 once the release is complete or the proposed signers are in force. Other exit codes \
(and their `kind` with --json):
  4  revoked    the release was revoked
  6  timed_out  the time is over
  7  replaced   another file was registered in its place
  8  refused    the file was withdrawn or dropped, or the server refuses to show it

It keeps waiting when the server restarts, and needs no key. It repeats what the server says. `countersign verify` and \
`countersign download` prove it.")]
    Status(StatusArgs),
    /// List the releases of a project, the newest first
    #[command(after_help = "\
Examples:
  countersign releases acme/app
  countersign releases https://github.com/acme/app --json

The highest version comes first. You can name each release in other commands, as in `countersign status acme/app v1.0`. \
The command repeats what the server says.")]
    Releases(ReleasesArgs),
    /// Find projects on your servers by parts of their addresses
    #[command(after_help = "\
Examples:
  countersign search acme                       all projects with acme in their address
  countersign search github.com cli             both words
  countersign search acme --server https://sign.example.org

A project that is called like the one you look for can be someone else's. Compare its address with the one that you know.")]
    Search(SearchArgs),
    /// Print what happens on the server, as it happens
    #[command(after_help = "\
Examples:
  countersign watch                                         everything, until Ctrl-C
  countersign watch https/github.com/443/acme               one owner
  countersign watch --mine --type registration,proposal,release --key KEY   what I am asked to sign
  countersign watch --json --since COMMIT                   begin after COMMIT

Prints one line for each event: time, kind, path and key. Without --since it begins now. After a lost connection it \
continues where it stopped. Events are what the server says. They prove nothing.")]
    Watch(WatchArgs),
    /// Take back a release that still collects signatures
    #[command(after_help = "\
Example:
  countersign withdraw https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json \\
      --reason \"wrong tag\"

The key that registered the release can do this, and every admin. The release and its signatures are gone, and another \
one can be registered in its place. Until then `countersign status` and the pages say who withdrew it, when and why. \
A complete release is revoked instead: `countersign revoke`.")]
    Withdraw(WithdrawArgs),
    /// Object to a release, for everyone who signs it later to see
    #[command(after_help = "\
Examples:
  countersign object https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json \\
      --reason \"linux-arm64 does not match my build\"
  countersign object https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json --withdraw

Every signer of the current signers file can object, while the release collects signatures and after it is complete. Your \
objection is signed, and blocks nothing. Signers see it before they sign, and it is on pages and badges. You can take it \
back.

A signature is different: you cannot take it back, because anyone can submit it again. Objecting needs a network.")]
    Object(ObjectArgs),
    /// State what you built from the source of a release
    #[command(after_help = "\
Examples:
  countersign rebuild acme/app v1.0 --files dist --source \"$(git rev-parse HEAD)\" \\
    --key builder --yes

With a key on a computer without a network:
  countersign rebuild NAME --files DIR --source COMMIT --export request.json  online, without a key
  countersign rebuild --detached request.json -o rebuild.json                 offline, with your key
  countersign rebuild --submit rebuild.json                                   online, with any key

For builders, whom a project names in its signers file under `rebuilds`. You build the release yourself, and this command \
builds nothing: it compares the files in DIR with the release, shows what it finds, and signs that. Only files are stated \
that are there and that builders make. What you did not build is listed. You can state it later, also from another machine: \
what you stated before of the same commit stays.

If a file differs, it is stated as well, and everyone sees it before anything else. The exit code is 3 then, and another \
one if nothing was stated. While the release collects signatures, you can state something else later. Once it is complete, \
you can only add files to what you stated.")]
    Rebuild(RebuildArgs),
    /// Revoke a release that is fully signed
    #[command(after_help = "\
Examples:
  countersign revoke https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json \\
      --reason \"leaks keys\"
  countersign revoke https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json

The second one joins a revocation that others began.

With a key on a computer without a network:
  countersign revoke NAME --reason \"leaks keys\" --export request.json     online, without a key
  countersign revoke --detached request.json -o revocation.json            offline, with your key
  countersign revoke --submit revocation.json                              online, with any key

If the signers file has no revocation keys, one admin is enough. You cannot undo a revocation.

If the signers file names witnesses of a log, the command then waits until they have seen the revocation. It says until \
when a server can still show the release as if it were not revoked. If the time is over before that, the exit code is 6; \
the release is revoked all the same.")]
    Revoke(RevokeArgs),
    /// Veto proposed signers of a project, with a master key
    #[command(after_help = "\
Examples:
  countersign veto https/github.com/443/acme/app --reason \"none of us asked for this\"
  countersign veto https/github.com/443/acme/app        join a veto that another master began

Only master keys of the signers file in force can veto, as many as a rotation by masters needs. They can veto any pending \
proposal, even one that has all signatures and waits (`rotation_delay_hours` in the signers file), until it takes \
effect. A vetoed file is removed, and the server refuses the same file until the next rotation. Find out whose keys signed it.")]
    Veto(VetoArgs),
    /// Find out what stolen or lost keys touched, and prepare the answer
    #[command(after_help = "\
Examples:
  countersign incident acme/app --steal bob --since 2026-11-01      what bob's key signed since then
  countersign incident --steal bob.pub --lose carol.pub -o answer   in all projects; files to review
  countersign incident --steal bob.pub --repository /srv/repo.git   without a network

For each project the command shows where the keys are or were listed, what they can do alone, every release, signers file and \
revocation that they signed, which of those reached their thresholds only with these keys, and what they could still complete.

With -o it writes the next signers file without the keys, the revocations of releases that stand only because of them, \
and commands.txt. Read them before you use them. The command itself changes nothing.")]
    Incident(IncidentArgs),
    /// Play out on a copy what lost and stolen keys would mean
    #[command(after_help = "\
Examples:
  countersign drill acme/app --lose alice --steal bob
  countersign drill acme/app acme/lib --steal alice               several projects
  countersign drill svc.signers.json --lose alice bob             a file, without a server
  countersign drill acme/app --steal carol dave --repository /srv/backup/repo.git

The command puts the project's signers file on a copy in memory, with stand-ins for the keys, and lets both sides try to \
release, to rotate the signers and to revoke, by the rules that servers follow. It says step by step who signs what. Name a key \
with both --lose and --steal if its owner no longer has it. Nothing is changed or sent.")]
    Drill(DrillArgs),
    /// Follow a server's log, and report every change of your projects
    #[command(after_help = "\
Examples:
  countersign monitor https://sign.example.org --key ~/.ssh/id_release.pub
  countersign monitor https://sign.example.org https/github.com/443/acme/app --once
  countersign monitor https://sign.example.org --key ME.pub \\
      --exec 'mail -s \"acme/app changed\" me@example.org'
  countersign monitor --check log-lie-0123456789abcdef.json

Reports new signers, signers that are agreed to and wait, vetoes, completed releases and revocations, so that you notice \
one that was not yours. It reads every new commit, compares it with the log, and checks that the log only grows. It also \
derives the state that the commits give, and compares it with the one that the log has signed. The first time it reads all \
commits for that, and reports what comes next. It remembers what it has reported, and continues from there.

A log that contradicts itself or lies about the state ends the command with exit code 3, and is reported as well; the \
evidence is in a file, which anyone can check with --check. If a project's signers file names witnesses, it also reports when they do not confirm the log.")]
    Monitor(MonitorArgs),
    /// Check that the server answers and, with --key, that it accepts your signature
    Ping(PingArgs),
    /// See everything at work on this computer, in a few seconds
    #[command(after_help = "\
Starts a signing server and a file server in a temporary directory. Then shows keys, registration, a release signed by \
two of three, a verified download, a tampered file, a change of signers and a revocation. Needs no network and leaves \
nothing behind.")]
    Demo(DemoArgs),
    /// Print a completion script for your shell
    #[command(after_help = "\
Example:
  countersign completions bash > ~/.local/share/bash-completion/completions/countersign")]
    Completions(CompletionsArgs),
    /// Write the manual pages
    #[command(after_help = "\
Examples:
  countersign man | man -l -
  countersign man /usr/local/share/man/man1

The pages have the date of SOURCE_DATE_EPOCH (seconds since 1970), and none without it.")]
    Man(ManArgs),
    /// Serve the files of a directory, to try things out
    ServeFiles(ServeFilesArgs),
    /// Run the signing server
    #[command(after_help = "\
Examples:
  countersign serve --dev                        try it out on this machine
  countersign serve --file-server dl.example.org let projects on that host register
  countersign serve --config countersign.toml    everything from a file

You can also set every flag by its environment variable or in the configuration file; docs/configuration.md lists the \
names. A flag beats the environment, which beats the file.")]
    Serve(Box<GivenSettings>),
    /// Follow another server, check every commit, and serve what is public
    #[command(after_help = "\
Examples:
  countersign mirror https://sign.example.org --listen 0.0.0.0:3000 --data-dir /var/lib/countersign
  countersign mirror https://sign.example.org --config countersign.toml
  countersign download FILE_URL --server https://mirror.example.org     as from the origin

A mirror begins with an empty data directory, or with a clone of the origin's repository in it (repo.git). It repeats \
every commit by the server's own rules and accepts only those that come out the same. It serves reads, pages, events and \
the journal, so other mirrors can follow it. Signed requests get 403 and the address of the origin.

It remembers what it has seen. If the origin rewrites its past, the mirror stops following, keeps what it has and says so \
in its log, on its pages and at /readyz, until you decide: `countersign admin mirror resume`. If the origin is away or \
behind, it waits.

To replace a lost origin, stop the mirror and run `countersign serve` on its data directory.

You can also set every flag by its environment variable or in the configuration file, as for `countersign serve`.")]
    Mirror(MirrorArgs),
    /// Be a witness of a server's log: replay every commit, and cosign the log's checkpoints
    #[command(after_help = "\
Examples:
  countersign admin witness init --key witness.key --name witness.example.org
  countersign witness https://sign.example.org --key witness.key --data-dir witness \\
      --listen 0.0.0.0:3010
  countersign witness https://sign.example.org --key witness.key --data-dir witness --poll
  countersign witness https://sign.example.org --key witness.key --ml-dsa-key witness.key.ml-dsa \\
      --data-dir witness --poll

A witness is a mirror (see `countersign mirror`), and serves all that a mirror serves. It also derives the log of all \
commits itself. If the server's log shows a checkpoint, the witness compares it with its own, records it, and only then \
cosigns it with the time. So the server cannot show different people different histories without the witness noticing.

The server asks the witness at /add-checkpoint (c2sp.org/tlog-witness). With --poll nothing needs to reach the witness: it \
fetches checkpoints and posts its cosignatures. It can also cosign other logs, those of --policy, as an ordinary witness.

If a log contradicts itself, the witness writes both checkpoints to witness/evidence-… in the data directory, and cosigns \
nothing more of this log until you decide: `countersign admin witness resume`.

Keep the data directory: a witness that forgets what it has cosigned can contradict itself.")]
    Witness(WitnessArgs),
    /// Ask a running server on this machine, or change what is in its data directory
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Check that every commit of a server follows the rules
    #[command(after_help = "\
Examples:
  countersign fsck countersign-data              the data directory; the server can run meanwhile
  countersign fsck signing-history.git           a clone of its repository
  countersign fsck https://sign.example.org      a running server, over its journal
  countersign fsck countersign-data --since 4f…  only what came after a checked commit

Replays the whole history by the server's own rules and verifies each change, every signature and every threshold. If \
something breaks a rule, it names the commit and the file and exits with 3. It only reads. The last line of a good \
check is the commit to pass as --since next time. Keep it in a safe place: it also reveals a history that was cut off \
or rewritten.")]
    Fsck(FsckArgs),
}
