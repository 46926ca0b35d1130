//! Rotations that wait, and vetoes: how long, who can stop it, and what the history tells of it.

use serde_json::Value;

use crate::invariants::documents::{
    EntryDocument, Keys, Reader, SignersDocument, digest_text, missing, missing_consent, read_time, union,
};
use crate::invariants::{Broken, Held, Invariant, steps::StepCheck};
use crate::roles::{AGREED, FILE, SET, VETO, VETO_SET};
use crate::view::{BesideSlots, ProjectFacts, SignersSlots, VetoSlots};
use crate::{action::Says, contents::ContentId, contents::Contents};

/// The times since when and until when a proposal waits, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitDocument {
    pub agreed_at: i64,
    pub due_at: i64,
}

impl WaitDocument {
    pub fn read(reader: &Reader, contents: &Contents, id: ContentId) -> Option<Self> {
        let value = reader.value(contents, id)?;
        let time = |name: &str| read_time(value.get(name)?.as_str()?);
        Some(Self { agreed_at: time("agreed_at")?, due_at: time("due_at")? })
    }
}

/// How long a rotation waits that these people agreed to, in seconds: not at all if the masters are among them.
fn delay(before: &SignersDocument, signed: [&Keys; 2]) -> Option<i64> {
    let masters_agree = signed.into_iter().all(|signed| missing(&before.master, signed) == 0);
    before.delay_hours.filter(|_| !masters_agree).map(|hours| hours * 3_600)
}

/// An entry of the history after another one: it waited as long as the one before demands, and says so.
pub fn check_entry(before: &EntryDocument, entry: &EntryDocument) -> Held {
    let rule = Invariant::DelayIsKept;
    let time = |value: &Value, name: &str| value.get(name).and_then(|it| read_time(it.as_str()?));
    let agreed_at = time(&entry.value, "agreed_at");
    let Some(delay) = delay(&before.signers, [&entry.set.valid, &entry.metadata_set.valid]) else {
        return rule.hold(agreed_at.is_none(), "the history tells of a wait, and nothing let it wait");
    };
    let times = (time(&before.value, "timestamp"), agreed_at, time(&entry.value, "timestamp"));
    let (Some(since), Some(agreed_at), Some(activated)) = times else {
        return rule.broken("the history does not tell since when a rotation had waited");
    };
    rule.hold(agreed_at + delay <= activated, "a rotation took effect before the delay was over")?;
    rule.hold(since <= agreed_at, "a rotation was agreed to before the signers were in force who did")?;
    for set in [&entry.set, &entry.metadata_set] {
        let is_agreed = missing_consent(Some(&before.signers), &entry.signers, &set.until(agreed_at)) == 0;
        rule.hold(is_agreed, "not all had agreed when the history says that they had")?;
    }
    Ok(())
}

/// What must hold of a proposal and what lies beside it, under the signers in force.
#[derive(Debug, Clone, Copy)]
pub struct WaitCheck<'a> {
    pub contents: &'a Contents,
    pub reader: &'a Reader,
    pub id: &'a str,
}

impl WaitCheck<'_> {
    /// Checks that a proposal waits if and only if it has all consent, and the signers in force have a delay and not
    /// agreed as masters.
    pub fn check_waiting(
        &self,
        beside: &BesideSlots,
        is_open: bool,
        before: Option<&SignersDocument>,
        signed: [&Keys; 2],
    ) -> Held {
        let delay = before.and_then(|before| delay(before, signed)).filter(|_| !is_open);
        Invariant::SignersNeedConsent
            .hold(is_open || delay.is_some(), "all have agreed, and it is not in force")?;
        let rule = Invariant::DelayIsKept;
        let Some(delay) = delay else {
            return rule.hold(beside[AGREED].is_none(), "a proposal waits, and nothing lets it wait");
        };
        let wait = beside[AGREED].and_then(|id| WaitDocument::read(self.reader, self.contents, id));
        let Some(wait) = wait else { return rule.broken("all have agreed, and it is not said since when") };
        rule.hold(wait.due_at <= wait.agreed_at + delay, "the wait is longer than the delay in force")
    }

    /// Vetoes: one that was begun, and those that are complete.
    pub fn check_vetoes(&self, project: &ProjectFacts) -> Held {
        let rule = Invariant::VetoByMasters;
        let (beside, pending) = (&project.beside, project.pending[FILE]);
        let begun = [beside[VETO], beside[VETO_SET]];
        rule.hold(begun[0].is_some() == begun[1].is_some(), "a begun veto is not whole")?;
        rule.hold(
            pending.is_some() || beside.iter().all(Option::is_none),
            "something lies beside a proposal that is gone",
        )?;
        if let (Some(file), Some(_)) = (pending, begun[0]) {
            let digest = digest_text(self.contents.bytes(file));
            let missing = self.check_veto(project, &begun, &digest)?;
            rule.hold(missing > 0, "enough masters have signed a veto, and it does not count")?;
        }
        let pending = pending.map(|id| digest_text(self.contents.bytes(id)));
        for (dir, slots) in &project.vetoed {
            let document = slots[0].and_then(|id| self.reader.value(self.contents, id));
            let digest = document.and_then(|it| Some(it.get("signers_file_digest")?.as_str()?.to_owned()));
            let digest = digest.filter(|digest| digest.starts_with(&format!("sha512:{dir:016x}")));
            let Some(digest) = digest else { return rule.broken("a veto is of another file than it says") };
            rule.hold(pending.as_ref() != Some(&digest), "what was vetoed is proposed again")?;
            let missing = self.check_veto(project, slots, &digest)?;
            rule.hold(missing == 0, "a veto counts without enough masters")?;
        }
        Ok(())
    }

    /// Checks a veto, and returns how many masters are missing.
    fn check_veto(&self, project: &ProjectFacts, slots: &VetoSlots, digest: &str) -> Result<usize, Broken> {
        let rule = Invariant::VetoByMasters;
        let ([Some(document), Some(set)], Some(active)) = (*slots, project.active[FILE]) else {
            return rule.broken("a veto is not whole, or no signers are in force");
        };
        let read =
            (self.reader.value(self.contents, document), self.reader.set(self.contents, set, document));
        let ((Some(said), Some(set)), Some(masters)) = (read, self.reader.signers(self.contents, active))
        else {
            return rule.broken("a veto cannot be read");
        };
        let names = |name: &str, expected: &str| said.get(name).and_then(Value::as_str) == Some(expected);
        let previous = digest_text(self.contents.bytes(active));
        let is_this = names("project_id", self.id)
            && names("signers_file_digest", digest)
            && names("previous", &previous);
        rule.hold(is_this, "a veto is of another proposal, or speaks for other masters")?;
        rule.hold(set.is_sound(), "a signature on a veto does not verify")?;
        let strangers = set.all.difference(&union(&masters.master)).count();
        rule.hold(strangers == 0, "someone who is no master signed a veto")?;
        Ok(missing(&masters.master, &set.valid))
    }
}

impl StepCheck<'_> {
    pub(super) fn now(&self) -> i64 {
        self.world.clocks[usize::from(self.clock)].unix_seconds()
    }

    fn wait(&self, project: &ProjectFacts) -> Option<WaitDocument> {
        WaitDocument::read(self.reader, self.contents, project.beside[AGREED]?)
    }

    /// A wait begins now and takes the delay in force. What waits keeps its time.
    pub(super) fn check_wait_begins(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        let rule = Invariant::DelayIsKept;
        let is_same = old.pending[FILE] == new.pending[FILE];
        if is_same && old.beside[AGREED].is_some() {
            return rule.hold(old.beside[AGREED] == new.beside[AGREED], "the time of a wait was changed");
        }
        let Some(wait) = self.wait(new) else { return Ok(()) };
        let active = old.active[FILE].and_then(|id| self.reader.signers(self.contents, id));
        let delay = active.and_then(|active| active.delay_hours).unwrap_or_default() * 3_600;
        rule.hold(wait.due_at == self.now() + delay, "a wait takes another time than the delay in force")?;
        rule.hold(wait.agreed_at >= self.now(), "a wait is said to have begun earlier than it did")
    }

    /// Checks that by time alone, only what is due takes effect.
    pub(super) fn check_due(&self, old: &ProjectFacts) -> Held {
        let is_due = self.wait(old).is_some_and(|wait| wait.due_at <= self.now());
        Invariant::DelayIsKept.hold(is_due, "signers took effect by themselves that were not due")
    }

    /// A veto removes the proposal, or adds the signature of a master, and nothing else.
    pub(super) fn check_veto(&self, old: &ProjectFacts, new: &ProjectFacts, says: Says) -> Held {
        let rule = Invariant::VetoByMasters;
        let is_late = self.wait(old).is_some_and(|wait| wait.due_at <= self.now());
        rule.hold(!is_late, "a veto came when the proposal was due")?;
        rule.hold(matches!(says, Says::First | Says::Second), "a veto of another proposal was accepted")?;
        rule.hold(old.pending[FILE].is_some(), "a veto of nothing")?;
        if new.vetoed == old.vetoed {
            let is_kept = old.pending == new.pending && old.beside[AGREED] == new.beside[AGREED];
            rule.hold(is_kept, "a veto that is not complete changed the proposal")?;
            let is_first = old.beside[VETO].is_none();
            rule.hold(is_first || old.beside[VETO] == new.beside[VETO], "a begun veto says something else")?;
            let none = Keys::new();
            let set = |project: &ProjectFacts| {
                let (document, set) = (project.beside[VETO]?, project.beside[VETO_SET]?);
                self.reader.set(self.contents, set, document)
            };
            let (before, after) = (set(old), set(new));
            let mut expected = before.map_or(none, |set| set.all.clone());
            rule.hold(expected.insert(self.key()), "a master vetoed twice")?;
            return rule.hold(after.is_some_and(|set| set.all == expected), "a veto has other signatures");
        }
        let is_gone = new.pending == SignersSlots::default() && new.beside == BesideSlots::default();
        rule.hold(is_gone, "what was vetoed is still proposed")?;
        let digest = old.pending[FILE].map(|id| digest_text(self.contents.bytes(id)));
        let dir = digest.and_then(|digest| u64::from_str_radix(digest.get(7..23)?, 16).ok());
        let mut others = new.vetoed.clone();
        others.retain(|(vetoed, _)| Some(*vetoed) != dir);
        rule.hold(others == old.vetoed, "a veto made or lost another one")
    }

    pub(super) fn masters(&self, project: &ProjectFacts) -> Keys {
        let active = project.active[FILE].and_then(|id| self.reader.signers(self.contents, id));
        active.map(|active| union(&active.master)).unwrap_or_default()
    }

    /// A signature that does not put signers into effect leaves the veto that was begun alone.
    pub(super) fn check_veto_kept(&self, old: &ProjectFacts, new: &ProjectFacts) -> Held {
        let is_kept = old.beside[VETO..] == new.beside[VETO..];
        Invariant::VetoByMasters.hold(is_kept, "a signature changed a veto that was begun")?;
        let is_signed = old.pending[SET] != new.pending[SET];
        Invariant::OneKeyCountsOnce.hold(is_signed, "a signature was accepted and not kept")
    }
}
