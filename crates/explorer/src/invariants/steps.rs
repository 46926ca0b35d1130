//! What must hold of every step: who made it, and what it changed.

use std::rc::Rc;

use crate::invariants::documents::{
    Key, Keys, Reader, SignersDocument, can_consent, read_key, read_said, read_time, union,
};
use crate::invariants::{Broken, Held, Invariant};
use crate::roles::{
    AGREED, BEGUN, BEGUN_SET, COLLECTING, COMPLETE, COPY, FILE, INDEX, METADATA, OBJECTIONS, REBUILDS,
    REGISTRANT, REGISTRATION, REVOKED, SET, VETO, VETO_SET,
};
use crate::view::{BesideSlots, Facts, ProjectFacts, ReleaseSlots, SignersSlots};
use crate::{action::Action, contents::ContentId, contents::Contents, requests::EXPIRY, world::World};

#[derive(Debug, Clone, Copy)]
pub struct StepCheck<'a> {
    pub world: &'a World,
    pub contents: &'a Contents,
    pub reader: &'a Reader,
    pub action: Action,
    pub clock: u8,
}

impl StepCheck<'_> {
    pub fn check(&self, before: &Facts, after: &Facts) -> Held {
        self.check_offered()?;
        let Some(project) = self.action.project().map(usize::from) else {
            return Invariant::NothingElseChanges.hold(before == after, "time alone changed a file");
        };
        for (n, (old, new)) in before.projects.iter().zip(&after.projects).enumerate() {
            Invariant::ProjectsApart.hold(n == project || old == new, "another project was changed")?;
        }
        let (old, new) = (&before.projects[project], &after.projects[project]);
        self.check_history(old, new)?;
        self.check_complete(old, new)?;
        self.check_kept(old, new)?;
        self.check_stated(old, new)?;
        self.check_formats(old, new)?;
        self.check_frame(old, new)?;
        self.check_person(old, new)?;
        self.check_effect(old, new)
    }

    fn check_offered(&self) -> Held {
        match self.action {
            Action::SignProposal { offered, .. }
            | Action::SignIndex { offered, .. }
            | Action::Revoke { offered, .. }
            | Action::Object { offered, .. }
            | Action::Rebuild { offered, .. }
            | Action::Veto { offered, .. } => Invariant::CompleteMeansQuorum
                .hold(offered.is_right(), "a signature that does not verify was accepted"),
            Action::Register { .. }
            | Action::Update { .. }
            | Action::Assets { .. }
            | Action::Withdraw { .. }
            | Action::Activate { .. }
            | Action::Drop { .. }
            | Action::SetClock { .. } => Ok(()),
        }
    }

    fn check_history(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        let rule = Invariant::HistoryOnlyGrows;
        rule.hold(new.history.starts_with(&old.history), "an entry of the history was changed or removed")?;
        let grown = new.history.len() - old.history.len();
        rule.hold(grown <= 1, "two entries came at once")?;
        rule.hold(
            (grown == 1) == (old.active != new.active),
            "signers changed, and the history did not, or vice versa",
        )
    }

    /// What is complete, revoked or neither, before and after.
    fn check_complete(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        let is_rotation = old.active != new.active;
        for (old, new) in old.releases.iter().zip(&new.releases) {
            if old[REVOKED].is_some() {
                Invariant::RevokedForEver.hold(old == new, "a file of a revoked release was changed")?;
            }
            if old[COMPLETE].is_some() {
                let rule = Invariant::CompleteNeverChanges;
                let is_kept = old[INDEX] == new[INDEX] && old[COPY] == new[COPY];
                rule.hold(is_kept, "the index of a complete release, or its signers, was changed")?;
                let set = new[COMPLETE].or(new[REVOKED]);
                rule.hold(old[COMPLETE] == set, "the signatures of a complete release were changed")?;
                rule.hold(new[COLLECTING].is_none(), "a complete release collects signatures again")?;
            }
            if is_rotation {
                let of = |release: &ReleaseSlots| (release[COMPLETE].is_some(), release[REVOKED].is_some());
                let rule = Invariant::RotationCompletesNothing;
                rule.hold(of(old) == of(new), "a rotation completed or revoked a release")?;
            }
        }
        Ok(())
    }

    /// A request changes nothing but what it is about.
    fn check_frame(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        let mut expected = old.clone();
        match self.action {
            Action::Register { .. } | Action::Drop { .. } => {
                (expected.pending, expected.beside) = (new.pending, new.beside);
            }
            Action::Update { .. } => {
                (expected.pending, expected.beside) = (new.pending, new.beside);
                expected.superseded.clone_from(&new.superseded);
            }
            Action::Veto { .. } => {
                (expected.pending, expected.beside) = (new.pending, new.beside);
                expected.vetoed.clone_from(&new.vetoed);
            }
            Action::SignIndex { release, .. }
            | Action::Assets { release, .. }
            | Action::Revoke { release, .. }
            | Action::Withdraw { release, .. }
            | Action::Object { release, .. }
            | Action::Rebuild { release, .. } => {
                let release = usize::from(release);
                expected.releases[release] = new.releases[release];
            }
            Action::SignProposal { .. } if old.active == new.active => {
                (expected.pending, expected.beside) = (new.pending, new.beside);
            }
            Action::SignProposal { .. } | Action::Activate { .. } => expected = new.clone(),
            Action::SetClock { .. } => {}
        }
        Invariant::NothingElseChanges.hold(expected == *new, "the request changed what it is not about")
    }

    pub(super) fn signers(&self, id: Option<ContentId>) -> Option<Rc<SignersDocument>> {
        self.reader.signers(self.contents, id?)
    }

    pub(super) fn key(&self) -> Key {
        let by = self.action.person().map_or(0, usize::from);
        *self.world.people[by].public.as_bytes()
    }

    /// Checks whether the roles of the person allow this.
    fn check_person(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        let active = self.signers(old.active[FILE]);
        let in_force = |keys: fn(&SignersDocument) -> Keys| active.as_deref().map(keys).unwrap_or_default();
        let allowed = match self.action {
            Action::Register { .. } => self.signers(new.pending[FILE]).map(|file| file.signers.clone()),
            Action::Update { .. } if self.is_kept_for_masters(old) => Some(self.masters(old)),
            Action::Update { .. } if old.pending[FILE].is_some() => Some(in_force(SignersDocument::admins)),
            Action::Update { .. } => Some(in_force(|file| file.signers.clone())),
            Action::Assets { release, .. } if old.releases[usize::from(release)][INDEX].is_some() => {
                Some(in_force(|file| file.signers.clone()))
            }
            Action::Assets { .. } => {
                Some(in_force(|file| file.signers.union(&file.registrars).copied().collect()))
            }
            Action::Withdraw { release, .. } => {
                let release = &old.releases[usize::from(release)];
                active.as_deref().map(|active| can_withdraw(self.reader, self.contents, active, release))
            }
            Action::Object { release, word, .. } => Some(self.can_object(old, release, word)),
            Action::Rebuild { release, .. } => Some(self.can_state(old, release)),
            Action::Veto { .. } => Some(self.masters(old)),
            Action::SignIndex { .. } => Some(in_force(|file| union(&file.artifact))),
            Action::Revoke { .. } => Some(in_force(|file| union(&file.revocation))),
            Action::SignProposal { .. } => {
                let proposed = self.signers(old.pending[FILE]);
                proposed.map(|proposed| can_consent(active.as_deref(), &proposed))
            }
            Action::Activate { .. } | Action::Drop { .. } | Action::SetClock { .. } => return Ok(()),
        };
        let is_allowed = allowed.is_some_and(|keys| keys.contains(&self.key()));
        Invariant::UnlistedChangesNothing
            .hold(is_allowed, "a key changed something that its roles do not allow")
    }

    fn is_kept_for_masters(&self, old: &ProjectFacts) -> bool {
        let now = self.world.clocks[usize::from(self.clock)].unix_seconds();
        is_kept_for_masters(self.reader, self.contents, old, now)
    }

    fn check_effect(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        match self.action {
            Action::Register { file, .. } => self.check_registration(old, new, file),
            Action::Update { file, .. } => self.check_update(old, new, file),
            Action::SignProposal { .. } if old.active == new.active => {
                self.check_added(old.pending[SET], new.pending[SET], old.pending[FILE])?;
                self.check_wait_begins(old, new)?;
                self.check_veto_kept(old, new)?;
                let rule = Invariant::OneKeyCountsOnce;
                rule.hold(old.pending[..SET] == new.pending[..SET], "a signature changed what it signs")
            }
            Action::SignProposal { .. } => self.check_rotation(old, new),
            Action::SignIndex { release, .. } => {
                let (old, new) = (&old.releases[usize::from(release)], &new.releases[usize::from(release)]);
                let rule = Invariant::OneKeyCountsOnce;
                rule.hold(old[..=COPY] == new[..=COPY], "a signature changed what it signs")?;
                self.check_added(old[COLLECTING], new[COLLECTING].or(new[COMPLETE]), old[INDEX])
            }
            Action::Assets { release, .. } => {
                let (was, is) = (&old.releases[usize::from(release)], &new.releases[usize::from(release)]);
                let rule = Invariant::CompleteMeansQuorum;
                rule.hold(is[COPY] == old.active[FILE], "a new index is not under the signers in force")?;
                rule.hold(was[INDEX] != is[INDEX], "the same index was registered again")?;
                rule.hold(self.is_empty(is[COLLECTING]), "a new index has signatures already")?;
                self.check_fresh(was, is)
            }
            Action::Revoke { release, .. } => {
                let (old, new) = (&old.releases[usize::from(release)], &new.releases[usize::from(release)]);
                let rule = Invariant::RevokedForEver;
                rule.hold(old[COMPLETE].is_some(), "what was not complete was revoked")?;
                if new[REVOKED].is_some() || old[BEGUN] != new[BEGUN] {
                    return rule.hold(new[REVOKED].is_none() || new[BEGUN].is_none(), "it is begun and done");
                }
                self.check_added(old[BEGUN_SET], new[BEGUN_SET], old[BEGUN])
            }
            Action::Withdraw { release, seen, .. } => {
                let (old, new) = (&old.releases[usize::from(release)], &new.releases[usize::from(release)]);
                self.check_withdrawal(old, new, seen)
            }
            Action::Object { release, word, .. } => {
                let (old, new) = (&old.releases[usize::from(release)], &new.releases[usize::from(release)]);
                self.check_objection(old, new, word)
            }
            Action::Rebuild { release, got, .. } => {
                let (old, new) = (&old.releases[usize::from(release)], &new.releases[usize::from(release)]);
                self.check_rebuild(old, new, got)
            }
            Action::Veto { says, .. } => self.check_veto(old, new, says),
            Action::Activate { .. } => {
                self.check_due(old)?;
                self.check_rotation(old, new)
            }
            Action::Drop { .. } => {
                let is_gone = new.pending == SignersSlots::default() && new.beside == BesideSlots::default();
                Invariant::NothingElseChanges.hold(is_gone, "something is pending after it was dropped")
            }
            Action::SetClock { .. } => Ok(()),
        }
    }

    fn is_empty(&self, set: Option<ContentId>) -> bool {
        let value = set.and_then(|set| self.reader.value(self.contents, set));
        value.is_some_and(|set| {
            set.get("entries").and_then(|it| it.as_object()).is_some_and(|it| it.is_empty())
        })
    }

    /// The set has the signer's key more than before, and no other.
    fn check_added(&self, old: Option<ContentId>, new: Option<ContentId>, of: Option<ContentId>) -> Held {
        let rule = Invariant::OneKeyCountsOnce;
        let keys = |set: Option<ContentId>| -> Result<Keys, Broken> {
            let set = set.zip(of).and_then(|(set, of)| self.reader.set(self.contents, set, of));
            set.map_or_else(|| rule.broken("there are no signatures"), |set| Ok(set.all.clone()))
        };
        let (mut expected, new) = (keys(old)?, keys(new)?);
        rule.hold(expected.insert(self.key()), "a key signed twice")?;
        rule.hold(expected == new, "a signature added or removed the signature of another key")
    }

    fn is_file(&self, id: Option<ContentId>, file: u8) -> bool {
        let plan = &self.world.projects[usize::from(self.action.project().unwrap_or_default())];
        id.is_some_and(|id| *self.contents.bytes(id) == plan.files[usize::from(file)].bytes)
    }

    fn check_registration(&self, old: &ProjectFacts, new: &ProjectFacts, file: u8) -> Held {
        let rule = Invariant::SignersNeedConsent;
        rule.hold(old.active[FILE].is_none(), "a project was registered twice")?;
        if let Some(metadata) = old.pending[METADATA].and_then(|id| self.reader.value(self.contents, id)) {
            let since = metadata.get("origin").and_then(|origin| origin.get("retrieved_at"));
            let since = since.and_then(|since| read_time(since.as_str()?));
            let has_lapsed = since.is_some_and(|since| self.now() - since >= EXPIRY.as_secs() as i64);
            rule.hold(has_lapsed, "a registration was replaced before it had lapsed")?;
        }
        rule.hold(self.is_file(new.pending[FILE], file), "another file than the one asked for is pending")?;
        rule.hold(self.is_empty(new.pending[SET]), "a new proposal has signatures already")
    }

    fn check_update(&self, old: &ProjectFacts, new: &ProjectFacts, file: u8) -> Held {
        self.check_wait_begins(old, new)?;
        let is_left = new.beside[VETO].or(new.beside[VETO_SET]).is_some();
        Invariant::VetoByMasters.hold(!is_left, "a begun veto outlived the proposal that it was of")?;
        let rule = Invariant::SupersededComesBack;
        rule.hold(self.is_file(new.pending[FILE], file), "another file than the one asked for is pending")?;
        let replaced = &old.pending;
        let is_kept = replaced[FILE].is_none() || new.superseded.iter().any(|(_, slots)| slots == replaced);
        rule.hold(is_kept, "a replaced proposal was not kept as it was")?;
        let back = old.superseded.iter().find(|(_, slots)| slots[FILE] == new.pending[FILE]);
        match back {
            Some((_, slots)) => {
                rule.hold(*slots == new.pending, "a proposal came back without its signatures")?
            }
            None => rule.hold(self.is_empty(new.pending[SET]), "a new proposal has signatures already")?,
        }
        let others = |(_, slots): &&(u64, SignersSlots)| slots[FILE] != new.pending[FILE];
        let lost = old.superseded.iter().filter(others).find(|kept| !new.superseded.contains(kept));
        rule.hold(lost.is_none(), "another superseded proposal was lost")
    }

    /// What collects signatures begins anew under the new signers; nothing else of a release changes.
    fn check_rotation(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        let rule = Invariant::RotationCompletesNothing;
        let is_file = old.pending[FILE] == new.active[FILE] && old.pending[METADATA] == new.active[METADATA];
        Invariant::SignersNeedConsent.hold(is_file, "other signers took effect than were proposed")?;
        let none = new.pending == SignersSlots::default() && new.beside == BesideSlots::default();
        let none = none && new.superseded.is_empty() && new.vetoed.is_empty();
        rule.hold(none, "after a rotation, proposals for the signers of before are left")?;
        for (old, release) in old.releases.iter().zip(&new.releases) {
            if old[COLLECTING].is_none() {
                rule.hold(old == release, "a rotation changed a release that does not collect signatures")?;
                continue;
            }
            rule.hold(old[INDEX] == release[INDEX], "a rotation changed an index")?;
            rule.hold(release[COPY] == new.active[FILE], "an index stays under the signers of before")?;
            rule.hold(self.is_empty(release[COLLECTING]), "signatures outlived a rotation")?;
            rule.hold(old[REGISTRANT] == release[REGISTRANT], "a rotation changed who registered a release")?;
        }
        Ok(())
    }
}

// Who may do what, where it takes more than a look into the signers file.

/// The key that registered a release, as long as it collects.
pub fn registrant(reader: &Reader, contents: &Contents, release: &ReleaseSlots) -> Option<Key> {
    read_key(reader.value(contents, release[REGISTRANT]?)?.get("registrant")?.as_str()?)
}

/// Whether someone has signed a release that collects, rebuilt it or objects to it.
pub fn is_touched(reader: &Reader, contents: &Contents, release: &ReleaseSlots) -> bool {
    let set = release[COLLECTING].zip(release[INDEX]);
    let signed =
        set.and_then(|(set, index)| reader.set(contents, set, index)).is_some_and(|set| !set.all.is_empty());
    let said = release[OBJECTIONS].and_then(|id| read_said(&*reader.value(contents, id)?));
    signed
        || release[REBUILDS].is_some()
        || said.is_some_and(|said| said.values().any(|said| said.objection.is_some()))
}

/// Who may withdraw a release that collects: admins, and the key that registered it, if it still may register. A
/// registrar only as long as no one has signed it, rebuilt it or objects to it.
pub fn can_withdraw(
    reader: &Reader,
    contents: &Contents,
    active: &SignersDocument,
    release: &ReleaseSlots,
) -> Keys {
    let is_touched = is_touched(reader, contents, release);
    let still = registrant(reader, contents, release)
        .filter(|key| active.signers.contains(key) || (active.registrars.contains(key) && !is_touched));
    union(&active.admin).into_iter().chain(still).collect()
}

/// Whether only masters may replace what is pending.
pub fn is_kept_for_masters(reader: &Reader, contents: &Contents, project: &ProjectFacts, now: i64) -> bool {
    let active = project.active[FILE].and_then(|id| reader.signers(contents, id));
    let Some((active, hours)) = active.and_then(|active| active.delay_hours.map(|hours| (active, hours)))
    else {
        return false;
    };
    let masters = union(&active.master);
    let pending = &project.pending;
    let set = pending[SET].zip(pending[FILE]).and_then(|(set, file)| reader.set(contents, set, file));
    let signed = set.into_iter().flat_map(|set| set.collected.clone());
    let value = |slot: usize| pending[slot].and_then(|id| reader.value(contents, id));
    let proposer = value(REGISTRATION).and_then(|request| read_key(request.get("public_key")?.as_str()?));
    let retrieved =
        value(METADATA).and_then(|it| read_time(it.get("origin")?.get("retrieved_at")?.as_str()?));
    let words = signed.chain(proposer.zip(retrieved));
    let newest = words.filter(|(key, _)| masters.contains(key)).map(|(_, at)| at).max();
    newest.is_some_and(|at| project.beside[AGREED].is_some() || now < at + hours * 3_600)
}
