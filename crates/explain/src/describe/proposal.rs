//! A signers file that waits for signatures: what it changes, and who still has to sign (D15).

use std::sync::Arc;

use countersign_core::documents::signers::{Group, Metadata, Signer, SignersFile, SignersOrigin};
use countersign_core::documents::{
    layout, signatures::SignatureSet, signed_request::SignedRequest, statement::Veto,
};
use countersign_core::rules::decide::statement::{VetoRecord, list_records};
use countersign_core::rules::snapshot::{ReadError, Snapshot, StoredSigners};
use countersign_core::rules::{quorum::Consent, quorum::Tally, stored};
use countersign_core::values::{digest::Sha512, key::PublicKey, path::RepoPath, time::Timestamp};

use crate::progress::{
    ConditionProgress, GroupProgress, Member, Names, asked_text, describe_conditions, describe_groups,
};
use crate::{difference::SignersChange, difference::list_changes, log_strength::LogStrength};

/// What a page about proposed signers shows.
#[derive(Debug, Clone)]
pub struct ProposalDescription {
    pub path: RepoPath,
    pub project: RepoPath,
    /// Whether it would be the project's first signers file.
    pub is_first: bool,
    pub digest: Sha512,
    pub origin: SignersOrigin,
    /// The signer whose request proposed it, if the request is there.
    pub submitter: Option<Signer>,
    pub changes: Vec<SignersChange>,
    /// The log that the file names, new or not.
    pub log: Option<LogStrength>,
    /// The conditions, all of which must be met.
    pub conditions: Vec<ConditionProgress>,
    /// The signers who have signed it, in order of time.
    pub signed: Vec<Member>,
    pub signatures: SignatureSet,
    /// The signers to ask next.
    pub missing: Vec<Signer>,
    /// What the signers are called: by the file in force, or else by this one.
    pub names: Names,
    pub tally: Tally,
    /// The time at which it takes effect, if it has all signatures (D131).
    pub waits_until: Option<Timestamp>,
    /// Whether there are masters who can veto it.
    pub has_masters: bool,
    /// A veto that waits for more signatures.
    pub veto: Option<BegunVeto>,
}

/// What a line about proposed signers shows.
#[derive(Debug, Clone)]
pub struct ProposalSummary {
    pub path: RepoPath,
    pub signers: StoredSigners,
    pub metadata: Metadata,
    pub signatures: SignatureSet,
    pub metadata_signatures: SignatureSet,
    /// The signers in force.
    pub current: Option<Arc<SignersFile>>,
    /// The key whose request proposed it, if the request is there.
    pub submitter: Option<PublicKey>,
    pub tally: Tally,
    /// The time at which it takes effect, if it has all signatures (D131).
    pub waits_until: Option<Timestamp>,
}

/// A veto that waits for more signatures.
#[derive(Debug, Clone)]
pub struct BegunVeto {
    pub reason: String,
    pub tally: Tally,
    /// The groups of masters; all must be met.
    pub groups: Vec<GroupProgress>,
    pub signed: Vec<Member>,
}

/// A proposal that the masters vetoed.
#[derive(Debug, Clone)]
pub struct VetoedProposal {
    /// The path of the veto.
    pub path: RepoPath,
    /// The digest of the signers file that was proposed.
    pub digest: Sha512,
    pub reason: String,
    pub vetoed_at: Option<Timestamp>,
    pub signed: Vec<Member>,
}

impl ProposalDescription {
    /// Says how far it is, in people, and who still has to sign.
    pub fn progress(&self) -> String {
        let asked = asked_text(&self.conditions);
        if asked.is_empty() { self.tally.to_string() } else { format!("{} from {asked}", self.tally) }
    }
}

/// Describes the proposed signers of a project; `None` if nothing is proposed.
pub fn describe_proposal(
    snapshot: &impl Snapshot,
    project: &RepoPath,
) -> Result<Option<ProposalDescription>, ReadError> {
    let Some(summary) = summarise_proposal(snapshot, project)? else { return Ok(None) };
    let consent = summary.consent();
    let Consent { current, proposed } = consent;
    let names = Names::of(current.into_iter().chain([proposed]));
    let set = &summary.signatures;
    let masters = current.map_or(&[][..], SignersFile::master_groups);
    let missing = consent.missing_signers(&set.signers());
    Ok(Some(ProposalDescription {
        waits_until: summary.waits_until,
        has_masters: !masters.is_empty(),
        veto: describe_veto(snapshot, &summary.path, masters, &names)?,
        project: project.clone(),
        is_first: current.is_none(),
        digest: summary.signers.digest,
        origin: summary.metadata.origin.clone(),
        submitter: summary.submitter.map(|key| names.signer(key)),
        changes: list_changes(current, proposed),
        log: proposed.transparency().map(LogStrength::of),
        tally: summary.tally,
        conditions: describe_conditions(&consent, set, &names),
        signed: names.list_signed(set),
        missing: missing.into_iter().map(|key| names.signer(key)).collect(),
        names,
        path: summary.path,
        signatures: summary.signatures,
    }))
}

/// Finds out less than [`describe_proposal`], for lists. `None` if nothing is proposed.
pub fn summarise_proposal(
    snapshot: &impl Snapshot,
    project: &RepoPath,
) -> Result<Option<ProposalSummary>, ReadError> {
    let path = layout::pending_signers(project);
    let Some(signers) = snapshot.read_signers(&path)? else { return Ok(None) };
    let metadata_path = layout::metadata_of(&path);
    let metadata = Metadata::parse(&stored::require(snapshot, &metadata_path)?);
    let signatures = stored::collected_signatures(snapshot, &path)?;
    let current = stored::active_signers(snapshot, project)?.map(|active| active.file);
    let consent = Consent { current: current.as_deref(), proposed: &signers.file };
    let request = snapshot.read_document(&layout::registration_of(&path), SignedRequest::parse)?;
    Ok(Some(ProposalSummary {
        tally: Tally::of_consent(&consent, &signatures.signers()),
        metadata: stored::parse_stored(&metadata_path, metadata)?,
        metadata_signatures: stored::present_signatures(
            snapshot,
            &layout::pending_signatures_of(&metadata_path),
        )?,
        submitter: request.map(|request| request.public_key),
        waits_until: stored::agreement(snapshot, &path)?.map(|agreement| agreement.due_at),
        signatures,
        signers,
        current,
        path,
    }))
}

/// Counts the signatures on proposed signers, as a badge shows them.
pub fn tally_proposal(snapshot: &impl Snapshot, project: &RepoPath) -> Result<Option<Tally>, ReadError> {
    Ok(summarise_proposal(snapshot, project)?.map(|summary| summary.tally))
}

/// What the masters vetoed since the signers in force took effect, the newest first (D136). A veto that no key signed
/// is none, and one about another project is not this project's.
pub fn list_vetoed(snapshot: &impl Snapshot, project: &RepoPath) -> Result<Vec<VetoedProposal>, ReadError> {
    let records = list_records(snapshot, project)?;
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let current = stored::active_signers(snapshot, project)?.map(|active| active.file);
    let names = Names::of(current.as_deref());
    let describe = |VetoRecord { vetoed_at, path }| {
        let veto = stored::parse_stored(&path, Veto::parse(&stored::require(snapshot, &path)?))?;
        let set = stored::present_signatures(snapshot, &layout::signatures_of(&path))?;
        let is_veto = veto.project_id == *project && !set.entries.is_empty();
        let (digest, signed) = (veto.signers_file_digest, names.list_signed(&set));
        Ok(is_veto.then_some(VetoedProposal { path, digest, reason: veto.veto, vetoed_at, signed }))
    };
    records.into_iter().rev().filter_map(|record| describe(record).transpose()).collect()
}

impl ProposalSummary {
    /// Who must agree, and to what.
    pub fn consent(&self) -> Consent<'_> {
        Consent { current: self.current.as_deref(), proposed: &self.signers.file }
    }
}

fn describe_veto(
    snapshot: &impl Snapshot,
    path: &RepoPath,
    masters: &[Group],
    names: &Names,
) -> Result<Option<BegunVeto>, ReadError> {
    let veto = snapshot.read_document(&layout::pending_veto_of(path), Veto::parse)?;
    let Some(Veto { veto: reason, .. }) = veto else { return Ok(None) };
    let set = stored::collected_signatures(snapshot, &layout::veto_of(path))?;
    Ok(Some(BegunVeto {
        reason,
        tally: Tally::of(masters, &set.signers()),
        groups: describe_groups(masters, &set, names),
        signed: names.list_signed(&set),
    }))
}
