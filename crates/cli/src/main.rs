//! The `countersign` program.

mod args;
mod commands;
mod output;

use std::process::ExitCode;

use args::{AdminCommand, Arguments, Command};
use clap::Parser as _;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Serve(args) => commands::serve::run(args),
        Command::Admin { command: AdminCommand::Drop(args) } => commands::admin::drop_pending(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::FAILURE
        }
    }
}
