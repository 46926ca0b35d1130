//! Removing a pending registration or proposal, on the operator's word (D15).

use thiserror::Error;

use super::titles;
use crate::{
    documents::layout,
    rules::{
        snapshot::{Change, ReadError, Snapshot},
        stored,
    },
    values::path::RepoPath,
};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DropRefusal {
    #[error("{0} has no pending registration or signers proposal")]
    NothingPending(RepoPath),
    #[error(transparent)]
    Stored(#[from] ReadError),
}

pub fn drop_pending(snapshot: &impl Snapshot, project: &RepoPath) -> Result<(Change, ()), DropRefusal> {
    let mut change = Change::new(format!("{} {project}\n\nBy: the operator\n", titles::DROP));
    stored::delete_below(snapshot, &mut change, &layout::pending_dir(project))?;
    if change.is_empty() {
        return Err(DropRefusal::NothingPending(project.clone()));
    }
    Ok((change, ()))
}
