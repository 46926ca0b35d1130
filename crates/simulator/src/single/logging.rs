//! The log of the server, and its witness.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::{Duration, Instant},
};

use countersign_core::log::{proofs::WitnessRequest, tree::verify_consistency};
use countersign_log::{CosignRefusal, LogReplay};

use super::SingleRun;
use crate::{
    log_book::{LogBook, log_key},
    script::{Breach, Guarantee},
    witness::witness_key,
};

const PATIENCE: Duration = Duration::from_secs(60);
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
            if begin.elapsed() > PATIENCE {
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
        let mut sizes = derived.sizes();
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
