//! Whose signatures a signers file needs before it takes effect (D15).

use std::collections::BTreeSet;

use crate::{
    key::PublicKey,
    quorum,
    signers::{Group, SignersFile, keys_of},
};

/// A proposed signers file beside the one that it would replace, if any.
#[derive(Debug, Clone, Copy)]
pub struct Consent<'a> {
    pub current: Option<&'a SignersFile>,
    pub proposed: &'a SignersFile,
}

impl Consent<'_> {
    /// The keys whose signatures are accepted.
    pub fn accepted_signers(&self) -> BTreeSet<PublicKey> {
        let Some(current) = self.current else { return self.proposed.keys() };
        let mut keys = self.added_keys(current);
        for file in [current, self.proposed] {
            keys.extend(keys_of(file.admin_groups()).chain(keys_of(file.master_groups())));
        }
        keys
    }

    pub fn is_complete(&self, signed: &BTreeSet<PublicKey>) -> bool {
        let Some(current) = self.current else { return self.proposed.keys().is_subset(signed) };
        approves(current, signed)
            && approves(self.proposed, signed)
            && self.added_keys(current).is_subset(signed)
    }

    /// The keys to ask for a signature next: whoever of them signs brings completion nearer.
    pub fn missing_signers(&self, signed: &BTreeSet<PublicKey>) -> BTreeSet<PublicKey> {
        let mut keys = match self.current {
            None => self.proposed.keys(),
            Some(current) => {
                let mut keys = self.added_keys(current);
                for file in [current, self.proposed].into_iter().filter(|file| !approves(file, signed)) {
                    keys.extend(keys_of(file.admin_groups()));
                }
                keys
            }
        };
        keys.retain(|key| !signed.contains(key));
        keys
    }

    fn added_keys(&self, current: &SignersFile) -> BTreeSet<PublicKey> {
        self.proposed.keys().difference(&current.keys()).copied().collect()
    }
}

/// Whether a file's own admins, or its masters, agree.
fn approves(file: &SignersFile, signed: &BTreeSet<PublicKey>) -> bool {
    let met = |groups: &[Group]| quorum::is_met(groups, signed);
    met(file.admin_groups()) || met(file.master_groups())
}
