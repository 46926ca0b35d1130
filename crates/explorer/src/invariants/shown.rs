//! What a server shows of a release or a project is what is stored (D232), and a reader loses nothing of it.

use std::collections::BTreeSet;

use countersign_core::documents::{layout, layout::Signable};
use countersign_core::proof::state::{State, StateSubject};
use countersign_core::{rules::snapshot::Snapshot, values::path::RepoPath};

use crate::{invariants::Broken, invariants::Held, invariants::Invariant, view::View};

/// Gathers the state of each release and project, reads it as a client does, and compares every file with the stored one.
pub fn check_shown(view: &View<'_>) -> Held {
    let paths: Vec<&RepoPath> = view.all_paths().collect();
    let mut subjects: BTreeSet<&RepoPath> = BTreeSet::new();
    for path in &paths {
        let is_index = layout::signable(path) == Some(Signable::Index);
        if is_index || layout::project_with_signers_at(path).is_some() && layout::signable(path).is_some() {
            subjects.insert(path);
        }
    }
    for path in subjects {
        let Some(subject) = StateSubject::find(view, path) else {
            return broken(path, "it is stored, and no subject of a state");
        };
        let shown = State::gather(view, subject).and_then(|state| state.to_files());
        let shown = shown.or_else(|error| broken(path, &error.to_string()))?;
        let belongs = |file: &RepoPath| match layout::signable(path) {
            Some(Signable::Index) => file.as_str().starts_with(path.as_str()),
            Some(Signable::PendingSigners { .. }) | None => file.parent() == path.parent(),
        };
        for file in paths.iter().filter(|file| belongs(file)) {
            if shown.read(file).ok().flatten() != view.read(file).ok().flatten() {
                return broken(file, "it is shown otherwise than it is stored");
            }
        }
    }
    Ok(())
}

fn broken<T>(path: &RepoPath, what: &str) -> Result<T, Broken> {
    Invariant::StatesAreSound.broken(format!("{path}: {what}"))
}
