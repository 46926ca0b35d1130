//! A signers file that waits for signatures: what it changes, and who still has to sign (D15).

use super::{Member, Names, Tally};
use countersign_core::{
    documents::{
        layout,
        metadata::Origin,
        signed_request::SignedRequest,
        signers::{Group, Signer, SignersFile},
        veto::Veto,
    },
    rules::{
        consent::Consent,
        decide::veto::{VetoRecord, list_records},
        snapshot::{ReadError, Snapshot},
        stored::{self, StoredProposal},
    },
    values::{digest::Sha512, key::PublicKey, path::RepoPath, time::Timestamp},
};
use countersign_explain::{
    difference::{SignersChange, list_changes},
    log_strength::LogStrength,
    progress::{ConditionProgress, describe_conditions},
};

#[derive(Debug, Clone)]
pub struct ProposalOverview {
    pub path: RepoPath,
    pub project: RepoPath,
    /// Whether it would be the project's first signers file.
    pub is_first: bool,
    pub digest: Sha512,
    pub origin: Origin,
    /// The signer whose request proposed it.
    pub submitter: Signer,
    pub changes: Vec<SignersChange>,
    /// That the file names, new or not.
    pub log: Option<LogStrength>,
    /// All must be met.
    pub conditions: Vec<ConditionProgress>,
    pub signed: Vec<Member>,
    /// Whom to ask next.
    pub missing: Vec<Signer>,
    pub tally: Tally,
    /// When it takes effect, if it has all signatures (D131).
    pub waits_until: Option<Timestamp>,
    /// Whether there are masters who can veto it.
    pub has_masters: bool,
    /// A veto that waits for more signatures.
    pub veto: Option<BegunVeto>,
}

#[derive(Debug, Clone)]
pub struct BegunVeto {
    pub reason: String,
    pub tally: Tally,
    pub signed: Vec<Member>,
}

/// A proposal that the masters vetoed.
#[derive(Debug, Clone)]
pub struct VetoedProposal {
    /// The path of the veto.
    pub path: RepoPath,
    pub reason: String,
    pub vetoed_at: Option<Timestamp>,
    pub signed: Vec<Member>,
}

/// What the masters vetoed since the signers in force took effect, the newest first (D136).
pub fn list_vetoed(snapshot: &impl Snapshot, project: &RepoPath) -> Result<Vec<VetoedProposal>, ReadError> {
    let mut records = list_records(snapshot, project)?;
    records.reverse();
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let current = stored::active_signers(snapshot, project)?.map(|active| active.file);
    let names = Names::of(current.as_deref());
    let describe = |VetoRecord { vetoed_at, path }| {
        let bytes = stored::require(snapshot, &path)?;
        let reason = stored::parse_stored(&path, Veto::parse(&bytes))?.veto;
        let set = snapshot.read_signatures(&layout::signatures_of(&path))?.unwrap_or_default();
        Ok(VetoedProposal { path, reason, vetoed_at, signed: names.list_signed(&set) })
    };
    records.into_iter().map(describe).collect()
}

/// `None` if nothing is proposed.
pub fn describe_proposal(
    snapshot: &impl Snapshot,
    project: &RepoPath,
) -> Result<Option<ProposalOverview>, ReadError> {
    let path = layout::pending_signers(project);
    let Some(proposal) = StoredProposal::load(snapshot, &path)? else { return Ok(None) };
    let current = stored::active_signers(snapshot, project)?.map(|active| active.file);
    let consent = Consent { current: current.as_deref(), proposed: &proposal.signers };
    let names = Names::of(current.as_deref().into_iter().chain([&*proposal.signers]));
    let set = &proposal.signatures;
    let signed = set.signers();
    let registration = layout::registration_of(&path);
    let request = stored::parse_stored(&registration, SignedRequest::parse(&proposal.registration))?;
    let missing: Vec<PublicKey> = consent.missing_signers(&signed).into_iter().collect();
    let masters = current.as_deref().map_or(&[][..], SignersFile::master_groups);
    let agreement = stored::agreement(snapshot, &path)?;
    Ok(Some(ProposalOverview {
        waits_until: agreement.map(|agreement| agreement.due_at),
        has_masters: !masters.is_empty(),
        veto: describe_veto(snapshot, &path, masters, &names)?,
        project: project.clone(),
        is_first: current.is_none(),
        digest: proposal.digest(),
        origin: proposal.metadata.origin.clone(),
        submitter: names.signer(request.public_key),
        changes: list_changes(current.as_deref(), &proposal.signers),
        log: proposal.signers.transparency().map(LogStrength::of),
        tally: Tally::of_consent(&consent, &signed),
        conditions: describe_conditions(&consent, set, &names),
        signed: names.list_signed(set),
        missing: missing.into_iter().map(|key| names.signer(key)).collect(),
        path,
    }))
}

fn describe_veto(
    snapshot: &impl Snapshot,
    path: &RepoPath,
    masters: &[Group],
    names: &Names,
) -> Result<Option<BegunVeto>, ReadError> {
    let document = layout::pending_veto_of(path);
    let Some(bytes) = snapshot.read(&document)? else { return Ok(None) };
    let reason = stored::parse_stored(&document, Veto::parse(&bytes))?.veto;
    let set = stored::collected_signatures(snapshot, &layout::veto_of(path))?;
    let tally = Tally::of(masters, &set.signers());
    Ok(Some(BegunVeto { reason, tally, signed: names.list_signed(&set) }))
}

/// What a badge shows. Finding the changes would take longer.
pub fn tally_proposal(snapshot: &impl Snapshot, project: &RepoPath) -> Result<Option<Tally>, ReadError> {
    let Some(proposal) = StoredProposal::load(snapshot, &layout::pending_signers(project))? else {
        return Ok(None);
    };
    let current = stored::active_signers(snapshot, project)?.map(|active| active.file);
    let consent = Consent { current: current.as_deref(), proposed: &proposal.signers };
    Ok(Some(Tally::of_consent(&consent, &proposal.signatures.signers())))
}
