//! What every client command begins with.

use countersign_core::values::key::PublicKey;

use crate::{
    args::GlobalArgs,
    client::ServerClient,
    error::CliError,
    keys::{self, SigningKey},
    output::Output,
    prompt::Confirmation,
};

#[derive(Debug)]
pub(crate) struct Session {
    global: GlobalArgs,
    pub(crate) output: Output,
    pub(crate) client: ServerClient,
}

impl Session {
    pub(crate) fn open(global: GlobalArgs, output: Output) -> Result<Self, CliError> {
        let client = ServerClient::new(&global.server)?;
        Ok(Self { global, output, client })
    }

    /// The user's key; asked for only by commands that sign.
    pub(crate) fn key(&self) -> Result<SigningKey, CliError> {
        SigningKey::load(&self.global)
    }

    /// The public half of the user's key, for which nothing has to be unlocked.
    pub(crate) fn public_key(&self) -> Result<PublicKey, CliError> {
        keys::own_public_key(&self.global)
    }

    pub(crate) fn has_key(&self) -> bool {
        self.global.key.is_some()
    }

    pub(crate) fn confirmation(&self) -> Confirmation {
        self.global.confirmation()
    }
}
