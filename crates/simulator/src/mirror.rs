//! A mirror that follows the journal of its origin: both can die, answers are cut off, changed, repeated and put into
//! another order, and a stranger sends commits that the rules do not give.

use std::{collections::BTreeSet, sync::Arc};

use countersign_core::{documents::layout, rules::snapshot::Change, values::time::Timestamp};
use countersign_store::journal::{JournalEntry, write_entries};
use countersign_store::journal::{follow::FollowError, read::JournalReader};
use countersign_store::{Author, ObjectId, Options, Repository, Store, StoreRole, machine::clock::Clock};
use countersign_testing::path;
use tempfile::TempDir;

use crate::expected::{ExpectedHistory, check_index, check_replay, read_history, speaks_for};
use crate::machine::{Machine, background::ChangeAnswer};
use crate::script::{Breach, Chance, Guarantee, RunFigures, Script, SimClock};
use crate::wish::{ChangeWish, RequestMark};

const STEPS: usize = 32;
const PROJECTS: usize = 2;
const TRIES: usize = 100;

#[derive(Debug)]
struct MirrorRun<'a> {
    origin: Machine,
    mirror: Machine,
    expected: ExpectedHistory,
    /// What the mirror has published, and its users have seen.
    followed: ExpectedHistory,
    /// Answers of the origin, which can come again.
    sent: Vec<Vec<u8>>,
    /// The newest commits of both when they were compared last.
    checked: Option<(ObjectId, ObjectId)>,
    next_request: u64,
    chance: Chance,
    script: &'a mut Script,
    figures: RunFigures,
}

/// The ways in which the network delivers an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JournalDelivery {
    Whole,
    CutOff,
    ChangedByte,
    /// A commit says that it was made a second later.
    OtherTime,
    Swapped,
    OneMissing,
    Old,
    Forged,
}

/// Plays one run.
pub fn play(chance: Chance, script: &mut Script) -> Result<RunFigures, Breach> {
    let mut mirror = MirrorRun {
        origin: Machine::new("origin", SimClock::default()),
        mirror: Machine::new("mirror", SimClock::default()),
        expected: ExpectedHistory::default(),
        followed: ExpectedHistory::default(),
        sent: Vec::new(),
        checked: None,
        next_request: 0,
        chance,
        script,
        figures: RunFigures::default(),
    };
    mirror.start_origin()?;
    mirror.start_mirror()?;
    for _ in 0..STEPS {
        mirror.step()?;
    }
    mirror.end()
}

impl MirrorRun<'_> {
    fn step(&mut self) -> Result<(), Breach> {
        match self.chance.below(100) {
            0..40 => self.change(),
            40..75 => self.follow(),
            75..80 => {
                self.origin.plan_crash(&mut self.chance, self.script);
                Ok(())
            }
            80..88 => {
                self.mirror.plan_crash(&mut self.chance, self.script);
                Ok(())
            }
            88..91 => {
                self.mirror.plan_failure(&mut self.chance, self.script);
                Ok(())
            }
            91..94 => self.fail_at_the_end(),
            94..96 => {
                self.origin.plan_failure(&mut self.chance, self.script);
                Ok(())
            }
            _ => {
                self.script.note("fold");
                self.mirror.let_fold(30);
                self.recover()
            }
        }
    }

    fn start_origin(&mut self) -> Result<(), Breach> {
        self.origin.start(|| StoreRole::Single, &mut self.chance, self.script)?;
        let observer = self.expected.observer(self.origin.store());
        self.origin.disk.observe(Some(Box::new(observer)));
        self.figures.commits = self.expected.check(self.origin.store())?.len();
        self.checked = None;
        Ok(())
    }

    fn start_mirror(&mut self) -> Result<(), Breach> {
        self.mirror.start(|| StoreRole::Mirror, &mut self.chance, self.script)?;
        let observer = self.followed.observer(self.mirror.store());
        self.mirror.disk.observe(Some(Box::new(observer)));
        self.checked = None;
        self.check()
    }

    fn change(&mut self) -> Result<(), Breach> {
        let mut wishes = Vec::new();
        for _ in 0..1 + self.chance.below(3) {
            self.next_request += 1;
            let request = RequestMark { number: self.next_request, signed_at: self.origin.clock.now() };
            let (project, whim) = (self.chance.below(PROJECTS), self.chance.below(1_000));
            wishes.push(ChangeWish { project, whim, request, jump: 0 });
        }
        self.script.note("changes at the origin");
        for (attempt, answer) in self.origin.change(&wishes) {
            self.script.note(ChangeAnswer::tell(&attempt, &answer));
            if let Ok(answer) = &answer {
                self.expected.note_seen(answer.seen);
            }
            self.figures.answered += usize::from(attempt.is_answered);
            self.expected.add(attempt);
        }
        self.recover()
    }

    /// The mirror asks for what is new, and gets something.
    fn follow(&mut self) -> Result<(), Breach> {
        let deliveries = [
            JournalDelivery::Whole,
            JournalDelivery::Whole,
            JournalDelivery::CutOff,
            JournalDelivery::ChangedByte,
            JournalDelivery::OtherTime,
            JournalDelivery::Swapped,
            JournalDelivery::OneMissing,
            JournalDelivery::Old,
            JournalDelivery::Forged,
        ];
        let delivery = *self.chance.pick(&deliveries);
        self.deliver(delivery).map(drop)
    }

    /// The disk of the mirror fails at the end of a write, and the mirror asks again.
    fn fail_at_the_end(&mut self) -> Result<(), Breach> {
        self.mirror.plan_late_failure(&mut self.chance, self.script);
        self.deliver(JournalDelivery::Whole)?;
        self.deliver(JournalDelivery::Whole).map(drop)
    }

    /// Delivers an answer, and returns whether the mirror took all of it.
    fn deliver(&mut self, delivery: JournalDelivery) -> Result<bool, Breach> {
        let entries = self.ask()?;
        let body = self.pass_on(delivery, entries)?;
        self.script.note(format!("the mirror follows: {delivery:?}, {} bytes", body.len()));
        let (mut reader, failures) = (JournalReader::default(), self.mirror.disk.failures());
        reader.push(&body);
        let mut is_taken = true;
        loop {
            let mut group = Vec::new();
            let most = 1 + self.chance.below(6);
            while group.len() < most
                && let Ok(Some(entry)) = reader.next()
            {
                group.push(entry);
            }
            if group.is_empty() {
                break;
            }
            let last = group.last().map(|entry| entry.id);
            let followed = self.mirror.wait(self.mirror.store().follow(group));
            match followed {
                Ok(()) => last.into_iter().for_each(|last| self.followed.note_seen(last)),
                Err(error) => {
                    let is_ours = matches!(error, FollowError::Store(_));
                    let may_fail = self.mirror.disk.failures() > failures || self.mirror.disk.is_down();
                    if delivery == JournalDelivery::Whole && !(is_ours && may_fail) {
                        return Err(Breach::new(Guarantee::GoesOn, format!("the mirror stops: {error}")));
                    }
                    is_taken = false;
                    break;
                }
            }
        }
        if !self.mirror.disk.is_down() {
            // After a failure the writer does nothing until the mirror asks again.
            if is_taken {
                self.mirror.await_writer();
            }
            self.mirror.await_folder();
        }
        self.recover()?;
        Ok(is_taken)
    }

    fn ask(&self) -> Result<Vec<JournalEntry>, Breach> {
        let tip = Some(self.mirror.store().head().commit).filter(|commit| !commit.is_null());
        let unknown = || {
            let what = format!("the mirror has the commit {tip:?}, and its origin does not");
            Breach::new(Guarantee::PrefixOfOrigin, what)
        };
        let export = self.origin.store().journal(tip);
        let export = export.map_err(|error| Breach::new(Guarantee::ReplayAccepts, error.to_string()))?;
        let mut export = export.ok_or_else(unknown)?;
        let mut entries = Vec::new();
        while let Ok(Some(entry)) = export.next_entry() {
            entries.push(entry);
        }
        Ok(entries)
    }

    fn pass_on(
        &mut self,
        delivery: JournalDelivery,
        mut entries: Vec<JournalEntry>,
    ) -> Result<Vec<u8>, Breach> {
        let count = entries.len();
        match delivery {
            JournalDelivery::Swapped if count > 1 => entries.swap(0, count - 1),
            JournalDelivery::OneMissing if count > 0 => {
                entries.remove(self.chance.below(count));
            }
            JournalDelivery::OtherTime if !entries.is_empty() => {
                let at = self.chance.below(entries.len());
                let later = entries[at].time.unix_seconds() + 1;
                entries[at].time = Timestamp::from_unix_seconds(later).expect("a year of this century");
            }
            JournalDelivery::Forged => entries = self.forge()?,
            JournalDelivery::Whole
            | JournalDelivery::CutOff
            | JournalDelivery::ChangedByte
            | JournalDelivery::OtherTime
            | JournalDelivery::Swapped
            | JournalDelivery::OneMissing
            | JournalDelivery::Old => {}
        }
        let mut body = write_entries(&entries);
        match delivery {
            JournalDelivery::CutOff => body.truncate(self.chance.below(body.len() + 1)),
            JournalDelivery::ChangedByte if !body.is_empty() => {
                let at = self.chance.below(body.len());
                body[at] ^= 1 << self.chance.below(8);
            }
            JournalDelivery::Old if !self.sent.is_empty() => body = self.chance.pick(&self.sent).clone(),
            JournalDelivery::Whole => self.sent.push(body.clone()),
            JournalDelivery::ChangedByte
            | JournalDelivery::OtherTime
            | JournalDelivery::Old
            | JournalDelivery::Swapped
            | JournalDelivery::OneMissing
            | JournalDelivery::Forged => {}
        }
        Ok(body)
    }

    /// A commit that continues what the mirror has, with the right id, and that no server makes: other signers, without
    /// anyone's consent.
    fn forge(&mut self) -> Result<Vec<JournalEntry>, Breach> {
        let past = read_history(self.mirror.store())?;
        let Some(tip) = past.last().map(|entry| entry.id) else { return Ok(Vec::new()) };
        let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a temporary directory");
        let broken = |error: &dyn std::fmt::Display| Breach::new(Guarantee::GoesOn, error.to_string());
        let repository = Repository::open(&dir.path().join("repo.git")).map_err(|error| broken(&error))?;
        let now = self.origin.clock.now();
        let options = Options {
            author: Author::new("Countersign", "countersign@localhost").expect("a name"),
            clock: Clock::new(move || now),
            initial: |_| Change::new(""),
            budget: None,
            speaks_for,
            role: StoreRole::Mirror,
        };
        let rogue = Store::start(repository, options).map_err(|error| broken(&error))?;
        self.mirror.wait(rogue.follow(past)).map_err(|error| broken(&error))?;
        let mut change = Change::new("Activate the signers of https/github.com/443/acme/app0");
        let project = path("https/github.com/443/acme/app0");
        change.write(layout::active_signers(&project), b"{}".to_vec());
        let made = self.mirror.wait(rogue.transact(move |_, _| Ok::<_, ()>((change.clone(), ()))));
        made.map_err(|error| broken(&error))?.expect("it refuses nothing");
        let mut forged = Vec::new();
        if let Ok(Some(mut export)) = rogue.journal(Some(tip)) {
            while let Ok(Some(entry)) = export.next_entry() {
                forged.push(entry);
            }
        }
        Ok(forged)
    }

    fn recover(&mut self) -> Result<(), Breach> {
        self.origin.note_steps(self.script);
        self.mirror.note_steps(self.script);
        if self.origin.disk.is_down() {
            self.figures.crashes += 1;
            self.origin.power_up(&mut self.chance, self.script);
            self.start_origin()?;
        }
        if self.mirror.disk.is_down() {
            self.figures.crashes += 1;
            self.mirror.power_up(&mut self.chance, self.script);
            self.start_mirror()?;
        }
        self.check()
    }

    /// The mirror has a beginning of what its origin has, and all that its users saw.
    fn check(&mut self) -> Result<(), Breach> {
        let heads = (self.origin.store().head().commit, self.mirror.store().head().commit);
        if self.checked == Some(heads) {
            return Ok(());
        }
        self.checked = Some(heads);
        let origin: Vec<ObjectId> = read_history(self.origin.store())?.iter().map(|entry| entry.id).collect();
        let own = read_history(self.mirror.store())?;
        let ids: Vec<ObjectId> = own.iter().map(|entry| entry.id).collect();
        if !origin.starts_with(&ids) {
            let what = format!("the mirror ends with {:?}", ids.last());
            return Err(Breach::new(Guarantee::PrefixOfOrigin, what));
        }
        let ids: BTreeSet<ObjectId> = ids.into_iter().collect();
        self.followed.check_seen(&ids)?;
        check_index(&self.mirror.store().head())
    }

    fn end(mut self) -> Result<RunFigures, Breach> {
        self.script.note("in the end");
        self.origin.disk.heal();
        self.mirror.disk.heal();
        for _ in 0..TRIES {
            if self.deliver(JournalDelivery::Whole)? && self.ask()?.is_empty() {
                break;
            }
        }
        let (origin, mirror) = (Arc::clone(self.origin.store()), self.mirror.store());
        if origin.head().commit != mirror.head().commit {
            return Err(Breach::new(Guarantee::GoesOn, "the mirror does not catch up"));
        }
        drop(origin);
        self.mirror.stop(&mut self.chance, self.script);
        self.start_mirror()?;
        self.mirror.check_leftovers()?;
        check_replay(self.mirror.path(), None)?;
        self.figures.steps = self.origin.disk.steps() + self.mirror.disk.steps();
        Ok(self.figures)
    }
}
