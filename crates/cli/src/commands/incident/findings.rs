//! What was found.

use countersign_core::{rules::snapshot::Snapshot, values::path::RepoPath};
use countersign_explain::incident::{IncidentFault, IncidentQuestion, ProjectIncident, examine_project};

use crate::error::CliError;

/// What was found, and whether all of it could be looked at.
pub(super) struct Findings {
    pub(super) question: IncidentQuestion,
    pub(super) projects: Vec<ProjectIncident>,
    pub(super) faults: Vec<IncidentFault>,
    /// The server has more than was asked for.
    pub(super) is_cut: bool,
    /// Servers that say themselves that they are not ready, such as mirrors that do not have everything.
    pub(super) unready: Vec<String>,
}

impl Findings {
    pub(super) fn of(
        snapshot: &impl Snapshot,
        projects: &[RepoPath],
        releases: impl Fn(&RepoPath) -> Vec<RepoPath>,
        question: IncidentQuestion,
    ) -> Self {
        let mut findings =
            Self { question, projects: Vec::new(), faults: Vec::new(), is_cut: false, unready: Vec::new() };
        for project in projects {
            match examine_project(snapshot, project, || releases(project), &findings.question) {
                Ok(found) => findings.projects.extend(found),
                Err(fault) => findings.faults.push(fault),
            }
        }
        findings
    }
}

pub(super) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> CliError {
    CliError::other("the signers files cannot be read", "`countersign fsck` says what is damaged")
        .because(error)
}
