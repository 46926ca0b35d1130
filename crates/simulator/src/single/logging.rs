//! The log of the server, and its witness.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::{thread, time::Duration, time::Instant};

use countersign_core::log::{checkpoint::WitnessRequest, tree::TreeHead, tree::verify_consistency};
use countersign_log::{CosignRefusal, LogReplay};
use countersign_store::StoreRole;

use crate::log_book::{LogBook, log_key};
use crate::script::{Breach, Chance, Guarantee, Script};
use crate::{machine::Machine, single::PROJECTS, single::SingleRun, wish::ChangeWish, witness::witness_key};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Requests to the witness that can come again.
const MAX_REQUESTS: usize = 16;

impl SingleRun<'_> {
    pub(super) fn let_log_run(&mut self) -> Result<(), Breach> {
        let steps = self.chance.below(20);
        self.script.note(format!("the log, {steps} steps"));
        self.machine.let_log_run(steps);
        self.recover().map(drop)
    }

    pub(super) fn lose_agent(&mut self) -> Result<(), Breach> {
        self.script.note("the log's key is gone for a moment");
        self.machine.log_book.iter().for_each(LogBook::lose_agent);
        Ok(())
    }

    /// Shows the witness the newest checkpoint, or something that was sent before.
    pub(super) fn ask_witness(&mut self) -> Result<(), Breach> {
        // A log that is at work keeps others waiting.
        self.machine.let_log_run(usize::MAX);
        if self.recover()? || !self.machine.is_log_done() {
            return Ok(());
        }
        let Some(witnessing) = &mut self.witnessing else { return Ok(()) };
        if self.chance.percent(20) {
            witnessing.witness.plan_crash(&mut self.chance, self.script);
        }
        let Some(log) = self.machine.log() else { return Ok(()) };
        let Some(newest) = log.newest_checkpoint() else { return Ok(()) };
        let (old, size) = (witnessing.known, newest.checkpoint().size);
        let proof = if old == 0 || old == size { Some(Vec::new()) } else { log.prove_consistency(old, size) };
        let Some(proof) = proof else {
            let what = format!("the log has no proof from {old} commits to {size}");
            return Err(Breach::new(Guarantee::SignedIsProvable, what));
        };
        witnessing.requests.push(WitnessRequest { old, proof, note: newest.log_note() });
        if witnessing.requests.len() > MAX_REQUESTS {
            witnessing.requests.remove(0);
        }
        let newest_request = witnessing.requests.len() - 1;
        let at = if self.chance.percent(60) { newest_request } else { self.chance.below(newest_request + 1) };
        self.script.note(format!("the witness is asked: {at} of {newest_request}"));
        let request = witnessing.requests[at].clone();
        let answer = witnessing.witness.ask(&request, &mut self.chance, self.script)?;
        // Answers get lost as well.
        let Some(answer) = answer.filter(|_| self.chance.percent(80)) else { return Ok(()) };
        match answer {
            Ok(cosignature) => {
                let size = cosigned_size(&request);
                witnessing.known = size;
                let added =
                    catch_unwind(AssertUnwindSafe(|| log.add_cosignatures(size, &[cosignature.line])));
                match added {
                    Ok(added) => {
                        self.script.note(format!("  {size} commits are cosigned: {}", added.is_ok()))
                    }
                    Err(_) if self.machine.disk.is_down() => {}
                    Err(panic) => resume_unwind(panic),
                }
            }
            Err(CosignRefusal::OtherSize(seen)) => {
                witnessing.known = seen;
                let noted = catch_unwind(AssertUnwindSafe(|| log.note_answered(&witness_key(), seen)));
                match noted {
                    Ok(noted) => self.script.note(format!("  it has seen {seen}: {}", noted.is_ok())),
                    Err(_) if self.machine.disk.is_down() => {}
                    Err(panic) => resume_unwind(panic),
                }
            }
            Err(refusal) => self.script.note(format!("  it refuses: {refusal}")),
        }
        if !self.recover()? {
            self.note_cosigned();
        }
        Ok(())
    }

    /// What proofs are made for, while the log is at rest.
    fn note_cosigned(&self) {
        if let (Some(log), Some(book)) = (self.machine.log(), &self.machine.log_book)
            && self.machine.is_log_done()
            && let Some(note) = log.cosigned_note()
        {
            book.note_cosigned(&note);
        }
    }

    pub(super) fn check_record(&self) -> Result<(), Breach> {
        let dir = self.machine.path().join("log");
        self.machine.log_book.as_ref().map_or(Ok(()), |book| book.check_record(&dir))
    }

    /// The log covers all commits, and what was ever signed is a beginning of what the repository gives.
    pub(super) fn end_log(&mut self) -> Result<(), Breach> {
        let begin = Instant::now();
        while !self.machine.is_log_done() {
            self.machine.let_log_run(1_000);
            self.machine.check_log()?;
            if begin.elapsed() > TIMEOUT {
                let trouble = self.machine.log().and_then(|log| log.trouble());
                return Err(Breach::new(Guarantee::GoesOn, format!("the log does not go on: {trouble:?}")));
            }
        }
        self.machine.check_log()?;
        let (Some(log), Some(book)) = (self.machine.log(), &self.machine.log_book) else { return Ok(()) };
        let newest = log.newest_checkpoint().map(|newest| newest.checkpoint().head());
        let Some(newest) = newest else { return Ok(()) };
        let unprovable = |size| {
            let what = format!("the checkpoint of {size} commits, which was signed, cannot be proved");
            Breach::new(Guarantee::SignedIsProvable, what)
        };
        for signed in book.signed() {
            let proof = log.prove_consistency(signed.size, newest.size);
            let proof = proof.ok_or_else(|| unprovable(signed.size))?;
            verify_consistency(&signed, &newest, &proof).map_err(|_| unprovable(signed.size))?;
        }
        // Once more, from the repository alone.
        log.stop();
        self.machine.disk.set_gates_open(true);
        let dir = self.machine.path().join("derived");
        let derived = LogReplay::start(self.machine.store(), &dir, log_key());
        let derived = derived.map_err(|error| Breach::new(Guarantee::GoesOn, error.to_string()))?;
        let mut sizes = derived.log().sizes();
        let reached = self.machine.wait(sizes.wait_for(|size| *size >= newest.size)).is_ok();
        if !reached || derived.root_at(newest.size) != Some(newest.root) {
            return Err(unprovable(newest.size));
        }
        Ok(())
    }
}

fn cosigned_size(request: &WitnessRequest) -> u64 {
    let size = request.note.text().lines().nth(1).and_then(|size| size.parse().ok());
    size.expect("the log has made this request")
}

// A backup comes back: a copy of the data directory from before changes that a witness has seen.

/// How often the witness is asked for what the copy does not have.
const RESTORE_ASKS: usize = 60;
const RESTORE_TIMEOUT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);

impl SingleRun<'_> {
    /// Restores a copy. The disks work. The copy must sign nothing of its own, however much it grows and however often
    /// it starts.
    pub(super) fn restore(&mut self) -> Result<(), Breach> {
        if self.witnessing.is_none() {
            return Ok(());
        }
        self.script.note("a copy of the data directory");
        self.machine.stop(&mut self.chance, self.script);
        let mut copy = self.machine.copy("copy");
        self.start()?;
        let copied = self.commits();
        for _ in 0..=self.chance.below(3) {
            self.change()?;
        }
        // It may be that no change was made, or that the clock of the witness stays wrong.
        let (mut seen, mut asks) = (0, if self.commits() > copied { RESTORE_ASKS } else { 0 });
        while seen <= copied && asks > 0 {
            self.ask_witness()?;
            seen = self.witnessing.as_ref().map_or(0, |witnessing| witnessing.known);
            asks -= 1;
        }
        if seen <= copied {
            return Ok(());
        }
        let Some(newest) = self.machine.log().and_then(|log| log.newest_checkpoint()) else { return Ok(()) };
        let signed = self.signed_after(copied);
        let shows = self.chance.percent(50);
        self.script.note(format!("the copy has {copied} commits, and the witness has seen {seen}"));
        // How far the threads of the copy come, no seed decides. Nothing else depends on it.
        let (mut chance, mut unseen) = (Chance::new(self.chance.below(1_000) as u64), Script::default());
        for start in 0..3 {
            copy.start(|| StoreRole::Single, &mut chance, &mut unseen)?;
            copy.disk.set_gates_open(true);
            let log = copy.log().expect("it keeps a log").clone();
            let fail = |error: String| Breach::new(Guarantee::GoesOn, error);
            // The witness is away after the first start.
            if start == 0 {
                self.wait_for(|| *log.loaded().borrow())?;
                if shows {
                    log.take_checkpoint(&newest.log_note(), "a witness")
                        .map_err(|error| fail(error.to_string()))?;
                }
                log.note_answered(&witness_key(), seen).map_err(|error| fail(error.to_string()))?;
            }
            for change in 0..=chance.below(4) {
                let project = PROJECTS + 1 + 4 * start + change;
                copy.change(&[ChangeWish { project, whim: 1, request: self.new_request(), jump: 0 }]);
            }
            self.wait_for(|| log.figures().size == count_commits(&copy) && log.refusal().is_some())?;
            drop(log);
            copy.stop(&mut chance, &mut unseen);
        }
        if self.signed_after(copied) == signed {
            return Ok(());
        }
        let what = format!("a copy with {copied} commits has signed, and the witness had seen {seen}");
        Err(Breach::new(Guarantee::OneLog, what))
    }

    fn commits(&self) -> u64 {
        count_commits(&self.machine)
    }

    /// What the log's key has signed of more commits than these.
    fn signed_after(&self, size: u64) -> Vec<TreeHead> {
        let signed = self.machine.log_book.as_ref().map(|book| book.signed()).unwrap_or_default();
        signed.into_iter().filter(|head| head.size > size).collect()
    }

    fn wait_for(&self, is_there: impl Fn() -> bool) -> Result<(), Breach> {
        let begin = Instant::now();
        while !is_there() {
            if begin.elapsed() > RESTORE_TIMEOUT {
                return Err(Breach::new(
                    Guarantee::OneLog,
                    "the log of a restored copy does not refuse to sign",
                ));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

fn count_commits(machine: &Machine) -> u64 {
    let mut count = 0;
    if let Ok(Some(mut export)) = machine.store().journal(None) {
        while let Ok(Some(_)) = export.next_entry() {
            count += 1;
        }
    }
    count
}
