//! Keys by the names that signers files give them.

use std::collections::BTreeSet;

use countersign_core::documents::signers::{Role, Signer, SignersFile};
use countersign_core::values::{key::PublicKey, shown::quoted};

use crate::{error::CliError, keys};

/// Keys as they are written out, or names from these signers files.
pub(crate) fn resolve_keys(texts: &[String], files: &[SignersFile]) -> Result<BTreeSet<PublicKey>, CliError> {
    texts.iter().map(|text| resolve_key(text, files)).collect()
}

fn resolve_key(text: &str, files: &[SignersFile]) -> Result<PublicKey, CliError> {
    let named: BTreeSet<PublicKey> = files.iter().filter_map(|file| find_named(file, text)).collect();
    if named.len() > 1 {
        let keys: Vec<String> = named.iter().map(ToString::to_string).collect();
        return Err(CliError::usage(
            format!("{} has been the name of {} keys", quoted(text), keys.len()),
            format!("give the one that you mean in full, or all of them: {}", keys.join(" ")),
        ));
    }
    match (named.first(), files) {
        (Some(key), _) => Ok(*key),
        (None, []) => keys::parse_key(text).map_err(|error| {
            error.with_hint("give the key in full, its .pub file, or with --project its name")
        }),
        (None, files) => keys::parse_key(text).map_err(|_| {
            let mut names: Vec<String> = files.iter().flat_map(list_signers).map(|(name, _)| name).collect();
            names.sort();
            names.dedup();
            CliError::usage(
                format!("no signers file there names {}", quoted(text)),
                format!("give a key in full, or one of these names: {}", names.join(", ")),
            )
        }),
    }
}

/// The key that a signers file gives this name.
pub(crate) fn find_named(file: &SignersFile, name: &str) -> Option<PublicKey> {
    every_signer(file).find(|signer| signer.name.as_deref() == Some(name)).map(|signer| signer.key)
}

/// The names that a signers file gives, safe to show, with their keys.
pub(crate) fn list_signers(file: &SignersFile) -> Vec<(String, PublicKey)> {
    let named = every_signer(file).filter_map(|signer| Some((quoted(signer.name.as_deref()?), signer.key)));
    named.collect()
}

fn every_signer(file: &SignersFile) -> impl Iterator<Item = &Signer> {
    let groups = Role::ALL.into_iter().filter_map(|role| file.explicit_groups(role)).flatten();
    groups.flat_map(|group| &group.signers).chain(file.registrars())
}
