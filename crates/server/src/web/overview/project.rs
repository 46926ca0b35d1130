//! A project: its roles, and what is proposed.

use std::sync::Arc;

use countersign_core::{
    documents::{
        layout,
        signers::{Group, Role, Signer, SignersFile},
    },
    rules::{
        snapshot::{ReadError, Snapshot},
        stored,
        tally::Tally,
    },
    values::{digest::Sha512, path::RepoPath},
};
use countersign_explain::{
    describe::proposal::{
        ProposalDescription, VetoedProposal, describe_proposal, list_vetoed, tally_proposal,
    },
    log_strength::LogStrength,
    strength::effective_groups,
};

#[derive(Debug, Clone)]
pub struct ProjectOverview {
    pub id: RepoPath,
    /// The signers in force; `None` while the first registration waits for signatures.
    pub signers: Option<Arc<SignersFile>>,
    /// The digest of the signers file in force.
    pub digest: Option<Sha512>,
    /// How many signers files have been in force.
    pub steps: usize,
    /// The roles in the signers file in force, or else in the proposed one.
    pub roles: Vec<RoleOverview>,
    /// The keys in the same file that register new releases, and nothing else (D105).
    pub registrars: Vec<Signer>,
    /// The log in the same file.
    pub log: Option<LogStrength>,
    pub proposal: Option<ProposalDescription>,
    /// What the masters vetoed last, since the signers in force took effect.
    pub vetoed: Option<VetoedProposal>,
}

#[derive(Debug, Clone)]
pub struct RoleOverview {
    pub role: Role,
    /// Whether the file lists the role. Otherwise another role stands in for it.
    pub is_explicit: bool,
    /// The groups; empty if no key has the role.
    pub groups: Vec<Group>,
}

/// What a badge shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectState {
    /// The first signers file waits for signatures.
    Registering(Tally),
    Registered {
        signers: usize,
        is_changing: bool,
    },
}

/// Describes a project; `None` if there is no project at `id`.
pub fn describe_project(
    snapshot: &impl Snapshot,
    id: &RepoPath,
) -> Result<Option<ProjectOverview>, ReadError> {
    let active = stored::active_signers(snapshot, id)?;
    let (signers, digest) = active.map(|active| (active.file, Sha512::of(&active.bytes))).unzip();
    let steps = stored::history_len(snapshot, id);
    let proposal = describe_proposal(snapshot, id)?;
    let vetoed = list_vetoed(snapshot, id)?.into_iter().next();
    let shown = match &signers {
        Some(signers) => Some(Arc::clone(signers)),
        None => snapshot.read_signers(&layout::pending_signers(id))?.map(|proposed| proposed.file),
    };
    Ok(shown.map(|shown| {
        let roles = list_roles(&shown);
        let log = shown.transparency().map(LogStrength::of);
        let registrars = shown.registrars().to_vec();
        ProjectOverview { id: id.clone(), roles, registrars, log, signers, digest, steps, proposal, vetoed }
    }))
}

/// The state of a project; `None` if there is no project at `id`.
pub fn project_state(snapshot: &impl Snapshot, id: &RepoPath) -> Result<Option<ProjectState>, ReadError> {
    Ok(match stored::active_signers(snapshot, id)? {
        Some(active) => {
            let is_changing = snapshot.contains(&layout::pending_signers(id));
            Some(ProjectState::Registered { signers: active.file.keys().len(), is_changing })
        }
        None => tally_proposal(snapshot, id)?.map(ProjectState::Registering),
    })
}

fn list_roles(file: &SignersFile) -> Vec<RoleOverview> {
    let describe = |role| RoleOverview {
        role,
        is_explicit: file.explicit_groups(role).is_some(),
        groups: effective_groups(file, role),
    };
    Role::ALL.into_iter().map(describe).collect()
}
