//! The `countersign` program.

mod args;
mod client;

mod commands {
    //! A file for each command. A small one shares the file of a relative.

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
    let output =
        Output::new(global.json, global.quiet, global.color).with_keys(global.full).with_yes(global.yes);
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
        Command::Init(args) => ask(global, output, &args, init::run),
        Command::Keygen(args) => keygen::run(&global, &args, output),
        Command::Signers { command: SignersCommand::New(args) } => signers::make(&args, output),
        Command::Signers { command: SignersCommand::Check(args) } if signers::idle::names_file(&args) => {
            signers::check(Path::new(&args.source), output)
        }
        Command::Signers { command: SignersCommand::Check(args) } => {
            ask(global, output, &args, signers::idle::run)
        }
        Command::Signers { command: SignersCommand::Edit(args) } => {
            ask(signers::edit::choose_server(global, &args), output, &args, signers::edit::run)
        }
        Command::Signers { command: SignersCommand::History(args) } => {
            ask(global, output, &args, signers::history::run)
        }
        Command::Trust { command } => trust::run(&command, output),
        Command::Completions(args) => man::run_completions(&args, output),
        Command::Man(args) => man::run(&args, output),
        Command::ServeFiles(args) => client_runtime()?.block_on(demo::serve_files(&args)),
        Command::Demo(args) => demo::run(&args, output),
        Command::Download(args) => ask(global, output, &args, download::run),
        Command::Verify(args) => ask(global, output, &args, verify::run),
        Command::Bundle(args) => ask(global, output, &args, staple::bundle),
        Command::Export(args) => ask(global, output, &args, export::run),
        Command::Staple(args) => ask(global, output, &args, staple::staple),
        Command::Register(args) => ask(global, output, &args, propose::register),
        Command::Update(args) => ask(global, output, &args, propose::update),
        Command::Release(args) => ask(global, output, &args, release::run),
        Command::Pending(args) => ask(global, output, &args, pending::run),
        Command::Sign(args) => ask(global, output, &args, sign::run),
        Command::Status(args) => ask(global, output, &args, status::run),
        Command::Releases(args) => ask(global, output, &args, catalogue::list_releases),
        Command::Search(args) => ask(global, output, &args, catalogue::search),
        Command::Watch(args) => ask(global, output, &args, watch::watch),
        Command::Withdraw(args) => ask(global, output, &args, object::withdraw),
        Command::Object(args) => ask(global, output, &args, object::object),
        Command::Rebuild(args) => ask(global, output, &args, rebuild::run),
        Command::Veto(args) => ask(global, output, &args, veto::run),
        Command::Drill(args) => ask(global, output, &args, drill::run),
        Command::Incident(args) => ask(global, output, &args, incident::run),
        Command::Revoke(args) => ask(global, output, &args, revoke::run),
        Command::Monitor(args) => ask(global, output, &args, monitor::run),
        Command::Ping(args) => ask(global, output, &args, watch::ping),
    }
}
