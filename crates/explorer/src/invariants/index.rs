//! The index of what waits for whom, which the store brings up to date with each commit, is the one built anew. And it
//! names those who can still sign.

use countersign_core::{rules::snapshot::Change, values::path::RepoPath};
use countersign_store::snapshot::index::Index;

use super::{
    Broken, Held, Invariant,
    documents::{Keys, Reader, can_consent, union},
    waiting::WaitDocument,
};
use crate::{
    contents::Contents,
    facts::Facts,
    roles::{AGREED, COLLECTING, COPY, FILE, INDEX, SET},
    view::View,
    world::World,
};

/// The index of the state before, brought up to date, is the one of the state after. So it is after every row of steps.
pub fn check_update(before: &View<'_>, after: &View<'_>, change: &Change) -> Result<Index, Broken> {
    let touched: Vec<RepoPath> = change.files.keys().cloned().collect();
    let mut updated = build(before);
    updated.update(after, &touched);
    let is_same = build(after) == updated;
    Invariant::IndexEqualsRebuilt.hold(is_same, "the index is not the one built anew").map(|()| updated)
}

fn build(view: &View<'_>) -> Index {
    let all: Vec<RepoPath> = view.all_paths().cloned().collect();
    let mut index = Index::default();
    index.update(view, &all);
    index
}

/// What waits for each person is what that person can sign and has not signed. What is due is what waits for time alone.
pub fn check_waiting(
    index: &Index,
    world: &World,
    contents: &Contents,
    reader: &Reader,
    facts: &Facts,
) -> Held {
    let rule = Invariant::IndexEqualsRebuilt;
    for (plan, project) in world.projects.iter().zip(&facts.projects) {
        let signers = |id| reader.signers(contents, id);
        let mut expected: Vec<(RepoPath, Keys)> = Vec::new();
        if let (Some(file), Some(set)) = (project.pending[FILE], project.pending[SET])
            && let (Some(proposed), Some(signed)) = (signers(file), reader.set(contents, set, file))
        {
            let active = project.active[FILE].and_then(signers);
            let open = can_consent(active.as_deref(), &proposed).difference(&signed.all).copied().collect();
            expected.push((plan.pending_path(), open));
        }
        for (n, release) in (0..).zip(&project.releases) {
            if let (Some(file), Some(copy), Some(set)) = (release[INDEX], release[COPY], release[COLLECTING])
                && let (Some(copy), Some(signed)) = (signers(copy), reader.set(contents, set, file))
            {
                let open = union(&copy.artifact).difference(&signed.all).copied().collect();
                expected.push((plan.index_path(n), open));
            }
        }
        let wait = project.beside[AGREED].and_then(|id| WaitDocument::read(reader, contents, id));
        for clock in &world.clocks {
            let is_due = wait.is_some_and(|wait| wait.due_at <= clock.unix_seconds());
            rule.hold(
                index.waiting_signers().due(*clock).any(|(_, project)| *project == plan.id) == is_due,
                "other signers are due than those that wait",
            )?;
        }
        for person in &world.people {
            let mut waiting: Vec<&RepoPath> = expected
                .iter()
                .filter(|(_, open)| open.contains(person.public.as_bytes()))
                .map(|(path, _)| path)
                .collect();
            waiting.sort();
            let found = index.waiting_for(&person.public).filter(|path| path.is_inside(&plan.id));
            rule.hold(found.eq(waiting), "something else waits for a person than that person can sign")?;
        }
    }
    Ok(())
}
