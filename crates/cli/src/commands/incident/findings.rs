//! What was found.

use std::collections::BTreeSet;

use countersign_core::{rules::snapshot::Snapshot, values::path::RepoPath};
use countersign_explain::incident::{IncidentFault, IncidentQuestion, ProjectIncident, examine_project};

use crate::error::CliError;

/// What was found, and whether all of it could be looked at.
pub(super) struct Findings {
    pub(super) question: IncidentQuestion,
    /// The user's own first, those of strangers last (D219).
    pub(super) projects: Vec<ProjectIncident>,
    pub(super) faults: Vec<IncidentFault>,
    /// The server has more than was asked for.
    pub(super) is_cut: bool,
    /// Servers that say themselves that they are not ready, such as mirrors that do not have everything, and what could not
    /// be fetched.
    pub(super) unread: Vec<String>,
    /// The projects that this computer knows or the user named.
    known: BTreeSet<RepoPath>,
}

impl Findings {
    pub(super) fn of(
        snapshot: &impl Snapshot,
        projects: &[RepoPath],
        releases: impl Fn(&RepoPath) -> Vec<RepoPath>,
        question: IncidentQuestion,
        known: BTreeSet<RepoPath>,
    ) -> Self {
        let mut findings = Self {
            question,
            projects: Vec::new(),
            faults: Vec::new(),
            is_cut: false,
            unread: Vec::new(),
            known,
        };
        for project in projects {
            match examine_project(snapshot, project, || releases(project), &findings.question) {
                Ok(found) => findings.projects.extend(found),
                Err(fault) => findings.faults.push(fault),
            }
        }
        let Self { projects, known, .. } = &mut findings;
        projects.sort_by_cached_key(|one| {
            let is_known = known.contains(&one.project);
            (!is_known, one.is_untouched(), one.agreement, one.project.clone())
        });
        findings
    }

    /// Whether a project is neither known here nor touched by the keys: strangers can list any key.
    pub(super) fn is_strangers(&self, incident: &ProjectIncident) -> bool {
        incident.is_untouched() && !self.known.contains(&incident.project)
    }
}

pub(super) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> CliError {
    CliError::other("the signers files cannot be read", "`countersign fsck` says what is damaged")
        .because(error)
}
