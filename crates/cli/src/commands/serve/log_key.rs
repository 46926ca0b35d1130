//! The key of the log.

use std::sync::Arc;

use countersign_server::config::Settings;

use crate::{error::CliError, keys::SigningKey, output::Output};

/// The server itself reads no keys, and speaks to no agent.
pub(super) fn read_log_key(settings: &mut Settings, output: Output) -> Result<(), CliError> {
    let Some(log) = &mut settings.log else { return Ok(()) };
    let key = SigningKey::load_for_service(&log.key_file, output)?;
    let named = log.verifier_key(key.public_key())?;
    log.signer = Some(Arc::new(key.into_log_signer(named)));
    Ok(())
}
