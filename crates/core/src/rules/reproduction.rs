//! Whether builders got the same files from the source (D261): the one function that judges what they state.

use std::collections::{BTreeMap, BTreeSet};

use crate::documents::history::EntryFacts;
use crate::documents::index::{AssetName, Digests, ReleaseIndex};
use crate::documents::said::RebuildsFile;
use crate::documents::signers::{Group, RebuildPolicy, SignersFile, keys_of};
use crate::documents::statement::Rebuild;
use crate::rules::snapshot::{ReadError, Snapshot, StoredSigners};
use crate::rules::{quorum, quorum::Tally, stored};
use crate::values::{key::PublicKey, path::RepoPath};

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
    /// digests: who got something else counts against nothing (D262).
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

    /// Judges by every signers file that may refuse the release (D261). Only the server says under which file it was signed.
    /// Signers have signed when the index was made. So `between` has all files from the newest one fetched by that time to
    /// the governing one, in any order. If one of them refuses the release, it is refused.
    pub fn judge_by_all<'a>(
        index: &ReleaseIndex,
        governing: &SignersFile,
        between: impl IntoIterator<Item = &'a SignersFile>,
        stated: &RebuildsFile,
    ) -> Option<Self> {
        let judge = |file: &SignersFile| Some(Self::judge(index, file.rebuilds()?, stated));
        between.into_iter().filter_map(judge).find(Self::is_lacking).or_else(|| judge(governing))
    }

    /// Reads how far the release at `path` is reproduced, as clients judge it; `None` if no signers file that counts names
    /// builders. `governing` is the file that it was signed under. Only where one asks for it the index is read, which can be
    /// large.
    pub fn read(
        snapshot: &impl Snapshot,
        path: &RepoPath,
        governing: &StoredSigners,
    ) -> Result<Option<Self>, ReadError> {
        let project = snapshot.governing_project(path);
        let entries = list_entries(snapshot, project.as_ref())?;
        let is_other = |facts: &EntryFacts| facts.requires_rebuilds && facts.signers != governing.digest;
        let is_alone = !entries.iter().any(|(_, facts)| is_other(facts));
        if is_alone && governing.file.rebuilds().is_none() {
            return Ok(None);
        }
        let index = stored::parse_stored(path, ReleaseIndex::parse(&stored::require(snapshot, path)?))?;
        let mut between = Vec::new();
        if let Some(project) = project.filter(|_| !is_alone) {
            let by_then = |(_, facts): &(usize, EntryFacts)| {
                facts.retrieved_at.is_some_and(|at| at <= index.mirrored_on)
            };
            let newest = entries.iter().rposition(by_then).unwrap_or(0);
            let signed =
                entries.iter().position(|(_, facts)| facts.signers == governing.digest).unwrap_or(newest);
            let asked = entries[newest.min(signed)..=newest.max(signed)]
                .iter()
                .filter(|(_, facts)| facts.requires_rebuilds);
            for entry in stored::history(snapshot, &project, asked.map(|(number, _)| *number))?.entries {
                between
                    .push(stored::parse_stored(path, SignersFile::parse(entry.signers_config.as_bytes()))?);
            }
        }
        Ok(Self::judge_by_all(&index, &governing.file, &between, &stored::rebuilds(snapshot, path)?))
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

/// The entries of a project's history, with their numbers. A first signers file has no others beside it.
fn list_entries(
    snapshot: &impl Snapshot,
    project: Option<&RepoPath>,
) -> Result<Vec<(usize, EntryFacts)>, ReadError> {
    let Some(project) = project else { return Ok(Vec::new()) };
    let count = stored::history_len(snapshot, project);
    if count < 2 {
        return Ok(Vec::new());
    }
    Ok((1..).zip(stored::history_facts(snapshot, project, count)?).collect())
}

/// Compares each file that a builder names with the index. `None` if the index has no such file, or no such digest.
pub fn compare<'a>(index: &ReleaseIndex, rebuild: &'a Rebuild) -> Vec<(&'a AssetName, Option<bool>)> {
    let compare = |name: &AssetName, digests: &Digests| {
        let at = index.published_files.binary_search_by(|file| file.file_name.cmp(name)).ok()?;
        index.published_files[at].digests.agrees_with(digests)
    };
    rebuild.files.iter().map(|file| (&file.file_name, compare(&file.file_name, &file.digests))).collect()
}
