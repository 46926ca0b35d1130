//! One machine: a disk, a clock, and a process that can die at any step.

use std::{
    cell::Cell,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use countersign_core::{log::policy::Policy, rules::snapshot::Change};
use countersign_log::{CheckpointFiles, LogError, LogOptions, TransparencyLog};
use countersign_store::{
    Author, Head, ObjectId, Store, StoreError, StoreRole,
    data_dir::DataDir,
    nonces::Nonces,
    open::{OpenSettings, OpenedData, open_repository_on},
};
use futures_util::{future::join_all, task::noop_waker_ref};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    chance::Chance,
    clock::SimClock,
    expected::{AskedChange, speaks_for},
    log_book::LogBook,
    script::{Breach, Guarantee, Script},
    sim_disk::{Crash, DiskFailure, DiskUser, Paused, SimDisk},
    wish::ChangeWish,
};

/// So many packs are folded into one.
const FOLD_AT: usize = 16;
/// A start that fails is tried again, so many times.
const MAX_STARTS: usize = 50;

#[derive(Debug)]
pub struct Machine {
    name: &'static str,
    dir: TempDir,
    pub disk: SimDisk,
    pub clock: SimClock,
    /// If the server keeps a log.
    pub log_book: Option<LogBook>,
    pub policy: Option<Policy>,
    process: Option<Process>,
    /// The newest commit that was counted, and how many there are up to it.
    counted: Cell<(Option<ObjectId>, u64)>,
    /// The newest commit when the thread that folds went to rest.
    folder_rests: Cell<Option<ObjectId>>,
    runtime: Runtime,
}

/// What ends with the process. The order is that of a server's end.
#[derive(Debug)]
struct Process {
    log: Option<Arc<TransparencyLog>>,
    nonces: Option<Nonces>,
    store: Arc<Store>,
    _data_dir: DataDir,
}

impl ChangeAnswer {
    /// In one line.
    pub fn tell(attempt: &AskedChange, answer: &Result<Self, StoreError>) -> String {
        let told = match answer {
            Ok(answer) => answer.refusal.clone().unwrap_or_else(|| "done".to_owned()),
            Err(StoreError::Io(_)) => "the disk has failed".to_owned(),
            Err(error) => error.to_string(),
        };
        let asked = attempt.change.as_ref().map_or("", |change| change.message.as_str());
        format!("  {}: {told}", asked.lines().next().unwrap_or_default())
    }
}

/// What a caller was told.
#[derive(Debug)]
pub struct ChangeAnswer {
    /// The commit on top of which it was decided.
    pub seen: ObjectId,
    /// Why nothing changes.
    pub refusal: Option<String>,
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

    /// After a crash: nothing of the process is left, and the disk is what the crash left.
    pub fn power_up(&mut self, chance: &mut Chance, script: &mut Script) {
        self.end_process();
        self.note_steps(script);
        let crash = self.disk.power_up(chance).expect("the simulator writes where it pleases");
        if let Some(crash) = crash {
            script.note(format!("{}: after a {crash:?}", self.name));
        }
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
        let steps = chance.below(30);
        script.note(format!("{}: a {crash:?} in {steps} steps", self.name));
        self.disk.plan_crash(steps, crash);
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
        let (failure, steps) = (*chance.pick(&failures), chance.below(20));
        script.note(format!("{}: {failure:?} in {steps} steps", self.name));
        self.disk.plan_failure(steps, failure);
    }

    pub fn note_steps(&self, script: &mut Script) {
        script.note_steps(&format!("{} ", self.name), self.disk.take_trace());
    }

    /// Offers all wishes at once if the writer can be held until they are there, else one after the other.
    pub fn change(&self, wishes: &[ChangeWish]) -> Vec<(AskedChange, Result<ChangeAnswer, StoreError>)> {
        let store = self.store();
        let decided: Vec<Arc<Mutex<Option<Change>>>> = wishes.iter().map(|_| Arc::default()).collect();
        let jobs: Vec<_> = wishes
            .iter()
            .zip(&decided)
            .map(|(wish, decided)| {
                let (wish, decided) = (wish.clone(), Arc::clone(decided));
                let decide = move |head: &Head| {
                    let change = wish.decide(head);
                    *decided.lock().expect("no one panics with it") = change.clone().ok();
                    let seen = head.commit;
                    match change {
                        Ok(change) => Ok((change, ChangeAnswer { seen, refusal: None })),
                        Err(refusal) => Err(ChangeAnswer { seen, refusal: Some(refusal) }),
                    }
                };
                store.transact(decide)
            })
            .collect();
        let answers = self.runtime.block_on(async {
            let release = if wishes.len() > 1 { hold_writer(store).await } else { None };
            match release {
                Some(release) => {
                    let release = async { drop(release) };
                    futures_util::future::join(join_all(jobs), release).await.0
                }
                None => {
                    let mut answers = Vec::new();
                    for job in jobs {
                        answers.push(job.await);
                    }
                    answers
                }
            }
        });
        self.await_writer();
        self.await_folder();
        self.await_log();
        let attempts = answers.into_iter().zip(decided).map(|(answer, decided)| {
            let change = decided.lock().expect("no one panics with it").take();
            let answer = answer.map(|outcome| outcome.unwrap_or_else(|refused| refused));
            let is_change = change.as_ref().is_some_and(|change| !change.is_empty());
            let is_answered = answer.is_ok() && is_change;
            (AskedChange { change: change.filter(|_| is_change), is_answered }, answer)
        });
        attempts.collect()
    }

    /// After a failure the writer tidies up when it has answered. A job that is never in a batch waits for that.
    pub fn await_writer(&self) {
        let _ = self.wait(self.store().follow(Vec::new()));
    }

    /// If there is something to fold, the thread is about to begin.
    pub fn await_folder(&self) {
        self.let_fold(0);
    }

    /// Lets the thread that folds take so many steps. After a failure it rests until the next commit.
    pub fn let_fold(&self, steps: usize) {
        let Some(head) = self.try_store().map(|store| store.glance().commit) else { return };
        if self.must_fold() && self.folder_rests.get() != Some(head) {
            let paused = self.disk.let_run(DiskUser::Folder, steps, || !self.must_fold());
            self.folder_rests.set((paused == Paused::Rests).then_some(head));
        }
    }

    pub fn must_fold(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.store.packs() >= FOLD_AT)
    }

    /// Whether the newest checkpoint covers all commits.
    pub fn is_log_done(&self) -> bool {
        let Some(log) = self.log() else { return true };
        let commits = self.count_commits();
        let round = *log.rounds().borrow();
        round.size == commits
    }

    fn count_commits(&self) -> u64 {
        let (mut newest, mut count) = self.counted.get();
        let store = self.store();
        let head = store.glance().commit;
        if newest == Some(head) || head.is_null() {
            return count;
        }
        if let Ok(Some(mut export)) = store.journal(newest) {
            while let Ok(Some(entry)) = export.next_entry() {
                (newest, count) = (Some(entry.id), count + 1);
            }
        }
        self.counted.set((newest, count));
        count
    }

    /// If there is something new, the log is about to write it.
    pub fn await_log(&self) {
        if self.log().is_some_and(|log| log.trouble().is_none()) {
            self.let_log_run(0);
        }
    }

    /// Lets the log take so many steps. After a failure it rests until it is woken.
    pub fn let_log_run(&self, steps: usize) {
        let Some((log, book)) = self.log().zip(self.log_book.as_ref()) else { return };
        if log.trouble().is_some() {
            log.allow_signing();
        }
        let failures = || self.disk.failures() + book.refusals();
        let before = failures();
        let has_failed = || failures() > before && log.trouble().is_some();
        if !self.is_log_done() {
            self.disk.let_run(DiskUser::Log, steps, || self.is_log_done() || has_failed());
        }
    }

    /// A log that refuses to sign has lost something, or has contradicted itself.
    pub fn check_log(&self) -> Result<(), Breach> {
        if let Some(LogError::Refused(refusal)) = self.log().and_then(|log| log.trouble()).as_deref() {
            return Err(Breach::new(Guarantee::SignedIsProvable, refusal.to_string()));
        }
        self.log_book.as_ref().map_or(Ok(()), LogBook::check)
    }

    /// What was folded so far was folded long ago.
    pub fn age_folded(&self) {
        let packs = self.dir.path().join("repo.git/objects/pack");
        for entry in fs::read_dir(packs).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "folded")
                && let Ok(file) = fs::File::options().write(true).open(path)
                && let Ok(since) = file.metadata().and_then(|found| found.modified())
            {
                let _ = file.set_modified(since - Duration::from_secs(3_600));
            }
        }
    }

    /// Files that a start should have removed.
    pub fn check_leftovers(&self) -> Result<(), Breach> {
        for dir in ["repo.git/objects/pack", "repo.git/refs/heads", "repo.git", ""] {
            for entry in fs::read_dir(self.dir.path().join(dir)).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.ends_with("countersign-tmp") || name.ends_with(".lock") {
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

/// Keeps the writer from taking the next job until the sender is dropped. `None` if the writer does nothing at present.
async fn hold_writer(store: &Store) -> Option<mpsc::Sender<()>> {
    let (arrived, has_arrived) = mpsc::channel();
    let (release, is_released) = mpsc::channel::<()>();
    let is_released = Mutex::new(is_released);
    let decide = move |_: &Head| {
        let _ = arrived.send(());
        let _ = is_released.lock().expect("no one panics with it").recv();
        Err::<(Change, ()), ()>(())
    };
    let mut held = Box::pin(store.transact(decide));
    let mut context = std::task::Context::from_waker(noop_waker_ref());
    loop {
        if held.as_mut().poll(&mut context).is_ready() {
            return None;
        }
        if has_arrived.recv_timeout(Duration::from_micros(500)).is_ok() {
            return Some(release);
        }
    }
}

/// With its causes.
pub fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}
