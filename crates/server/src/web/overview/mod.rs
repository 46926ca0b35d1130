//! What people see of projects, releases and proposals. These modules count; the pages lay out.

pub mod order;
pub mod project;
pub mod proposal;
pub mod release;
pub mod releases;
pub mod search;
pub mod timeline;

use std::collections::BTreeMap;

use countersign_core::{
    documents::{
        signatures::SignatureSet,
        signers::{Group, Role, Signer, SignersFile},
    },
    rules::quorum,
    values::{key::PublicKey, time::Timestamp},
};
pub use countersign_explain::tally::Tally;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupProgress {
    pub threshold: usize,
    pub collected: usize,
    /// In the order of the signers file.
    pub members: Vec<Member>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub signer: Signer,
    /// `None` if this signer has not signed.
    pub signed_at: Option<Timestamp>,
}

impl GroupProgress {
    pub fn of(group: &Group, set: &SignatureSet, names: &Names) -> Self {
        let member = |signer: &Signer| Member {
            signer: names.signer(signer.key),
            signed_at: set.entries.get(&signer.key).map(|collected| collected.collected_at),
        };
        Self {
            threshold: group.threshold,
            collected: quorum::count(group, &set.signers()),
            members: group.signers.iter().map(member).collect(),
        }
    }

    pub fn is_met(&self) -> bool {
        self.collected >= self.threshold
    }

    /// How many signatures are still missing.
    pub fn missing_count(&self) -> usize {
        self.threshold.saturating_sub(self.collected)
    }

    pub fn signed(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.signed_at.is_some())
    }

    pub fn not_signed(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.signed_at.is_none())
    }
}

#[derive(Debug, Clone, Default)]
pub struct Names(BTreeMap<PublicKey, Option<String>>);

impl Names {
    /// The first file that lists a key names it, since a later one can be a mere proposal.
    pub fn of<'a>(files: impl IntoIterator<Item = &'a SignersFile>) -> Self {
        let mut names = BTreeMap::new();
        for file in files {
            let mut own: BTreeMap<PublicKey, Option<String>> = BTreeMap::new();
            for group in Role::ALL.iter().filter_map(|role| file.explicit_groups(*role)).flatten() {
                for signer in &group.signers {
                    let name = own.entry(signer.key).or_default();
                    *name = name.take().or_else(|| signer.name.clone().filter(|name| !name.is_empty()));
                }
            }
            for (key, name) in own {
                names.entry(key).or_insert(name);
            }
        }
        Self(names)
    }

    pub fn signer(&self, key: PublicKey) -> Signer {
        Signer { key, name: self.0.get(&key).cloned().flatten() }
    }

    /// The signers that have signed, in order of time.
    pub fn list_signed(&self, set: &SignatureSet) -> Vec<Member> {
        let member = |(key, at)| Member { signer: self.signer(key), signed_at: Some(at) };
        let mut signed: Vec<_> =
            set.entries.iter().map(|(key, collected)| (*key, collected.collected_at)).collect();
        signed.sort_by_key(|(key, at)| (*at, *key));
        signed.into_iter().map(member).collect()
    }
}
