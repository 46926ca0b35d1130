//! `countersign admin`: on the data directory of a stopped server.

use countersign_core::decide::drop;
use countersign_server::{app, clock::Clock, data_dir::DataDir};

use crate::{args::DropArgs, error::CliError};

pub(crate) fn drop_pending(args: DropArgs) -> Result<(), CliError> {
    let file = super::read_config(&args.files)?;
    let path = file.data_dir(args.files.data_dir);
    if !DataDir::is_in_use_at(&path) {
        let message = format!("there is no repository in the data directory {}", path.display());
        return Err(CliError::other(message, "name it with --data-dir"));
    }
    let data_dir = DataDir::lock(&path)?;
    // No budget: an operator can always clean up.
    let opened = app::open_repository(&data_dir, file.author()?, &Clock::system(), None)?;
    let project = args.project.clone();
    let decide = move |head: &_| drop::drop_pending(head, &project);
    super::runtime()?.block_on(opened.store.transact(decide))??;
    println!("Dropped the pending signers of {}", args.project);
    Ok(())
}
