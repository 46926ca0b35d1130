//! The `countersign` program.

mod args;
mod client;

mod commands {
    //! One file per command.

    pub(crate) mod admin;
    pub(crate) mod catalogue;
    pub(crate) mod config;
    pub(crate) mod demo;
    pub(crate) mod download;
    pub(crate) mod drill;
    pub(crate) mod export;
    pub(crate) mod fsck;
    pub(crate) mod incident;
    pub(crate) mod init;
    pub(crate) mod keygen;
    pub(crate) mod man;
    pub(crate) mod monitor;
    pub(crate) mod object;
    pub(crate) mod pending;
    pub(crate) mod propose;
    pub(crate) mod rebuild;
    pub(crate) mod release;
    pub(crate) mod revoke;
    pub(crate) mod serve;
    pub(crate) mod sign;
    pub(crate) mod signers;
    pub(crate) mod staple;
    mod statements;
    pub(crate) mod status;
    pub(crate) mod trust;
    pub(crate) mod verify;
    pub(crate) mod veto;
    pub(crate) mod watch;
}

mod evidence {
    //! What a server shows, and what of it is proven: releases, signers, logs and files.

    pub(crate) mod carried;
    pub(crate) mod comparison;
    pub(crate) mod download;
    pub(crate) mod freshness;
    pub(crate) mod log_memory;
    pub(crate) mod log_policy;
    pub(crate) mod proof;
    pub(crate) mod release;
    pub(crate) mod report;
    pub(crate) mod repository_copy;
    pub(crate) mod review;
}

mod keys;

pub(crate) mod settings {
    //! What this computer keeps: the configuration, and what its user has accepted.

    pub(crate) mod client_config;
    pub(crate) mod config_dir;
    pub(crate) mod trust;
}

pub(crate) mod words {
    //! What people and programs read: errors, answers, questions, tables.

    pub(crate) mod error;
    pub(crate) mod output;
    pub(crate) mod table;
}

use std::{path::Path, process::ExitCode};

use clap::FromArgMatches as _;
use countersign_server::operate::config::GivenDatabase;

use crate::args::{Arguments, Command, GlobalArgs, SignersCommand};
use crate::client::failures::CHECK_SERVER;
use crate::client::session::{ask, client_runtime};
use crate::words::{error::CliError, error::ErrorKind, output::ColorChoice, output::Output};

fn main() -> ExitCode {
    let parsed = args::help::command().try_get_matches();
    let Arguments { global, command } = match parsed.and_then(|found| Arguments::from_arg_matches(&found)) {
        Ok(arguments) => arguments,
        Err(error) => return refuse_arguments(&error),
    };
    let output = Output::new(global.json, global.quiet, global.color).with_keys(global.full);
    let named = command.named();
    let takes_url = matches!(command, Command::Fsck(_) | Command::Monitor(_));
    match run(global, command, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = error.naming("NAME", named.as_deref().unwrap_or("NAME"));
            let error = if takes_url { error.naming(CHECK_SERVER, "check the URL") } else { error };
            let error = error.naming_option(&std::env::args_os().collect::<Vec<_>>());
            output.error(&error);
            error.exit_code()
        }
    }
}

/// Help and version are no errors. A usage error is JSON as well, where the command line asks for it.
fn refuse_arguments(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json");
    if std::env::args_os().len() <= 1 {
        // An environment variable counts as an argument, and would be answered with an error.
        let _ = args::help::command().write_help(&mut std::io::stderr());
        return ExitCode::from(ErrorKind::Usage.exit_code());
    }
    if !error.use_stderr() || !wants_json {
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { ErrorKind::Usage.exit_code() } else { 0 });
    }
    let text = error.render().to_string();
    // Up to the usage, which the hint tells how to see.
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let message = lines.join(" ").trim_start_matches("error: ").to_owned();
    let error =
        CliError::usage(message, "`countersign --help` and `countersign COMMAND --help` show the usage");
    Output::new(true, false, ColorChoice::Never).error(&error);
    error.exit_code()
}

fn run(global: GlobalArgs, command: Command, output: Output) -> Result<(), CliError> {
    use crate::commands::*;
    let confirmation = global.confirmation();
    match command {
        Command::Serve(mut given) => {
            given.database_url = given.database_url.or_else(GivenDatabase::from_environment);
            serve::run(*given, output)
        }
        Command::Mirror(args) => serve::run(args.into_settings(), output),
        Command::Witness(args) => serve::witness(&global, args, output),
        Command::Admin { command } => admin::run(command, &global, output),
        Command::Fsck(args) => fsck::run(args, output),
        Command::Config { command } => config::run(command.as_ref(), global, output),
        Command::Init(args) => ask(global, output, async |session| init::run(session, &args).await),
        Command::Keygen(args) => keygen::run(&global, &args, output),
        Command::Signers { command: SignersCommand::New(args) } => signers::make(&args, output),
        Command::Signers { command: SignersCommand::Check(args) } if signers::idle::names_file(&args) => {
            signers::check(Path::new(&args.source), output)
        }
        Command::Signers { command: SignersCommand::Check(args) } => {
            ask(global, output, async |session| signers::idle::run(session, &args).await)
        }
        Command::Signers { command: SignersCommand::Edit(args) } => {
            let global = signers::edit::choose_server(global, &args);
            ask(global, output, async |session| signers::edit::run(session, &args).await)
        }
        Command::Signers { command: SignersCommand::History(args) } => {
            ask(global, output, async |session| signers::history::run(session, &args).await)
        }
        Command::Trust { command } => trust::run(&command, output, confirmation),
        Command::Completions(args) => man::run_completions(&args, output),
        Command::Man(args) => man::run(&args, output),
        Command::ServeFiles(args) => client_runtime()?.block_on(demo::serve_files(&args)),
        Command::Demo(args) => demo::run(&args, output),
        Command::Download(args) => ask(global, output, async |session| download::run(session, &args).await),
        Command::Verify(args) => ask(global, output, async |session| verify::run(session, &args).await),
        Command::Bundle(args) => ask(global, output, async |session| staple::bundle(session, &args).await),
        Command::Export(args) => ask(global, output, async |session| export::run(session, &args).await),
        Command::Staple(args) => ask(global, output, async |session| staple::staple(session, &args).await),
        Command::Register(args) => {
            ask(global, output, async |session| propose::register(session, &args).await)
        }
        Command::Update(args) => ask(global, output, async |session| propose::update(session, &args).await),
        Command::Release(args) => ask(global, output, async |session| release::run(session, &args).await),
        Command::Pending(args) => ask(global, output, async |session| pending::run(session, &args).await),
        Command::Sign(args) => ask(global, output, async |session| sign::run(session, &args).await),
        Command::Status(args) => ask(global, output, async |session| status::run(session, &args).await),
        Command::Releases(args) => {
            ask(global, output, async |session| catalogue::list_releases(session, &args).await)
        }
        Command::Search(args) => ask(global, output, async |session| catalogue::search(session, &args).await),
        Command::Watch(args) => ask(global, output, async |session| watch::watch(session, &args).await),
        Command::Withdraw(args) => {
            ask(global, output, async |session| object::withdraw(session, &args).await)
        }
        Command::Object(args) => ask(global, output, async |session| object::object(session, &args).await),
        Command::Rebuild(args) => ask(global, output, async |session| rebuild::run(session, &args).await),
        Command::Veto(args) => ask(global, output, async |session| veto::run(session, &args).await),
        Command::Drill(args) => ask(global, output, async |session| drill::run(session, &args).await),
        Command::Incident(args) => ask(global, output, async |session| incident::run(session, &args).await),
        Command::Revoke(args) => ask(global, output, async |session| revoke::run(session, &args).await),
        Command::Monitor(args) => ask(global, output, async |session| monitor::run(session, &args).await),
        Command::Ping(args) => ask(global, output, async |session| watch::ping(session, &args).await),
    }
}
