//! *The* threshold function. Server, client and mirror count signers here and nowhere else.

use std::collections::BTreeSet;

use crate::{documents::signers::Group, values::key::PublicKey};

/// Whether every group has reached its threshold. A role without groups is never met.
///
/// Both sides are sets of keys by their 32 bytes, so that no spelling, entry or repetition counts twice.
pub fn is_met(groups: &[Group], signed: &BTreeSet<PublicKey>) -> bool {
    !groups.is_empty() && groups.iter().all(|group| count(group, signed) >= group.threshold)
}

/// Counts how many of a group have signed.
pub fn count(group: &Group, signed: &BTreeSet<PublicKey>) -> usize {
    let members: BTreeSet<PublicKey> = group.signers.iter().map(|signer| signer.key).collect();
    members.intersection(signed).count()
}

/// Whether so many members are there, where a member can be a group itself: the witnesses of a policy (D85). Its reader
/// has seen to it that each key is a member in one place only.
pub fn is_reached<M>(threshold: usize, members: &[M], is_there: impl Fn(&M) -> bool) -> bool {
    members.iter().filter(|member| is_there(member)).count() >= threshold
}
