//! Lists where keys are or were listed.

use countersign_core::{
    documents::signers::{Role, Signer, SignersFile, keys_of},
    rules::{chain::VerifiedChain, stored::StoredProposal},
    values::{key::PublicKey, time::Timestamp},
};

use super::question::IncidentQuestion;
use crate::strength::effective_groups;

/// A place at which a key is or was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncidentListing {
    pub signer: Signer,
    /// The roles as the rules count them, defaults included (D8).
    pub roles: Vec<Role>,
    pub is_registrar: bool,
    pub standing: ListingStanding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingStanding {
    InForce,
    /// A rotation at this time removed the key.
    Until(Timestamp),
    /// A signers file that waits for signatures lists it, and the one in force does not.
    Proposed,
}

pub(super) fn list_listings(
    chain: Option<&VerifiedChain>,
    proposal: Option<&StoredProposal>,
    question: &IncidentQuestion,
) -> Vec<IncidentListing> {
    let links = chain.map(|chain| chain.links.as_slice()).unwrap_or_default();
    let mut listings = Vec::new();
    for key in &question.keys {
        let last = links.iter().rposition(|link| link.signers.may_register(key));
        let standing = match last {
            Some(last) => match links.get(last + 1) {
                None => ListingStanding::InForce,
                Some(next) => ListingStanding::Until(next.activated_at),
            },
            None => ListingStanding::Proposed,
        };
        if let Some(last) = last {
            listings.push(IncidentListing::of(&links[last].signers, *key, standing));
        }
        let proposed = proposal.filter(|proposal| proposal.signers.may_register(key));
        if let Some(proposed) = proposed.filter(|_| standing != ListingStanding::InForce) {
            listings.push(IncidentListing::of(&proposed.signers, *key, ListingStanding::Proposed));
        }
    }
    listings
}

impl IncidentListing {
    fn of(file: &SignersFile, key: PublicKey, standing: ListingStanding) -> Self {
        let is_in = |role: &Role| keys_of(&effective_groups(file, *role)).any(|listed| listed == key);
        Self {
            signer: file.named_signer(key),
            roles: Role::ALL.into_iter().filter(is_in).collect(),
            is_registrar: file.has_registrar(&key),
            standing,
        }
    }
}
