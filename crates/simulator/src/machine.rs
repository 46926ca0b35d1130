//! One machine: a disk, a clock, and a process that can die at any step.

pub mod background;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{cell::Cell, fs, io, path::Path, path::PathBuf, sync::Arc, time::Duration};

use countersign_core::log::policy::Policy;
use countersign_log::{CheckpointFiles, LogOptions, TransparencyLog};
use countersign_store::store::{OpenSettings, OpenedData, open_repository_on};
use countersign_store::{Author, ObjectId, Store, StoreRole, machine::data_dir::DataDir, nonces::Nonces};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::disk_state::{Aim, Crash, DiskFailure};
use crate::script::{Breach, Chance, Guarantee, Script, SimClock};
use crate::{expected::speaks_for, log_book::LogBook, sim_disk::SimDisk};

/// A start that fails is tried again, so many times.
const MAX_STARTS: usize = 50;
/// The steps that move the branch: create, write and sync its lock, rename that, sync the directory.
const STEPS_OF_BRANCH: usize = 5;

#[derive(Debug)]
pub struct Machine {
    name: &'static str,
    dir: TempDir,
    pub disk: SimDisk,
    pub clock: SimClock,
    /// The book of the log, if the server keeps one.
    pub log_book: Option<LogBook>,
    pub policy: Option<Policy>,
    process: Option<Process>,
    /// The newest commit that was counted, and how many there are up to it.
    counted: Cell<(Option<ObjectId>, u64)>,
    /// The newest commit when the thread that folds went to rest.
    folder_rests: Cell<Option<ObjectId>>,
    runtime: Runtime,
}

/// The parts that end with the process. The order is that of a server's end.
#[derive(Debug)]
struct Process {
    log: Option<Arc<TransparencyLog>>,
    nonces: Option<Nonces>,
    store: Arc<Store>,
    _data_dir: DataDir,
}

impl Machine {
    pub fn new(name: &'static str, clock: SimClock) -> Self {
        let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a temporary directory");
        let disk = SimDisk::new(dir.path()).expect("it can be read");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        Self {
            name,
            dir,
            disk,
            clock,
            log_book: None,
            policy: None,
            process: None,
            counted: Cell::new((None, 0)),
            folder_rests: Cell::new(None),
            runtime,
        }
    }

    /// A machine with a copy of this one's files, as a backup gives it. Neither runs meanwhile.
    pub fn copy(&self, name: &'static str) -> Self {
        let mut copy = Self::new(name, self.clock.clone());
        copy_files(self.path(), copy.path()).expect("they can be read");
        copy.disk = SimDisk::new(copy.path()).expect("it can be read");
        (copy.log_book, copy.policy) = (self.log_book.clone(), self.policy.clone());
        copy
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.process.as_ref().expect("it is running").store
    }

    pub fn try_store(&self) -> Option<&Arc<Store>> {
        self.process.as_ref().map(|process| &process.store)
    }

    pub fn nonces(&self) -> &Nonces {
        self.process.as_ref().and_then(|process| process.nonces.as_ref()).expect("a server on its own runs")
    }

    pub fn log(&self) -> Option<&Arc<TransparencyLog>> {
        self.process.as_ref().and_then(|process| process.log.as_ref())
    }

    /// Waits for something that the process does.
    pub fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Starts the process. Crashes and failures on the way are survived: it starts once the disk lets it.
    pub fn start(
        &mut self,
        role: impl Fn() -> StoreRole,
        chance: &mut Chance,
        script: &mut Script,
    ) -> Result<(), Breach> {
        for attempt in 0..MAX_STARTS {
            if attempt == MAX_STARTS / 2 {
                self.disk.heal();
            }
            let failures = self.disk.failures();
            let opened = catch_unwind(AssertUnwindSafe(|| self.open(role())));
            self.note_steps(script);
            match opened {
                Ok(Ok(process)) => {
                    self.process = Some(process);
                    self.counted.set((None, 0));
                    self.folder_rests.set(None);
                    self.await_folder();
                    self.await_log();
                    return Ok(());
                }
                Ok(Err(error)) if self.disk.failures() == failures && !self.disk.is_down() => {
                    return Err(Breach::new(Guarantee::GoesOn, format!("it does not start: {error}")));
                }
                Ok(Err(error)) => {
                    let error = error.replace(&self.path().display().to_string(), "");
                    script.note(format!("{}: it does not start: {error}", self.name));
                }
                Err(_) if self.disk.is_down() => {}
                Err(panic) => std::panic::resume_unwind(panic),
            }
            self.power_up(chance, script);
        }
        Err(Breach::new(Guarantee::GoesOn, "it does not start, however often it is tried"))
    }

    fn open(&self, role: StoreRole) -> Result<Process, String> {
        self.disk.set_gates_open(false);
        let data_dir = DataDir::lock(self.dir.path()).map_err(|error| error.to_string())?;
        let settings = OpenSettings {
            author: Author::new("Countersign", "countersign@localhost").expect("a name"),
            clock: self.clock.clock(),
            budget: None,
            speaks_for,
            role,
        };
        let opened = open_repository_on(self.disk.disk(), &data_dir, settings);
        let OpenedData { store, nonces } = opened.map_err(|error| describe(&error))?;
        let log =
            self.log_book.as_ref().map(|book| self.open_log(&store, book, data_dir.log())).transpose()?;
        Ok(Process { log, nonces, store: Arc::new(store), _data_dir: data_dir })
    }

    fn open_log(&self, store: &Store, book: &LogBook, dir: PathBuf) -> Result<Arc<TransparencyLog>, String> {
        let options = LogOptions {
            signer: Arc::new(book.signer()),
            keeper: Box::new(CheckpointFiles::on(self.disk.disk(), &dir)),
            dir,
            checkpoint_every: Duration::ZERO,
            heartbeat_every: Duration::from_secs(3_600),
            policy: self.policy.clone(),
            waits_for_witnesses: false,
            copied: None,
        };
        TransparencyLog::start(store, options).map(Arc::new).map_err(|error| describe(&error))
    }

    /// Ends the process as an operator does. The disk can fail or go down meanwhile.
    pub fn stop(&mut self, chance: &mut Chance, script: &mut Script) {
        // How far they would come otherwise, no seed decides.
        self.let_fold(usize::MAX);
        self.let_log_run(usize::MAX);
        self.disk.set_gates_open(true);
        self.end_process();
        self.power_up(chance, script);
    }

    /// Starts the machine after a crash: nothing of the process is left, and the disk is what the crash left.
    pub fn power_up(&mut self, chance: &mut Chance, script: &mut Script) -> Option<Crash> {
        self.end_process();
        self.note_steps(script);
        let crash = self.disk.power_up(chance).expect("the simulator writes where it pleases");
        if let Some(crash) = crash {
            script.note(format!("{}: after a {crash:?}", self.name));
        }
        crash
    }

    fn end_process(&mut self) {
        self.disk.observe(None);
        // A thread that the crash ended may take others with it while they are waited for.
        let process = self.process.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(process)));
    }

    /// The machine goes down some steps later.
    pub fn plan_crash(&self, chance: &mut Chance, script: &mut Script) {
        let crash = if chance.percent(70) { Crash::PowerCut } else { Crash::Kill };
        let (aim, steps) = aim(chance, 30);
        script.note(format!("{}: a {crash:?} in {steps} steps of {aim:?}", self.name));
        self.disk.plan_crash(aim, steps, crash);
    }

    /// The disk fails some steps later.
    pub fn plan_failure(&self, chance: &mut Chance, script: &mut Script) {
        let length = 1 + chance.below(12);
        let failures = [
            DiskFailure::NotDone,
            DiskFailure::Done,
            DiskFailure::Half,
            DiskFailure::Full(length),
            DiskFailure::Dead(length),
        ];
        let failure = *chance.pick(&failures);
        let (aim, steps) = aim(chance, 20);
        script.note(format!("{}: {failure:?} in {steps} steps of {aim:?}", self.name));
        self.disk.plan_failure(aim, steps, failure);
    }

    /// The disk fails when the branch has moved, or is about to.
    pub fn plan_late_failure(&self, chance: &mut Chance, script: &mut Script) {
        let failure = *chance.pick(&[DiskFailure::NotDone, DiskFailure::Done]);
        let steps = STEPS_OF_BRANCH - 1 - chance.below(3);
        script.note(format!("{}: {failure:?} in {steps} steps of {:?}", self.name, Aim::Branch));
        self.disk.plan_failure(Aim::Branch, steps, failure);
    }

    pub fn note_steps(&self, script: &mut Script) {
        script.note_steps(&format!("{} ", self.name), self.disk.take_trace());
    }

    /// Files that a start should have removed.
    pub fn check_leftovers(&self) -> Result<(), Breach> {
        for dir in ["repo.git/objects/pack", "repo.git/refs/heads", "repo.git", ""] {
            for entry in fs::read_dir(self.dir.path().join(dir)).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_mark = || fs::read(entry.path()).is_ok_and(|mark| mark.starts_with(b"countersign: "));
                if name.ends_with("countersign-tmp")
                    || name.ends_with(".lock")
                    || (name.ends_with(".keep") && is_mark())
                {
                    return Err(Breach::new(Guarantee::NothingHalf, format!("{dir}/{name} was left behind")));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.disk.set_gates_open(true);
        self.disk.heal();
        self.end_process();
    }
}

/// Every third fault comes where the branch is.
fn aim(chance: &mut Chance, most: usize) -> (Aim, usize) {
    if chance.percent(33) {
        return (Aim::Branch, chance.below(STEPS_OF_BRANCH));
    }
    (Aim::AnyStep, chance.below(most))
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            fs::create_dir_all(&target)?;
            copy_files(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Describes an error with its causes.
pub fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}
