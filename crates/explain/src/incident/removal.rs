//! What keys can do alone, and what it takes to remove them.

use std::collections::BTreeSet;

use countersign_core::{
    documents::signers::{Role, SignersFile},
    rules::quorum,
    values::key::PublicKey,
};

use crate::strength::Act;

/// What it takes to take the keys out of the signers file.
#[derive(Debug, Clone)]
pub struct KeyRemoval {
    /// Groups that would have fewer keys than they need.
    pub shortages: Vec<KeyShortage>,
    /// Whether the other keys can rotate without the named ones.
    pub others_can_rotate: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyShortage {
    pub role: Role,
    /// The number of the group, counted from 1; `None` if the role has only one group.
    pub number: Option<usize>,
    pub threshold: usize,
    pub left: usize,
}

/// What these keys can do under this file without anyone else.
pub fn list_powers(file: &SignersFile, keys: &BTreeSet<PublicKey>) -> Vec<Act> {
    let can = |act: &Act| match act {
        Act::Release => quorum::is_met(file.artifact_groups(), keys),
        Act::Rotate => {
            quorum::is_met(file.admin_groups(), keys) || quorum::is_met(file.master_groups(), keys)
        }
        Act::Revoke => quorum::is_met(&file.revocation_groups(), keys),
    };
    [Act::Release, Act::Rotate, Act::Revoke].into_iter().filter(can).collect()
}

pub(super) fn plan_removal(file: &SignersFile, keys: &BTreeSet<PublicKey>) -> KeyRemoval {
    let mut shortages = Vec::new();
    for role in Role::ALL {
        let groups = file.explicit_groups(role).unwrap_or_default();
        for (i, group) in groups.iter().enumerate() {
            let left: BTreeSet<PublicKey> =
                group.signers.iter().map(|signer| signer.key).filter(|key| !keys.contains(key)).collect();
            if left.len() < group.threshold {
                let number = (groups.len() > 1).then_some(i + 1);
                shortages.push(KeyShortage { role, number, threshold: group.threshold, left: left.len() });
            }
        }
    }
    let others: BTreeSet<PublicKey> = file.keys().difference(keys).copied().collect();
    KeyRemoval { shortages, others_can_rotate: list_powers(file, &others).contains(&Act::Rotate) }
}
