//! Whose data directory it is. Files of root, or of another user, would stop a server that cannot read them.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

use countersign_store::data_dir::DataDir;

use crate::error::CliError;

/// The server made its repository, so it runs as the repository's owner. Before there is one, the directory's owner counts.
/// A directory that is missing will be the caller's.
pub(super) fn refuse_other_user(data_dir: &Path) -> Result<(), CliError> {
    let repository = DataDir::repository_at(data_dir);
    let place = if repository.exists() { &repository } else { data_dir };
    let owner = match fs::metadata(place) {
        Ok(found) => found.uid(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(CliError::file("read", place, error)),
    };
    let own = rustix::process::geteuid().as_raw();
    if owner == own {
        return Ok(());
    }
    let message = format!(
        "{} belongs to the user with the id {owner}, and this command runs as {own}. The server could not use files \
         that it makes there",
        place.display()
    );
    Err(CliError::other(
        message,
        "run it as the server's user, as in `sudo -u countersign countersign admin …`",
    ))
}
