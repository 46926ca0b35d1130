//! What keys that are lost or stolen touched in a project, and what they could still do (D142, D143).
//!
//! Read from a state of the repository. Signatures that do not verify count for nothing.

use std::{cmp::Reverse, collections::BTreeMap, collections::BTreeSet};

use countersign_core::documents::signers::{Role, Signer, SignersFile, has_member, keys_of};
use countersign_core::documents::{
    history::History, index::ReleaseIndex, layout, signatures::SignatureSet, statement::Revocation,
};
use countersign_core::rules::quorum::{ConditionKind, Consent, Tally};
use countersign_core::rules::snapshot::{ReadError, Snapshot};
use countersign_core::rules::stored::{ReleaseState, StoredProposal};
use countersign_core::rules::{chain, chain::VerifiedChain, quorum, reproduction::Reproduction, stored};
use countersign_core::values::{digest::Sha512, key::PublicKey, path::RepoPath, time::Timestamp};
use serde::Serialize;
use thiserror::Error;

use crate::strength::{Act, effective_groups};

#[derive(Debug, Clone)]
pub struct ProjectIncident {
    pub project: RepoPath,
    pub listings: Vec<IncidentListing>,
    /// What the keys can do alone under the signers file in force.
    pub powers: Vec<Act>,
    /// Whether one of the keys can register releases.
    pub can_register: bool,
    /// Whether one of the keys is a builder's, which can state what the source gives and nothing else (D259).
    pub can_state_rebuilds: bool,
    /// The releases, the newest signature first.
    pub releases: Vec<TouchedRelease>,
    pub rotations: Vec<TouchedRotation>,
    pub revocations: Vec<TouchedRevocation>,
    /// Releases of which the keys state what the source gives, the newest statement first.
    pub rebuilds: Vec<TouchedRebuild>,
    /// What still collects signatures.
    pub open: Vec<OpenMatter>,
    /// The removal of the keys; `None` if no signers file is in force.
    pub removal: Option<KeyRemoval>,
    /// The agreement that the keys are listed here.
    pub agreement: ListingAgreement,
    /// What could not be read.
    pub unreadable: Vec<String>,
}

/// Whether the keys agreed to be listed in a project. Anyone can list any key as a registrar (D106), and propose any
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListingAgreement {
    /// One of the keys signed a signers file that took effect, and so did another key: first at this time.
    Shared(Timestamp),
    /// Only the keys themselves signed one that took effect, first at this time.
    Alone(Timestamp),
    /// The keys signed no signers file that took effect.
    None,
}

impl ListingAgreement {
    /// The agreement in the `history` of a project, whose signatures need not be verified to put projects in an order.
    pub fn of(history: &History, question: &IncidentQuestion) -> Self {
        let agreed = history.entries.iter().filter(|entry| question.has_any(&entry.signatures));
        let mut agreed = agreed.peekable();
        let Some(first) = agreed.peek().map(|entry| entry.timestamp) else { return Self::None };
        match agreed.any(|entry| !question.without(&entry.signatures).is_empty()) {
            true => Self::Shared(first),
            false => Self::Alone(first),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct TouchedRelease {
    #[serde(rename = "index_path")]
    pub path: RepoPath,
    pub state: ReleaseState,
    pub signed: SigningTimes,
    /// Whether it is or was complete, and would not have been without the keys.
    #[serde(rename = "decisive")]
    pub is_decisive: bool,
}

#[derive(Debug, Clone)]
pub struct TouchedRotation {
    /// The number of the file in the history of the project, counted from 1.
    pub number: usize,
    pub activated_at: Timestamp,
    pub signed: SigningTimes,
    /// What would not have been agreed to without the keys.
    pub unmet: Vec<ConditionKind>,
}

#[derive(Debug, Clone, Serialize)]
pub struct TouchedRevocation {
    #[serde(rename = "index_path")]
    pub path: RepoPath,
    pub reason: String,
    pub signed: SigningTimes,
    #[serde(rename = "decisive")]
    pub is_decisive: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct TouchedRebuild {
    #[serde(rename = "index_path")]
    pub path: RepoPath,
    /// When the server took each statement.
    pub stated: SigningTimes,
    /// Whether the release is reproduced, and would not be without the keys.
    #[serde(rename = "decisive")]
    pub is_decisive: bool,
}

/// Something that collects signatures or waits, to which the keys can contribute or have contributed.
#[derive(Debug, Clone, Serialize)]
pub struct OpenMatter {
    pub kind: OpenKind,
    /// The index, or the pending signers file.
    #[serde(rename = "file_path")]
    pub path: RepoPath,
    /// The signatures of the keys, whatever their time.
    pub signed: SigningTimes,
    #[serde(flatten)]
    pub tally: Tally,
    /// Whether it is complete once all of the keys have signed, and no one else does.
    #[serde(rename = "completable")]
    pub is_completable: bool,
    /// Whether the matter is a release that one of the keys registered or last corrected.
    #[serde(rename = "registered")]
    pub is_registered: bool,
    /// The time at which it takes effect, if it is a signers file that has all signatures and waits (D131).
    pub waits_until: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OpenKind {
    #[serde(rename = "signers")]
    Rotation,
    Release,
    Revocation,
}

/// A project that cannot be told about.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{project}: {reason}")]
pub struct IncidentFault {
    pub project: RepoPath,
    pub reason: String,
}

/// Examines a project. `releases` are the indexes of it to look at.
pub fn examine_project(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    releases: impl FnOnce() -> Vec<RepoPath>,
    question: &IncidentQuestion,
) -> Result<Option<ProjectIncident>, IncidentFault> {
    let fault = |reason: String| IncidentFault { project: project.clone(), reason };
    let unreadable = |error: ReadError| fault(error.to_string());
    let history = stored::history(snapshot, project, 1..=stored::history_len(snapshot, project));
    let history = history.map_err(unreadable)?;
    let chain = match history.entries.as_slice() {
        [] => None,
        _ => Some(chain::verify(&history, project).map_err(|error| fault(error.to_string()))?),
    };
    let pending = layout::pending_signers(project);
    let proposal = StoredProposal::load(snapshot, &pending).map_err(unreadable)?;
    let agreement = stored::agreement(snapshot, &pending).map_err(unreadable)?;
    let waits_until = agreement.map(|agreement| agreement.due_at);
    let listings = list_listings(chain.as_ref(), proposal.as_ref(), question);
    // A key signs only where it is listed.
    if listings.is_empty() {
        return Ok(None);
    }
    let active = chain.as_ref().map(|chain| &chain.last().signers);
    let mut incident = ProjectIncident {
        project: project.clone(),
        listings,
        powers: active.map(|file| list_powers(file, &question.keys)).unwrap_or_default(),
        can_register: active.is_some_and(|file| question.keys.iter().any(|key| file.may_register(key))),
        can_state_rebuilds: active
            .is_some_and(|file| keys_of(file.builder_groups()).any(|key| question.keys.contains(&key))),
        releases: Vec::new(),
        rotations: chain.iter().flat_map(|chain| list_rotations(&history, chain, question)).collect(),
        revocations: Vec::new(),
        rebuilds: Vec::new(),
        open: proposal
            .iter()
            .filter_map(|proposal| open_proposal(project, proposal, active, question))
            .map(|matter| OpenMatter { waits_until, ..matter })
            .collect(),
        removal: active.map(|file| plan_removal(file, &question.keys)),
        agreement: ListingAgreement::of(&history, question),
        unreadable: Vec::new(),
    };
    for path in releases() {
        if let Err(error) = incident.add_release(snapshot, &path, active, question) {
            incident.unreadable.push(error.to_string());
        }
    }
    incident
        .releases
        .sort_by_key(|release| (Reverse(release.signed.values().max().copied()), release.path.clone()));
    incident.revocations.sort_by_key(|one| (Reverse(one.signed.values().max().copied()), one.path.clone()));
    incident.rebuilds.sort_by_key(|one| (Reverse(one.stated.values().max().copied()), one.path.clone()));
    incident.open.sort_by_key(|matter| (matter.kind, matter.path.clone()));
    Ok(Some(incident))
}

impl ProjectIncident {
    /// Releases that stand only because the keys signed them, and are not revoked.
    pub fn releases_to_revoke(&self) -> impl Iterator<Item = &RepoPath> {
        let doubtful = self
            .releases
            .iter()
            .filter(|release| release.is_decisive && release.state == ReleaseState::Complete);
        doubtful.map(|release| &release.path)
    }

    /// Releases that are reproduced only because the keys say so.
    pub fn releases_to_rebuild(&self) -> impl Iterator<Item = &RepoPath> {
        self.rebuilds.iter().filter(|one| one.is_decisive).map(|one| &one.path)
    }

    /// Whether others listed the keys here, and the keys signed and registered nothing: it may be a stranger's project.
    pub fn is_untouched(&self) -> bool {
        let is_touched = |open: &OpenMatter| open.is_registered || !open.signed.is_empty();
        self.agreement == ListingAgreement::None
            && self.releases.is_empty()
            && self.revocations.is_empty()
            && self.rebuilds.is_empty()
            && !self.open.iter().any(is_touched)
    }

    /// Whether the signers file in force lists one of the keys.
    pub fn is_listed(&self) -> bool {
        self.listings.iter().any(|listing| listing.standing == ListingStanding::InForce)
    }

    fn add_release(
        &mut self,
        snapshot: &impl Snapshot,
        path: &RepoPath,
        active: Option<&SignersFile>,
        question: &IncidentQuestion,
    ) -> Result<(), ReadError> {
        let Some((state, set)) = stored::index_signatures(snapshot, path)? else { return Ok(()) };
        let file = stored::signers_copy(snapshot, path)?.file;
        let groups = file.artifact_groups();
        let is_asked =
            state == ReleaseState::Collecting && keys_of(groups).any(|key| question.keys.contains(&key));
        let is_registered =
            stored::registrant(snapshot, path)?.is_some_and(|key| question.keys.contains(&key));
        if is_asked || is_registered || question.has_any(&set) {
            let set = set.keep_verifying(&stored::require(snapshot, path)?);
            let signed = question.select(&set);
            if !signed.is_empty() {
                let is_decisive =
                    state != ReleaseState::Collecting && !quorum::is_met(groups, &question.without(&set));
                self.releases.push(TouchedRelease { path: path.clone(), state, signed, is_decisive });
            }
            if state == ReleaseState::Collecting {
                self.open.push(OpenMatter {
                    kind: OpenKind::Release,
                    path: path.clone(),
                    signed: question.select_ever(&set),
                    tally: Tally::of(groups, &set.signers()),
                    is_completable: quorum::is_met(groups, &question.with(&set)),
                    is_registered,
                    waits_until: None,
                });
            }
        }
        self.add_rebuild(snapshot, path, &file, question)?;
        match (state, active) {
            (ReleaseState::Revoked, _) => self.add_revocation(snapshot, path, question),
            (ReleaseState::Complete, Some(active)) => self.add_begun(snapshot, path, active, question),
            (ReleaseState::Complete, None) | (ReleaseState::Collecting, _) => Ok(()),
        }
    }

    fn add_revocation(
        &mut self,
        snapshot: &impl Snapshot,
        path: &RepoPath,
        question: &IncidentQuestion,
    ) -> Result<(), ReadError> {
        let revocation = layout::revocation_of(path);
        let set = stored::present_signatures(snapshot, &layout::signatures_of(&revocation))?;
        if !question.has_any(&set) {
            return Ok(());
        }
        let text = stored::require(snapshot, &revocation)?;
        let set = set.keep_verifying(&text);
        let signed = question.select(&set);
        if !signed.is_empty() {
            let groups = stored::signers_copy(snapshot, &revocation)?.file;
            let is_decisive = !quorum::is_met(&groups.revocation_groups(), &question.without(&set));
            let reason = stored::parse_stored(&revocation, Revocation::parse(&text))?.reason;
            self.revocations.push(TouchedRevocation { path: path.clone(), reason, signed, is_decisive });
        }
        Ok(())
    }

    /// What the keys state of a release, if they are or were builders' keys.
    fn add_rebuild(
        &mut self,
        snapshot: &impl Snapshot,
        path: &RepoPath,
        file: &SignersFile,
        question: &IncidentQuestion,
    ) -> Result<(), ReadError> {
        let Some(policy) = file.rebuilds() else { return Ok(()) };
        let rebuilds = stored::rebuilds(snapshot, path)?;
        if !rebuilds.entries.keys().any(|key| question.keys.contains(key)) {
            return Ok(());
        }
        let bytes = stored::require(snapshot, path)?;
        let index = stored::parse_stored(path, ReleaseIndex::parse(&bytes))?;
        let rebuilds = rebuilds.keep_verifying(path, &Sha512::of(&bytes));
        let named = rebuilds.entries.iter().map(|(key, said)| (*key, said.collected_at));
        let mut stated: SigningTimes = named.filter(|(key, _)| question.keys.contains(key)).collect();
        stated.retain(|_, at| question.since.is_none_or(|since| *at >= since));
        if !stated.is_empty() {
            let mut others = rebuilds.clone();
            others.entries.retain(|key, _| !question.keys.contains(key));
            let is_reproduced = |stated| Reproduction::judge(&index, policy, stated).is_reproduced();
            let is_decisive = is_reproduced(&rebuilds) && !is_reproduced(&others);
            self.rebuilds.push(TouchedRebuild { path: path.clone(), stated, is_decisive });
        }
        Ok(())
    }

    /// A revocation that waits for more signatures.
    fn add_begun(
        &mut self,
        snapshot: &impl Snapshot,
        path: &RepoPath,
        active: &SignersFile,
        question: &IncidentQuestion,
    ) -> Result<(), ReadError> {
        let Some(text) = snapshot.read(&layout::pending_revocation_of(path))? else { return Ok(()) };
        let set = stored::begun_signatures(snapshot, path)?;
        let groups = active.revocation_groups();
        if question.has_any(&set) || keys_of(&groups).any(|key| question.keys.contains(&key)) {
            let set = set.keep_verifying(&text);
            self.open.push(OpenMatter {
                kind: OpenKind::Revocation,
                path: path.clone(),
                signed: question.select_ever(&set),
                tally: Tally::of_revocation(active, &set.signers()),
                is_completable: quorum::is_met(&groups, &question.with(&set)),
                is_registered: false,
                waits_until: None,
            });
        }
        Ok(())
    }
}

fn list_rotations(
    history: &History,
    chain: &VerifiedChain,
    question: &IncidentQuestion,
) -> Vec<TouchedRotation> {
    let mut rotations = Vec::new();
    for (i, (entry, link)) in history.entries.iter().zip(&chain.links).enumerate() {
        // The chain was verified, so every signature was.
        let signed = question.select(&entry.signatures);
        if signed.is_empty() {
            continue;
        }
        let current = i.checked_sub(1).map(|before| &chain.links[before].signers);
        let consent = Consent { current, proposed: &link.signers };
        let without = [&entry.signatures, &entry.metadata_signatures].map(|set| question.without(set));
        let unmet = consent
            .conditions()
            .into_iter()
            .filter(|condition| without.iter().any(|signed| !condition.is_met(signed)));
        let unmet = unmet.map(|condition| condition.kind).collect();
        rotations.push(TouchedRotation { number: i + 1, activated_at: link.activated_at, signed, unmet });
    }
    rotations.reverse();
    rotations
}

fn open_proposal(
    project: &RepoPath,
    proposal: &StoredProposal,
    active: Option<&SignersFile>,
    question: &IncidentQuestion,
) -> Option<OpenMatter> {
    let consent = Consent { current: active, proposed: &proposal.signers };
    let sets = [
        proposal.signatures.keep_verifying(&proposal.signers_bytes),
        proposal.metadata_signatures.keep_verifying(&proposal.metadata_bytes),
    ];
    let signed = question.select_ever(&sets[0]);
    if signed.is_empty() && consent.accepted_signers().is_disjoint(&question.keys) {
        return None;
    }
    Some(OpenMatter {
        kind: OpenKind::Rotation,
        path: layout::pending_signers(project),
        signed,
        tally: Tally::of_consent(&consent, &sets[0].signers()),
        is_completable: sets.iter().all(|set| consent.is_complete(&question.with(set))),
        is_registered: false,
        waits_until: None,
    })
}

// Lists where keys are or were listed.

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

fn list_listings(
    chain: Option<&VerifiedChain>,
    proposal: Option<&StoredProposal>,
    question: &IncidentQuestion,
) -> Vec<IncidentListing> {
    let links = chain.map(|chain| chain.links.as_slice()).unwrap_or_default();
    let mut listings = Vec::new();
    for key in &question.keys {
        let last = links.iter().rposition(|link| link.signers.names(key));
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
        let proposed = proposal.filter(|proposal| proposal.signers.names(key));
        if let Some(proposed) = proposed.filter(|_| standing != ListingStanding::InForce) {
            listings.push(IncidentListing::of(&proposed.signers, *key, ListingStanding::Proposed));
        }
    }
    listings
}

impl IncidentListing {
    fn of(file: &SignersFile, key: PublicKey, standing: ListingStanding) -> Self {
        let is_in = |role: &Role| has_member(&effective_groups(file, *role), &key);
        Self {
            signer: file.named_signer(key),
            roles: Role::ALL.into_iter().filter(is_in).collect(),
            is_registrar: file.has_registrar(&key),
            standing,
        }
    }
}

// Which keys are asked about, and what of a set of signatures is theirs.

/// Keys that are no longer trusted, all together.
#[derive(Debug, Clone, Default)]
pub struct IncidentQuestion {
    pub keys: BTreeSet<PublicKey>,
    /// The time from which on signatures count; without it all do.
    pub since: Option<Timestamp>,
}

/// The time at which each of the keys signed something.
pub type SigningTimes = BTreeMap<PublicKey, Timestamp>;

impl IncidentQuestion {
    /// The keys that signed, since the time that is asked for.
    fn select(&self, set: &SignatureSet) -> SigningTimes {
        let mut signed = self.select_ever(set);
        signed.retain(|_, at| self.since.is_none_or(|since| *at >= since));
        signed
    }

    fn select_ever(&self, set: &SignatureSet) -> SigningTimes {
        let named = set.entries.iter().filter(|(key, _)| self.keys.contains(key));
        named.map(|(key, collected)| (*key, collected.collected_at)).collect()
    }

    fn without(&self, set: &SignatureSet) -> BTreeSet<PublicKey> {
        set.signers().difference(&self.keys).copied().collect()
    }

    fn with(&self, set: &SignatureSet) -> BTreeSet<PublicKey> {
        set.signers().union(&self.keys).copied().collect()
    }

    /// Whether one of the keys is among the signers, whatever the time.
    fn has_any(&self, set: &SignatureSet) -> bool {
        set.entries.keys().any(|key| self.keys.contains(key))
    }
}

// What keys can do alone, and what it takes to remove them.

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
    let can = |act: &Act| act.ways(file).any(|(_, groups)| quorum::is_met(&groups, keys));
    Act::of(file).filter(can).collect()
}

fn plan_removal(file: &SignersFile, keys: &BTreeSet<PublicKey>) -> KeyRemoval {
    let mut shortages = Vec::new();
    for role in Role::ALL {
        let groups = file.explicit_groups(role).unwrap_or_default();
        for (i, group) in groups.iter().enumerate() {
            let left = group.signers.iter().filter(|signer| !keys.contains(&signer.key)).count();
            if left < group.threshold {
                let number = (groups.len() > 1).then_some(i + 1);
                shortages.push(KeyShortage { role, number, threshold: group.threshold, left });
            }
        }
    }
    let others: BTreeSet<PublicKey> = file.keys().difference(keys).copied().collect();
    KeyRemoval { shortages, others_can_rotate: list_powers(file, &others).contains(&Act::Rotate) }
}
