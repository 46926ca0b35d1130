//! A backup comes back: a copy of the data directory from before changes that a witness has seen.

use std::{
    thread,
    time::{Duration, Instant},
};

use countersign_core::log::tree::TreeHead;
use countersign_store::StoreRole;

use super::{PROJECTS, SingleRun};
use crate::{
    chance::Chance,
    machine::Machine,
    script::{Breach, Guarantee, Script},
    wish::ChangeWish,
    witness::witness_key,
};

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(1);

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
        let (begin, mut seen) = (Instant::now(), 0);
        while seen <= copied && begin.elapsed() < PATIENCE {
            self.ask_witness()?;
            seen = self.witnessing.as_ref().map_or(0, |witnessing| witnessing.known);
        }
        let newest = self.machine.log().and_then(|log| log.newest_checkpoint());
        let Some(newest) = newest.filter(|_| seen > copied) else { return Ok(()) };
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
            if begin.elapsed() > PATIENCE {
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
