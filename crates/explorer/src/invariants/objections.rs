//! Withdrawals and objections: whose they are, and that they touch nothing else.

use crate::action::{Action, Seen, Word};
use crate::contents::{ContentId, Contents};
use crate::invariants::documents::{
    Keys, Reader, Said, digest_text, read_earlier, read_key, read_said, read_time,
};
use crate::invariants::{Held, Invariant, steps::StepCheck, steps::registrant};
use crate::roles::{COLLECTING, EARLIER, FILE, INDEX, OBJECTIONS, REVOKED, WITHDRAWN};
use crate::{requests::statements::LEAD, view::ProjectFacts, view::ReleaseSlots};

/// Checks at every state that objections verify and are about this index, and that a withdrawn release has nothing but
/// the record.
pub fn check_state(reader: &Reader, contents: &Contents, release: &ReleaseSlots) -> Held {
    let rule = Invariant::WithdrawnIsFree;
    let is_alone = release[WITHDRAWN].is_none() || is_record_alone(release);
    rule.hold(is_alone, "a withdrawn release has more than the record of it")?;
    let (Some(index), Some(file)) = (release[INDEX], release[OBJECTIONS]) else {
        return Invariant::ObjectionsBlockNothing
            .hold(release[OBJECTIONS].is_none(), "objections without an index");
    };
    let rule = Invariant::ObjectionsBlockNothing;
    let said = reader.value(contents, file).and_then(|value| read_said(&value));
    let Some(said) = said else { return rule.broken("objections cannot be read") };
    let digest = digest_text(contents.bytes(index));
    let is_sound = said.values().all(|said| said.is_valid && said.subject == digest);
    rule.hold(is_sound, "an objection does not verify, or is to another index")
}

/// Whether nothing is left but the record of a withdrawal, and what was said.
fn is_record_alone(release: &ReleaseSlots) -> bool {
    let mut others = *release;
    others[EARLIER] = None;
    others[WITHDRAWN].is_some() && others.iter().flatten().count() == 1
}

impl StepCheck<'_> {
    fn said(&self, file: Option<ContentId>) -> Option<Said> {
        file.map_or_else(|| Some(Said::new()), |file| read_said(&*self.reader.value(self.contents, file)?))
    }

    /// Checks that no other request touches what was objected, or who withdrew.
    pub(super) fn check_kept(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        for (n, (old, new)) in (0..).zip(old.releases.iter().zip(&new.releases)) {
            let is_about = match self.action {
                Action::Object { release, .. }
                | Action::Withdraw { release, .. }
                | Action::Assets { release, .. } => release == n,
                _ => false,
            };
            let rule = Invariant::ObjectionsBlockNothing;
            rule.hold(is_about || old[OBJECTIONS] == new[OBJECTIONS], "an objection was lost or changed")?;
            rule.hold(is_about || old[EARLIER] == new[EARLIER], "an earlier objection was lost or changed")?;
            let rule = Invariant::WithdrawnIsFree;
            rule.hold(
                is_about || old[WITHDRAWN] == new[WITHDRAWN],
                "the record of a withdrawal was changed",
            )?;
        }
        Ok(())
    }

    /// Checks a content that goes: what stood against it is kept, behind what was kept before, and nothing else is.
    fn check_retired(&self, old: &ReleaseSlots, new: &ReleaseSlots) -> Held {
        let rule = Invariant::ObjectionsStayReadable;
        let earlier = |release: &ReleaseSlots| match release[EARLIER] {
            Some(file) => read_earlier(&*self.reader.value(self.contents, file)?),
            None => Some(Vec::new()),
        };
        let (Some(before), Some(after), Some(said)) =
            (earlier(old), earlier(new), self.said(old[OBJECTIONS]))
        else {
            return rule.broken("objections cannot be read");
        };
        rule.hold(after.starts_with(&before), "an earlier objection was lost or changed")?;
        let standing: Said = said.into_iter().filter(|(_, said)| said.objection.is_some()).collect();
        let added = &after[before.len()..];
        let is_kept = added.len() == standing.len() && added.iter().cloned().collect::<Said>() == standing;
        rule.hold(is_kept, "an objection was lost with the content that it is about")
    }

    /// Checks that after a registration or correction nothing is left of what was said of another content, but in the
    /// record of it.
    pub(super) fn check_fresh(&self, was: &ReleaseSlots, is: &ReleaseSlots) -> Held {
        self.check_retired(was, is)?;
        Invariant::ObjectionsBlockNothing
            .hold(is[OBJECTIONS].is_none(), "an objection outlived what it was about")?;
        let rule = Invariant::WithdrawnIsFree;
        rule.hold(is[WITHDRAWN].is_none(), "a new release is called withdrawn")?;
        let is_named = registrant(self.reader, self.contents, is) == Some(self.key());
        rule.hold(is_named, "the registrant of a release is another key")
    }

    pub(super) fn check_withdrawal(&self, old: &ReleaseSlots, new: &ReleaseSlots, seen: Seen) -> Held {
        let rule = Invariant::WithdrawnIsFree;
        rule.hold(old[COLLECTING].is_some(), "what does not collect signatures was withdrawn")?;
        rule.hold(seen == Seen::This, "a release was withdrawn that the caller had not seen")?;
        rule.hold(is_record_alone(new), "a withdrawn release left more than the record of it")?;
        self.check_retired(old, new)?;
        let record = new[WITHDRAWN].and_then(|id| self.reader.value(self.contents, id));
        let by = record.and_then(|record| read_key(record.get("public_key")?.as_str()?));
        rule.hold(by == Some(self.key()), "the record names another key")
    }

    pub(super) fn check_objection(&self, old: &ReleaseSlots, new: &ReleaseSlots, word: Word) -> Held {
        let rule = Invariant::ObjectionsBlockNothing;
        let mut expected = *old;
        expected[OBJECTIONS] = new[OBJECTIONS];
        rule.hold(expected == *new, "an objection changed more than what is objected")?;
        rule.hold(old[REVOKED].is_none(), "an objection to what is revoked")?;
        let (Some(mut before), Some(mut after)) = (self.said(old[OBJECTIONS]), self.said(new[OBJECTIONS]))
        else {
            return rule.broken("objections cannot be read");
        };
        let (earlier, now) = (before.remove(&self.key()), after.remove(&self.key()));
        rule.hold(before == after, "the objection of another key was changed")?;
        let Some(now) = now else { return rule.broken("an objection was not recorded") };
        rule.hold(now.objection.as_deref() == word.text(), "another objection was recorded")?;
        let is_later = earlier.as_ref().is_none_or(|earlier| earlier.timestamp < now.timestamp);
        rule.hold(is_later, "an older word replaced a newer one")?;
        let stood = earlier.is_some_and(|earlier| earlier.objection.is_some());
        rule.hold(stood || now.objection.is_some(), "an objection was taken back that did not stand")?;
        let clock = self.world.clocks[usize::from(self.clock)].unix_seconds();
        let is_dated = read_time(&now.timestamp).is_some_and(|time| time <= clock + LEAD);
        rule.hold(is_dated, "an objection is dated ahead of the clock")
    }

    /// Who may object, or take back what was said: the author alone, also without a role left.
    pub(super) fn can_object(&self, old: &ProjectFacts, release: u8, word: Word) -> Keys {
        let active = old.active[FILE].and_then(|id| self.reader.signers(self.contents, id));
        let mut keys = active.map(|active| active.signers.clone()).unwrap_or_default();
        if word == Word::TakenBack {
            let said = self.said(old.releases[usize::from(release)][OBJECTIONS]);
            keys.extend(said.unwrap_or_default().into_keys());
        }
        keys
    }
}
