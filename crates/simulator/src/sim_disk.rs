//! A disk under a run's control: it fails, fills up, or takes the machine down at a chosen step. Threads that work in the
//! background take their steps only when the run lets them, so the same seed gives the same order of steps.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs, io,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use countersign_store::{Disk, DiskStep, Moment};

use crate::{chance::Chance, shadow::Shadow};

/// Far longer than any step takes: a run that would hang ends with an error instead.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_micros(200);
/// After a failure a thread may rest. One that does nothing for so long does.
const REST: Duration = Duration::from_millis(150);

/// What became of an actor that was let run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    /// It waits for leave, or the machine went down.
    AtStep,
    Done,
    /// After a failure, until something wakes it.
    Rests,
}

/// Who takes a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskUser {
    /// The run itself: it opens and closes.
    Operator,
    Writer,
    Nonces,
    Folder,
    Log,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The process dies. What the system has not written yet, it writes later, or not.
    Kill,
    /// The machine dies.
    PowerCut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFailure {
    /// Nothing happened.
    NotDone,
    /// It happened all the same.
    Done,
    /// Half of the bytes were written.
    Half,
    /// There is no room for so many steps.
    Full(usize),
    /// Every step fails, so many times.
    Dead(usize),
}

#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<(Mutex<DiskState>, Condvar)>,
    observer: Arc<Mutex<Option<Observer>>>,
}

/// Called before each step: someone looks at what is published.
pub type Observer = Box<dyn Fn() + Send + Sync>;

struct DiskState {
    root: PathBuf,
    shadow: Option<Shadow>,
    crash: Option<(usize, Crash)>,
    /// In the middle of the write of this user.
    crash_midway: Option<(DiskUser, Crash)>,
    failure: Option<(usize, DiskFailure)>,
    /// The step under way of this actor is the one to fail.
    failing: Option<(DiskUser, DiskFailure)>,
    trouble: Option<DiskFailure>,
    down: Option<Crash>,
    /// What SQLite had written when the machine went down, since closing it writes more.
    database: Vec<(OsString, Vec<u8>)>,
    is_database_named: bool,
    waiting: BTreeSet<DiskUser>,
    credit: BTreeMap<DiskUser, usize>,
    are_gates_open: bool,
    steps: u64,
    failures: u64,
    trace: Vec<String>,
}

/// What unwinds a thread whose machine went down.
struct Down;

impl SimDisk {
    pub fn new(root: &Path) -> io::Result<Self> {
        let state = DiskState {
            root: root.to_owned(),
            shadow: Some(Shadow::of(root)?),
            crash: None,
            crash_midway: None,
            failure: None,
            failing: None,
            trouble: None,
            down: None,
            database: Vec::new(),
            is_database_named: false,
            waiting: BTreeSet::new(),
            credit: BTreeMap::new(),
            are_gates_open: false,
            steps: 0,
            failures: 0,
            trace: Vec::new(),
        };
        Ok(Self { shared: Arc::new((Mutex::new(state), Condvar::new())), observer: Arc::default() })
    }

    pub fn disk(&self) -> Disk {
        let this = self.clone();
        Disk::with_fault(Arc::new(move |step, moment, path| this.pass(step, moment, path)))
    }

    pub fn observe(&self, observer: Option<Observer>) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = observer;
    }

    /// The machine goes down before the step that comes after so many others.
    pub fn plan_crash(&self, steps: usize, crash: Crash) {
        self.lock().crash = Some((steps, crash));
    }

    pub fn plan_failure(&self, steps: usize, failure: DiskFailure) {
        self.lock().failure = Some((steps, failure));
    }

    /// From now on everything works.
    pub fn heal(&self) {
        self.lock().heal();
    }

    pub fn is_down(&self) -> bool {
        self.lock().down.is_some()
    }

    /// How many steps have failed.
    pub fn failures(&self) -> u64 {
        self.lock().failures
    }

    pub fn steps(&self) -> u64 {
        self.lock().steps
    }

    /// What was done since this was asked last.
    pub fn take_trace(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().trace)
    }

    /// Whether this actor can take steps by itself.
    pub fn set_gates_open(&self, are_open: bool) {
        self.lock().are_gates_open = are_open;
        self.shared.1.notify_all();
    }

    /// Lets an actor take so many steps, and returns when it waits for more, or has nothing more to do.
    pub fn let_run(&self, actor: DiskUser, steps: usize, is_done: impl Fn() -> bool) -> Paused {
        let mut state = self.lock();
        state.credit.insert(actor, steps);
        if steps > 0 {
            state.waiting.remove(&actor);
        }
        drop(state);
        self.shared.1.notify_all();
        let (mut begin, mut steps) = (Instant::now(), 0);
        let paused = loop {
            let state = self.lock();
            let may_rest = state.failures > 0;
            if state.down.is_some() || state.waiting.contains(&actor) {
                break Paused::AtStep;
            }
            if state.steps != steps {
                (begin, steps) = (Instant::now(), state.steps);
            }
            drop(self.shared.1.wait_timeout(state, LOOK));
            if is_done() {
                break Paused::Done;
            }
            if may_rest && begin.elapsed() > REST {
                break Paused::Rests;
            }
            assert!(begin.elapsed() < PATIENCE, "{actor:?} neither goes on nor ends");
        };
        self.lock().credit.insert(actor, 0);
        paused
    }

    /// After everything that ran on it has ended: what is left of the disk.
    pub fn power_up(&self, chance: &mut Chance) -> io::Result<Option<Crash>> {
        let mut state = self.lock();
        let Some(crash) = state.down.take() else { return Ok(None) };
        state.heal();
        state.waiting.clear();
        let loses_database = crash == Crash::PowerCut && !state.is_database_named && chance.percent(50);
        state.restore_database(loses_database)?;
        if crash == Crash::PowerCut {
            let shadow = state.shadow.take().expect("it is there between two crashes");
            state.shadow = Some(shadow.cut_power(chance)?);
        }
        Ok(Some(crash))
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, step: DiskStep, moment: Moment, path: &Path) -> io::Result<()> {
        let actor = current_actor();
        let mut state = self.lock();
        if moment == Moment::Before {
            drop(state);
            // Under the lock: once it is taken away, it does not run any more.
            if let Some(observer) = &*self.observer.lock().unwrap_or_else(PoisonError::into_inner) {
                observer();
            }
            state = self.wait_for_leave(actor);
        }
        let passed = state.pass(actor, step, moment, path);
        let is_down = state.down.is_some();
        drop(state);
        self.shared.1.notify_all();
        if is_down && !thread::panicking() {
            // Quietly: no one has done anything wrong.
            resume_unwind(Box::new(Down));
        }
        passed
    }

    fn wait_for_leave(&self, actor: DiskUser) -> MutexGuard<'_, DiskState> {
        let mut state = self.lock();
        while actor.is_gated() && !state.are_gates_open && state.down.is_none() {
            if let Some(left) = state.credit.get_mut(&actor).filter(|left| **left > 0) {
                *left -= 1;
                break;
            }
            state.waiting.insert(actor);
            self.shared.1.notify_all();
            state = self.shared.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.remove(&actor);
        state
    }
}

impl DiskUser {
    /// Whether it works beside the others, and waits for leave.
    fn is_gated(self) -> bool {
        match self {
            Self::Folder | Self::Log => true,
            Self::Operator | Self::Writer | Self::Nonces => false,
        }
    }
}

fn current_actor() -> DiskUser {
    match thread::current().name() {
        Some("store-writer") => DiskUser::Writer,
        Some("store-fold") => DiskUser::Folder,
        Some("nonces") => DiskUser::Nonces,
        Some("log-follower") => DiskUser::Log,
        _ => DiskUser::Operator,
    }
}

impl DiskState {
    fn heal(&mut self) {
        (self.crash, self.crash_midway, self.failure) = (None, None, None);
        (self.failing, self.trouble) = (None, None);
    }

    fn pass(&mut self, actor: DiskUser, step: DiskStep, moment: Moment, path: &Path) -> io::Result<()> {
        if self.down.is_some() {
            return Err(injected());
        }
        match moment {
            Moment::Before => self.before(actor, step, path),
            Moment::Midway => {
                if let Some(shadow) = &mut self.shadow {
                    shadow.note_after(DiskStep::Write, path);
                }
                if let Some((_, crash)) = self.crash_midway.take_if(|(user, _)| *user == actor) {
                    self.trace.push(format!("{crash:?} in the middle"));
                    self.go_down(crash);
                    return Err(injected());
                }
                self.fail_if(actor, DiskFailure::Half, step, path)
            }
            Moment::After => {
                if let Some(shadow) = &mut self.shadow {
                    shadow.note_after(step, path);
                }
                if step == DiskStep::SyncDir && path == self.root {
                    self.is_database_named = self.root.join("nonces.sqlite").exists();
                }
                self.fail_if(actor, DiskFailure::Done, step, path)
            }
        }
    }

    fn before(&mut self, actor: DiskUser, step: DiskStep, path: &Path) -> io::Result<()> {
        self.steps += 1;
        let shown = path.strip_prefix(&self.root).unwrap_or(path).display();
        self.trace.push(format!("{actor:?}: {step:?} {shown}"));
        let due = count_down(&mut self.crash);
        let is_write = matches!(step, DiskStep::Write | DiskStep::WriteAt);
        // Every other crash at a write comes in the middle of it.
        self.crash_midway =
            due.filter(|_| is_write && self.steps.is_multiple_of(2)).map(|crash| (actor, crash));
        if let Some(crash) = due.filter(|_| self.crash_midway.is_none()) {
            self.trace.push(format!("{crash:?}"));
            self.go_down(crash);
            return Err(injected());
        }
        if let Some(failure) = count_down(&mut self.failure) {
            self.trace.push(format!("fails: {failure:?}"));
            match failure {
                DiskFailure::Full(_) | DiskFailure::Dead(_) => self.trouble = Some(failure),
                // Half of nothing is nothing, and a file handle is given or it is not.
                DiskFailure::Half if !is_write => {
                    self.failing = Some((actor, DiskFailure::NotDone));
                }
                DiskFailure::Done if step == DiskStep::Create => {
                    self.failing = Some((actor, DiskFailure::NotDone))
                }
                DiskFailure::NotDone | DiskFailure::Done | DiskFailure::Half => {
                    self.failing = Some((actor, failure))
                }
            }
        }
        if let Some(error) = self.find_trouble(step) {
            self.note_failure(step, path);
            return Err(error);
        }
        self.fail_if(actor, DiskFailure::NotDone, step, path)?;
        if let Some(shadow) = &mut self.shadow {
            shadow.note_before(step, path);
        }
        Ok(())
    }

    fn fail_if(
        &mut self,
        actor: DiskUser,
        failure: DiskFailure,
        step: DiskStep,
        path: &Path,
    ) -> io::Result<()> {
        if self.failing == Some((actor, failure)) {
            self.failing = None;
            if failure == DiskFailure::Done {
                self.failures += 1;
            } else {
                self.note_failure(step, path);
            }
            return Err(injected());
        }
        Ok(())
    }

    fn note_failure(&mut self, step: DiskStep, path: &Path) {
        self.failures += 1;
        if let (DiskStep::Sync, Some(shadow)) = (step, &mut self.shadow) {
            shadow.note_failed_sync(path);
        }
    }

    fn find_trouble(&mut self, step: DiskStep) -> Option<io::Error> {
        let needs_room = match step {
            DiskStep::CreateDir
            | DiskStep::Create
            | DiskStep::Write
            | DiskStep::WriteAt
            | DiskStep::Rename
            | DiskStep::Commit => true,
            DiskStep::SetLength | DiskStep::Sync | DiskStep::SyncDir | DiskStep::Remove => false,
        };
        match &mut self.trouble {
            Some(DiskFailure::Full(left) | DiskFailure::Dead(left)) if *left == 0 => self.trouble = None,
            Some(DiskFailure::Full(left)) => {
                *left -= 1;
                return needs_room.then(|| io::ErrorKind::StorageFull.into());
            }
            Some(DiskFailure::Dead(left)) => {
                *left -= 1;
                return Some(injected());
            }
            Some(DiskFailure::NotDone | DiskFailure::Done | DiskFailure::Half) | None => {}
        }
        None
    }

    fn go_down(&mut self, crash: Crash) {
        self.down = Some(crash);
        self.database.clear();
        for name in ["nonces.sqlite", "nonces.sqlite-wal"] {
            if let Ok(content) = fs::read(self.root.join(name)) {
                self.database.push((name.into(), content));
            }
        }
    }

    /// SQLite syncs what it commits, so all that it had written then is what a crash leaves.
    fn restore_database(&mut self, is_lost: bool) -> io::Result<()> {
        for name in ["nonces.sqlite", "nonces.sqlite-wal", "nonces.sqlite-shm"] {
            match fs::remove_file(self.root.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        for (name, content) in self.database.drain(..) {
            if !is_lost {
                fs::write(self.root.join(name), content)?;
            }
        }
        Ok(())
    }
}

/// What comes when the count is over.
fn count_down<T: Copy>(planned: &mut Option<(usize, T)>) -> Option<T> {
    let (left, what) = planned.as_mut()?;
    if *left > 0 {
        *left -= 1;
        return None;
    }
    let what = *what;
    *planned = None;
    Some(what)
}

fn injected() -> io::Error {
    io::Error::other("injected by the simulator")
}

impl std::fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimDisk").finish_non_exhaustive()
    }
}
