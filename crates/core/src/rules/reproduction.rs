//! Whether builders got the same files from the source (D261): the one function that judges what they state.

use std::collections::{BTreeMap, BTreeSet};

use crate::documents::index::{AssetName, Digests, ReleaseIndex};
use crate::documents::said::RebuildsFile;
use crate::documents::signers::{Group, RebuildPolicy, SignersFile, keys_of};
use crate::documents::statement::Rebuild;
use crate::rules::{quorum, quorum::Tally};
use crate::values::key::PublicKey;

/// How far builders have reproduced a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reproduction {
    /// Whether the project wants no one to use the release before it is reproduced.
    pub is_required: bool,
    /// Each file that builders make, with those who got the same.
    pub files: BTreeMap<AssetName, BTreeSet<PublicKey>>,
    /// The builders who got something else, with the names of these files.
    pub different: BTreeMap<PublicKey, Vec<AssetName>>,
    /// The builders who have stated anything, with the commit that they built.
    pub commits: BTreeMap<PublicKey, String>,
    /// What the least reproduced file has.
    pub tally: Tally,
    groups: Vec<Group>,
    /// The builders who can state something.
    able: BTreeSet<PublicKey>,
}

impl Reproduction {
    /// Judges statements that verify, and are about this index. Only what builders of the policy state counts, each by its
    /// digests: who got something else counts against nothing (D261).
    pub fn judge(index: &ReleaseIndex, policy: &RebuildPolicy, stated: &RebuildsFile) -> Self {
        let covered = index.published_files.iter().filter(|file| policy.covers(file.file_name.as_str()));
        let mut files: BTreeMap<AssetName, BTreeSet<PublicKey>> =
            covered.map(|file| (file.file_name.clone(), BTreeSet::new())).collect();
        let (mut different, mut commits) = (BTreeMap::new(), BTreeMap::new());
        let builders: BTreeSet<PublicKey> = keys_of(&policy.builders).collect();
        for (key, said) in stated.entries.iter().filter(|(key, _)| builders.contains(key)) {
            let compared = compare(index, &said.document);
            for (name, _) in compared.iter().filter(|(_, is_same)| *is_same == Some(true)) {
                if let Some(agreed) = files.get_mut(*name) {
                    agreed.insert(*key);
                }
            }
            let others = compared.iter().filter(|(_, is_same)| *is_same == Some(false));
            let others: Vec<AssetName> = others.map(|(name, _)| (*name).clone()).collect();
            if !others.is_empty() {
                different.insert(*key, others);
            }
            commits.insert(*key, said.document.source_commit.clone());
        }
        let tallies = files.values().map(|agreed| Tally::of(&policy.builders, agreed));
        let none = Tally::of(&policy.builders, &BTreeSet::new());
        let tally = tallies.min_by_key(|tally| tally.collected).unwrap_or(none);
        Self {
            is_required: policy.required,
            files,
            different,
            commits,
            tally,
            groups: policy.builders.clone(),
            able: builders,
        }
    }

    /// Leaves out of those who are asked the ones whom the signers in force no longer list: they can state nothing.
    #[must_use]
    pub fn asked_under(mut self, in_force: &SignersFile) -> Self {
        let listed: BTreeSet<PublicKey> = keys_of(in_force.builder_groups()).collect();
        self.able.retain(|key| listed.contains(key));
        self
    }

    /// Whether every group of builders got each file. A release without such a file is not reproduced.
    pub fn is_reproduced(&self) -> bool {
        !self.files.is_empty() && self.lacking_files().next().is_none()
    }

    /// The files that not every group of builders got, with those who got the same.
    pub fn lacking_files(&self) -> impl Iterator<Item = (&AssetName, &BTreeSet<PublicKey>)> {
        self.files.iter().filter(|(_, agreed)| !quorum::is_met(&self.groups, agreed))
    }

    /// Whether clients refuse the release.
    pub fn is_lacking(&self) -> bool {
        self.is_required && !self.is_reproduced()
    }

    /// The groups of builders who are asked.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The builders who can still agree: those who have not stated each file, and got nothing else.
    pub fn missing(&self) -> BTreeSet<PublicKey> {
        let has_agreed = |key: &PublicKey| self.files.values().all(|agreed| agreed.contains(key));
        let can_agree = |key: &&PublicKey| !has_agreed(key) && !self.different.contains_key(*key);
        self.able.iter().filter(can_agree).copied().collect()
    }

    /// The commits that those built who got the same, each once.
    pub fn sources(&self) -> BTreeSet<&str> {
        let agreed: BTreeSet<&PublicKey> = self.files.values().flatten().collect();
        self.commits
            .iter()
            .filter(|(key, _)| agreed.contains(key))
            .map(|(_, commit)| commit.as_str())
            .collect()
    }
}

/// Compares each file that a builder names with the index. `None` if the index has no such file, or no such digest.
pub fn compare<'a>(index: &ReleaseIndex, rebuild: &'a Rebuild) -> Vec<(&'a AssetName, Option<bool>)> {
    let compare = |name: &AssetName, digests: &Digests| {
        let at = index.published_files.binary_search_by(|file| file.file_name.cmp(name)).ok()?;
        index.published_files[at].digests.agrees_with(digests)
    };
    rebuild.files.iter().map(|file| (&file.file_name, compare(&file.file_name, &file.digests))).collect()
}
