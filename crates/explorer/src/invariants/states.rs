//! The invariants that must hold at every state.

use countersign_core::{rules::snapshot::Change, values::path::RepoPath};
use countersign_store::snapshot::index::Index;

use crate::invariants::documents::{
    Keys, Reader, SignersDocument, can_consent, digest_text, missing, missing_consent, union,
};
use crate::invariants::waiting::{WaitCheck, WaitDocument};
use crate::invariants::{Broken, Checked, Held, Invariant, objections, proofs, waiting};
use crate::roles::{
    AGREED, BEGUN, BEGUN_SET, COLLECTING, COMPLETE, COPY, EARLIER, FILE, INDEX, METADATA, METADATA_SET,
    REGISTRANT, REVOCATION, REVOCATION_COPY, REVOCATION_SET, REVOKED, SET, WITHDRAWN,
};
use crate::view::{BesideSlots, Facts, ProjectFacts, ReleaseSlots, SignersSlots, View};
use crate::{contents::ContentId, contents::Contents, world::World};

/// Kinds of checks that [`Checked`] tells apart.
const ENTRY: u8 = 0;
const ACTIVE: u8 = 1;
const PROPOSAL: u8 = 2;
const RELEASE: u8 = 3;

#[derive(Debug, Clone, Copy)]
pub struct StateCheck<'a> {
    pub contents: &'a Contents,
    pub reader: &'a Reader,
    pub checked: &'a Checked,
}

impl StateCheck<'_> {
    /// What is in force, what is proposed, and the history.
    pub fn check_signers(&self, project: &ProjectFacts, id: &str) -> Held {
        self.check_history(project, id)?;
        self.check_active(project)?;
        self.check_proposals(project, id)?;
        self.wait_check(id).check_vetoes(project)
    }

    fn wait_check<'a>(&'a self, id: &'a str) -> WaitCheck<'a> {
        WaitCheck { contents: self.contents, reader: self.reader, id }
    }

    pub fn check_release(&self, project: &ProjectFacts, release: usize) -> Held {
        let release = &project.releases[release];
        let history = project.history.iter().map(|(_, entry)| Some(*entry));
        let on: Vec<_> = release.iter().copied().chain([project.active[FILE]]).chain(history).collect();
        self.checked.once(RELEASE, &on, || self.check_slots(release, project))
    }

    fn signers(&self, id: ContentId) -> Result<std::rc::Rc<SignersDocument>, crate::invariants::Broken> {
        let found = self.reader.signers(self.contents, id);
        found.map_or_else(|| Invariant::StatesAreSound.broken("a signers file cannot be read"), Ok)
    }

    /// The keys of a signatures file, all of whose signatures are right.
    fn signed(&self, set: ContentId, subject: ContentId) -> Result<Keys, crate::invariants::Broken> {
        match self.reader.set(self.contents, set, subject) {
            Some(set) if set.is_sound() => Ok(set.valid.clone()),
            Some(_) => Invariant::OneKeyCountsOnce.broken("a signature that does not verify was kept"),
            None => Invariant::StatesAreSound.broken("a signatures file cannot be read"),
        }
    }

    fn check_history(&self, project: &ProjectFacts, id: &str) -> Held {
        let mut before = None;
        for ((number, entry), expected) in project.history.iter().zip(1..) {
            Invariant::HistoryOnlyGrows.hold(*number == expected, "the history has a gap")?;
            let on = [before, Some(*entry)];
            self.checked.once(ENTRY, &on, || self.check_entry(before, *entry, id))?;
            before = Some(*entry);
        }
        Ok(())
    }

    fn check_entry(&self, before: Option<ContentId>, entry: ContentId, id: &str) -> Held {
        let rule = Invariant::SignersNeedConsent;
        let read = |id| self.reader.entry(self.contents, id);
        let Some(entry) = read(entry) else { return rule.broken("an entry of the history cannot be read") };
        let before = before.and_then(read);
        let signers = before.as_ref().map(|before| &before.signers);
        for set in [&entry.set, &entry.metadata_set] {
            rule.hold(set.is_sound(), "a signature in the history does not verify")?;
            rule.hold(missing_consent(signers, &entry.signers, &set.valid) == 0, "not all had agreed")?;
            let strangers = set.all.difference(&can_consent(signers, &entry.signers)).count();
            Invariant::UnlistedChangesNothing.hold(strangers == 0, "someone who has no say signed it")?;
        }
        let text = |name: &str| entry.metadata.get(name).and_then(|value| value.as_str());
        rule.hold(text("project_id") == Some(id), "the signers of another project are in the history")?;
        let digest = digest_text(entry.signers_text.as_bytes());
        rule.hold(text("signers_file_digest") == Some(&digest), "its metadata are of another file")?;
        let previous = before.as_ref().map(|before| digest_text(before.signers_text.as_bytes()));
        rule.hold(text("previous") == previous.as_deref(), "it does not name the file before it")?;
        let Some(before) = before else { return Ok(()) };
        rule.hold(before.signers.timestamp < entry.signers.timestamp, "its signers file is not later")?;
        let time =
            |entry: &serde_json::Value| entry.get("timestamp").and_then(|it| it.as_str()).map(str::to_owned);
        Invariant::HistoryOnlyGrows.hold(time(&before.value) <= time(&entry.value), "time runs backwards")?;
        waiting::check_entry(&before, &entry)
    }

    /// What is in force is the newest entry of the history.
    fn check_active(&self, project: &ProjectFacts) -> Held {
        let rule = Invariant::SignersNeedConsent;
        let entry = project.history.last().map(|(_, entry)| *entry);
        let is_there = project.active.iter().filter(|slot| slot.is_some()).count();
        let expected = if entry.is_some() { project.active.len() } else { 0 };
        rule.hold(is_there == expected, "signers are in force that are not in the history, or not whole")?;
        let Some(entry) = entry else { return Ok(()) };
        let on: Vec<_> = project.active.iter().copied().chain([Some(entry)]).collect();
        self.checked.once(ACTIVE, &on, || {
            let Some(entry) = self.reader.entry(self.contents, entry) else {
                return rule.broken("an entry of the history cannot be read");
            };
            let is = |slot: usize, text: &str| {
                project.active[slot].is_some_and(|id| self.contents.bytes(id)[..] == *text.as_bytes())
            };
            let same = is(FILE, &entry.signers_text) && is(METADATA, &entry.metadata_text);
            rule.hold(same, "what is in force is not the newest of the history")?;
            for (set, name) in [(SET, "signatures"), (METADATA_SET, "metadata_signatures")] {
                let value = project.active[set].and_then(|id| self.reader.value(self.contents, id));
                rule.hold(
                    value.as_deref() == entry.value.get(name),
                    "its signatures are not those of the history",
                )?;
            }
            Ok(())
        })
    }

    fn check_proposals(&self, project: &ProjectFacts, id: &str) -> Held {
        let of = |slots: &SignersSlots, beside: Option<&BesideSlots>| {
            let on = slots.iter().chain(beside.into_iter().flatten()).copied();
            let on: Vec<_> = on.chain([project.active[FILE]]).collect();
            self.checked.once(PROPOSAL + 10 * u8::from(beside.is_some()), &on, || {
                self.check_proposal(slots, beside, project.active[FILE], id)
            })
        };
        if project.pending.iter().any(Option::is_some) {
            of(&project.pending, Some(&project.beside))?;
        }
        for (_, slots) in &project.superseded {
            of(slots, None)?;
            let is_twice = slots[FILE] == project.pending[FILE];
            Invariant::SupersededComesBack.hold(!is_twice, "one proposal is pending and superseded")?;
        }
        let is_kept = project.superseded.is_empty() || project.active[FILE].is_some();
        Invariant::SupersededComesBack
            .hold(is_kept, "a proposal was superseded before any signers were in force")
    }

    /// Checks a proposal. `beside` is what lies beside it if it is pending.
    fn check_proposal(
        &self,
        slots: &SignersSlots,
        beside: Option<&BesideSlots>,
        active: Option<ContentId>,
        id: &str,
    ) -> Held {
        let [Some(file), Some(metadata), Some(_), Some(set), Some(metadata_set)] = *slots else {
            return Invariant::StatesAreSound.broken("a proposal is not whole");
        };
        let (proposed, active) = (self.signers(file)?, active.map(|id| self.signers(id)).transpose()?);
        let (signed, also) = (self.signed(set, file)?, self.signed(metadata_set, metadata)?);
        let rule = Invariant::OneKeyCountsOnce;
        rule.hold(signed == also, "someone signed the file and not its metadata")?;
        let strangers = signed.difference(&can_consent(active.as_deref(), &proposed)).count();
        Invariant::UnlistedChangesNothing.hold(strangers == 0, "someone who has no say signed a proposal")?;
        let Some(beside) = beside else { return Ok(()) };
        let is_open = missing_consent(active.as_deref(), &proposed, &signed) > 0;
        self.wait_check(id).check_waiting(beside, is_open, active.as_deref(), [&signed, &also])
    }

    fn check_slots(&self, release: &ReleaseSlots, project: &ProjectFacts) -> Held {
        objections::check_state(self.reader, self.contents, release)?;
        let rule = Invariant::CompleteMeansQuorum;
        let has = |slot: usize| release[slot].is_some();
        let Some(index) = release[INDEX] else {
            // What was said of a content outlives it.
            let count = release.iter().flatten().count() - usize::from(has(EARLIER));
            return rule.hold(count == usize::from(has(WITHDRAWN)), "files of an index without the index");
        };
        let sets = [COLLECTING, COMPLETE, REVOKED].into_iter().filter(|slot| has(*slot)).collect::<Vec<_>>();
        let ([state], Some(copy)) = (&sets[..], release[COPY]) else {
            return rule.broken("an index is in no state, or in several");
        };
        let is_named = has(REGISTRANT) == (*state == COLLECTING);
        rule.hold(is_named, "a collecting index has no registrant, or another one has")?;
        let set = release[*state].unwrap_or_default();
        let (signers, signed) = (self.signers(copy)?, self.signed(set, index)?);
        proofs::check_state(self.reader, self.contents, release, &signed)?;
        let strangers = signed.difference(&union(&signers.artifact)).count();
        Invariant::UnlistedChangesNothing
            .hold(strangers == 0, "someone who is no artifact signer signed an index")?;
        let is_enough = missing(&signers.artifact, &signed) == 0;
        rule.hold(
            is_enough == (*state != COLLECTING),
            "it is complete without its quorum, or with it not complete",
        )?;
        if *state == COLLECTING {
            let is_current = Some(copy) == project.active[FILE];
            rule.hold(is_current, "an index collects signatures under signers that are not in force")?;
        }
        rule.hold(self.was_in_force(copy, project), "an index is under signers that never were in force")?;
        self.check_revocation(release, index, project, *state)
    }

    fn was_in_force(&self, copy: ContentId, project: &ProjectFacts) -> bool {
        let entries =
            project.history.iter().filter_map(|(_, entry)| self.reader.entry(self.contents, *entry));
        entries.into_iter().any(|entry| *entry.signers_text.as_bytes() == self.contents.bytes(copy)[..])
    }

    fn check_revocation(
        &self,
        release: &ReleaseSlots,
        index: ContentId,
        project: &ProjectFacts,
        state: usize,
    ) -> Held {
        let rule = Invariant::RevokedForEver;
        let is_revoked = state == REVOKED;
        for slot in [REVOCATION, REVOCATION_SET, REVOCATION_COPY] {
            rule.hold(
                release[slot].is_some() == is_revoked,
                "a revocation is not whole, or of no revoked index",
            )?;
        }
        let begun = (release[BEGUN], release[BEGUN_SET]);
        rule.hold(begun.0.is_some() == begun.1.is_some(), "a begun revocation is not whole")?;
        if let (Some(document), Some(set)) = begun {
            rule.hold(state == COMPLETE, "a revocation was begun of what is not complete")?;
            self.check_subject(document, index, true)?;
            self.signed(set, document)?;
        }
        let (Some(document), Some(set), Some(copy)) =
            (release[REVOCATION], release[REVOCATION_SET], release[REVOCATION_COPY])
        else {
            return Ok(());
        };
        let (signers, signed) = (self.signers(copy)?, self.signed(set, document)?);
        rule.hold(missing(&signers.revocation, &signed) == 0, "too few of those who may revoke have signed")?;
        rule.hold(self.was_in_force(copy, project), "it was revoked under signers that never were in force")?;
        let is_named = self.check_subject(document, index, false)?;
        let alone = signed.iter().any(|key| missing(&signers.revocation, &Keys::from([*key])) == 0);
        rule.hold(is_named || alone, "the document names no index, and no one alone may revoke")
    }

    /// Checks whether the document names the index, and no other.
    fn check_subject(
        &self,
        document: ContentId,
        index: ContentId,
        must: bool,
    ) -> Result<bool, crate::invariants::Broken> {
        let rule = Invariant::RevokedForEver;
        let document = self.reader.value(self.contents, document);
        let Some(document) = document else { return rule.broken("a revocation cannot be read") };
        match document.get("subject_digest").and_then(|value| value.as_str()) {
            None => rule.hold(!must, "a begun revocation names no index").map(|()| false),
            Some(subject) => {
                let is_this = subject == digest_text(self.contents.bytes(index));
                rule.hold(is_this, "a revocation is of another index").map(|()| true)
            }
        }
    }
}

// The index of what waits for whom, which the store brings up to date with each commit, is the one built anew. And it
// names those who can still sign.

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

/// What waits for each person is what that person can sign and has not signed. What is due is what waits for time
/// alone.
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
