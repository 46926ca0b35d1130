//! A witness of the log, on a machine of its own. What it is sent can come late, again and in another order.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{collections::BTreeMap, fs, panic::AssertUnwindSafe, panic::catch_unwind};

use countersign_core::documents::transparency::WitnessGroup;
use countersign_core::log::checkpoint::{Checkpoint, Cosignature, WitnessRequest};
use countersign_core::log::{note::Note, policy::Policy, tree::Hash};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{digest::Sha256, key::SecretKey};
use countersign_log::{CheckpointSigner, CosignRefusal, LogWitness};
use tempfile::TempDir;

use crate::disk_state::{Aim, Crash};
use crate::script::{Breach, Chance, Guarantee, Script};
use crate::{log_book::log_key, log_book::sign_text, sim_disk::SimDisk};

const SEED: [u8; 32] = [101; 32];
/// A start that fails is tried again, so many times.
const MAX_STARTS: usize = 20;

#[derive(Debug)]
pub struct SimWitness {
    dir: TempDir,
    pub disk: SimDisk,
    witness: Option<LogWitness>,
    cosigned: Mutex<CosignedHeads>,
}

/// The talk between the log and its witness.
#[derive(Debug, Default)]
pub struct WitnessTalk {
    pub witness: SimWitness,
    /// What the log believes that the witness has seen.
    pub known: u64,
    /// Requests that were sent. The network can deliver each again, at any time.
    pub requests: Vec<WitnessRequest>,
}

/// What others have seen of its cosignatures; outlives every crash.
#[derive(Debug, Default)]
struct CosignedHeads {
    heads: BTreeMap<u64, Hash>,
    newest: u64,
    time: u64,
}

pub fn witness_key() -> VerifierKey {
    let public = SecretKey::from_seed(&SEED).public_key();
    VerifierKey::new("witness.example/w", KeyKind::Witness, public).expect("a name")
}

/// A policy by which this witness must have cosigned.
pub fn policy() -> Policy {
    let group = WitnessGroup::new(1, vec![witness_key()]);
    Policy::of_groups(log_key(), &[group]).expect("a policy")
}

impl Default for SimWitness {
    fn default() -> Self {
        let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a temporary directory");
        let disk = SimDisk::new(dir.path()).expect("it can be read");
        Self { dir, disk, witness: None, cosigned: Mutex::default() }
    }
}

impl SimWitness {
    /// Shows it a checkpoint. `None` if it died meanwhile, or its disk failed.
    pub fn ask(
        &mut self,
        request: &WitnessRequest,
        chance: &mut Chance,
        script: &mut Script,
    ) -> Result<Option<Result<Cosignature, CosignRefusal>>, Breach> {
        if chance.percent(15) {
            script.note("the witness starts again");
            self.witness = None;
            self.check_record()?;
        }
        if self.witness.is_none() {
            self.start(chance, script)?;
        }
        let Some(witness) = &self.witness else { return Ok(None) };
        // Its clock is set on and back.
        let now = 10_000 + chance.below(400) as u64;
        // It has one key.
        let ask = || witness.add_checkpoint(request, now).map(|mut cosigned| cosigned.remove(0));
        let asked = catch_unwind(AssertUnwindSafe(ask));
        script.note_steps("witness ", self.disk.take_trace());
        if self.disk.is_down() {
            self.power_up(chance, script)?;
            return Ok(None);
        }
        if let Ok(Ok(cosignature)) = &asked {
            lock(&self.cosigned).note(request, cosignature)?;
        }
        match asked {
            Ok(
                answer @ Err(
                    CosignRefusal::OtherRoot(_) | CosignRefusal::Stopped(_) | CosignRefusal::NotSigned(_),
                ),
            ) => {
                let what = format!("the witness refuses the log: {answer:?}");
                Err(Breach::new(Guarantee::OneLog, what))
            }
            Ok(answer) => Ok(Some(answer)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    pub fn plan_crash(&self, chance: &mut Chance, script: &mut Script) {
        let crash = if chance.percent(70) { Crash::PowerCut } else { Crash::Kill };
        let steps = chance.below(12);
        script.note(format!("witness: a {crash:?} in {steps} steps"));
        self.disk.plan_crash(Aim::AnyStep, steps, crash);
    }

    fn start(&mut self, chance: &mut Chance, script: &mut Script) -> Result<(), Breach> {
        for _ in 0..MAX_STARTS {
            let opened = catch_unwind(AssertUnwindSafe(|| self.open()));
            script.note_steps("witness ", self.disk.take_trace());
            if self.disk.is_down() {
                self.power_up(chance, script)?;
                continue;
            }
            match opened {
                Ok(Ok(witness)) => {
                    self.witness = Some(witness);
                    return Ok(());
                }
                Ok(Err(error)) => {
                    return Err(Breach::new(
                        Guarantee::GoesOn,
                        format!("the witness does not start: {error}"),
                    ));
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Err(Breach::new(Guarantee::GoesOn, "the witness does not start, however often it is tried"))
    }

    fn open(&self) -> Result<LogWitness, String> {
        let (dir, signers) = (self.dir.path().join("witness"), vec![self.signer()]);
        let witness = LogWitness::open_on(self.disk.disk(), &dir, signers);
        let witness = witness.map_err(|error| error.to_string())?;
        witness.add_log(vec![log_key()]).map_err(|error| error.to_string())?;
        Ok(witness)
    }

    fn signer(&self) -> CheckpointSigner {
        CheckpointSigner::elsewhere(witness_key(), |text| Ok(sign_text(&SEED, text)))
    }

    fn power_up(&mut self, chance: &mut Chance, script: &mut Script) -> Result<(), Breach> {
        self.witness = None;
        let crash = self.disk.power_up(chance).expect("the simulator writes where it pleases");
        script.note(format!("witness: after a {crash:?}"));
        self.check_record()
    }

    /// What was cosigned is on record.
    fn check_record(&self) -> Result<(), Breach> {
        let record =
            self.dir.path().join("witness").join(Sha256::of(log_key().name().as_bytes()).to_string());
        let recorded = fs::read(record).ok().and_then(|bytes| Note::parse(&bytes).ok());
        let recorded = recorded.and_then(|note| Checkpoint::parse(note.text()).ok());
        let (recorded, newest) =
            (recorded.map_or(0, |checkpoint| checkpoint.size), lock(&self.cosigned).newest);
        if recorded < newest {
            let what = format!("{newest} commits were cosigned, and {recorded} are on record");
            return Err(Breach::new(Guarantee::WitnessNeverGoesBack, what));
        }
        Ok(())
    }
}

impl CosignedHeads {
    /// Notes a cosignature that someone sees.
    fn note(&mut self, request: &WitnessRequest, cosignature: &Cosignature) -> Result<(), Breach> {
        let checkpoint = Checkpoint::parse(request.note.text()).expect("the log has made it");
        let (Checkpoint { size, root, .. }, Self { newest, time, .. }) = (checkpoint, &*self);
        let broken = if size < *newest {
            Some(format!("{size} commits are cosigned, after {newest}"))
        } else if cosignature.time < *time {
            Some(format!("the time {} is cosigned, after {time}", cosignature.time))
        } else if self.heads.get(&size).is_some_and(|known| *known != root) {
            Some(format!("two roots are cosigned for {size} commits"))
        } else {
            None
        };
        self.heads.insert(size, root);
        (self.newest, self.time) = (size, cosignature.time);
        broken.map_or(Ok(()), |what| Err(Breach::new(Guarantee::WitnessNeverGoesBack, what)))
    }
}

fn lock(cosigned: &Mutex<CosignedHeads>) -> MutexGuard<'_, CosignedHeads> {
    cosigned.lock().unwrap_or_else(PoisonError::into_inner)
}
