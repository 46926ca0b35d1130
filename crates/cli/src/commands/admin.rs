//! `countersign admin`: on the data directory of a stopped server.

use std::path::PathBuf;

use countersign_core::rules::decide::drop;
use countersign_server::config::ConfigFile;
use countersign_store::{
    clock::Clock,
    data_dir::DataDir,
    nonces::{self, NonceReset},
    open::open_repository,
};
use serde_json::json;

use crate::{
    args::{DropArgs, FileArgs, ResetNoncesArgs},
    error::CliError,
    output::Output,
    prompt::{self, Confirmation},
    setup,
};

pub(crate) fn drop_pending(args: DropArgs) -> Result<(), CliError> {
    let (file, path) = find_data_dir(args.files)?;
    let data_dir = DataDir::lock(&path)?;
    // No budget: an operator can always clean up.
    let opened = open_repository(&data_dir, file.author()?, &Clock::system(), None)?;
    let project = args.project.clone();
    let decide = move |head: &_| drop::drop_pending(head, &project);
    setup::runtime()?.block_on(opened.store.transact(decide))??;
    println!("Dropped the pending signers of {}", args.project);
    Ok(())
}

pub(crate) fn reset_nonces(
    args: ResetNoncesArgs,
    output: Output,
    confirmation: Confirmation,
) -> Result<(), CliError> {
    let (_, path) = find_data_dir(args.files)?;
    let data_dir = DataDir::lock(&path)?;
    let clock = Clock::system();
    output.show(&format!(
        "This machine's clock says {}. If that is wrong, set it first.\n\
         Requests that were signed before this time will be refused. Requests that were signed for a later time, while \
         the clock was ahead, could be sent again when that time comes.",
        clock.now().to_whole_seconds()
    ));
    prompt::confirm(confirmation, "Reset the used nonces?")?;
    // After the answer, and to the fraction: what was signed until then is refused.
    let reset = nonces::reset(&data_dir.nonces(), clock.now()).map_err(|error| {
        let message = format!("the used nonces in {} could not be reset", data_dir.nonces().display());
        CliError::other(message, "if the file is missing or damaged, remove it and start the server")
            .because(error)
    })?;
    let NonceReset { floor, floor_before, forgotten_until } = reset;
    let mut text = format!("Requests that were signed before {floor} are refused from now on.\n");
    if let Some(until) = forgotten_until {
        text.push_str(&format!(
            "The clock had been ahead: requests that were used then, with times up to {until}, could be used again.\n"
        ));
    }
    let value = json!({
        "floor": floor.to_string(),
        "floor_before": floor_before.map(|floor| floor.to_string()),
        "forgotten_until": forgotten_until.map(|until| until.to_string()),
    });
    output.result(&text, &value)
}

/// The configuration, and the directory in which a server has kept its state.
fn find_data_dir(files: FileArgs) -> Result<(ConfigFile, PathBuf), CliError> {
    let file = setup::read_config(&files)?;
    let path = file.data_dir(files.data_dir);
    if !DataDir::is_in_use_at(&path) {
        let message = format!("there is no repository in the data directory {}", path.display());
        return Err(CliError::other(message, "name it with --data-dir"));
    }
    Ok((file, path))
}
