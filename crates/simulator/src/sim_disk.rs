//! A disk under a run's control: it fails, fills up, or takes the machine down at a chosen step. Threads that work in
//! the background take their steps only when the run lets them, so the same seed gives the same order of steps.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{fs, io, panic::resume_unwind, path::Path, thread, time::Duration, time::Instant};

use countersign_store::{Disk, DiskStep, Moment};

use crate::disk_state::{Aim, Crash, DiskFailure, DiskState, DiskUser, Planned};
use crate::script::Chance;

/// The longest wait, far longer than any step takes: a run that would hang ends with an error instead.
const TIMEOUT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_micros(200);
/// How long a thread does nothing before it counts as resting, which it may do after a failure.
const REST: Duration = Duration::from_millis(150);

/// What became of an actor that was let run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    /// The actor waits for leave, or the machine went down.
    AtStep,
    Done,
    /// The actor rests after a failure, until something wakes it.
    Rests,
}

#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<(Mutex<DiskState>, Condvar)>,
    observer: Arc<Mutex<Option<Observer>>>,
}

/// An observer, called before each step: it looks at what is published.
pub type Observer = Box<dyn Fn() + Send + Sync>;

/// What unwinds a thread whose machine went down.
struct Down;

impl SimDisk {
    pub fn new(root: &Path) -> io::Result<Self> {
        Ok(Self {
            shared: Arc::new((Mutex::new(DiskState::new(root)?), Condvar::new())),
            observer: Arc::default(),
        })
    }

    pub fn disk(&self) -> Disk {
        let this = self.clone();
        Disk::with_fault(Arc::new(move |step, moment, path| this.pass(step, moment, path)))
    }

    pub fn observe(&self, observer: Option<Observer>) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = observer;
    }

    /// The machine goes down before the step that comes after so many others of this aim.
    pub fn plan_crash(&self, aim: Aim, steps: usize, fault: Crash) {
        self.lock().crash = Some(Planned { steps, aim, fault });
    }

    pub fn plan_failure(&self, aim: Aim, steps: usize, fault: DiskFailure) {
        self.lock().failure = Some(Planned { steps, aim, fault });
    }

    /// Heals the disk: from now on everything works.
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

    /// Takes what was done since this was asked last.
    pub fn take_trace(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().trace)
    }

    /// Sets whether this actor can take steps by itself.
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
            assert!(begin.elapsed() < TIMEOUT, "{actor:?} neither goes on nor ends");
        };
        self.lock().credit.insert(actor, 0);
        paused
    }

    /// Starts the disk after everything that ran on it has ended, with what is left of it.
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

    /// Removes a file as another program does. Whether that is durable is left to chance.
    pub fn remove_beside(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let shadow = state.shadow.as_mut().expect("it is there between two crashes");
        shadow.note_before(DiskStep::Remove, path);
        fs::remove_file(path)?;
        shadow.note_after(DiskStep::Remove, path);
        state
            .trace
            .push(format!("another program: Remove {}", path.file_name().unwrap_or_default().display()));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, step: DiskStep, moment: Moment, path: &Path) -> io::Result<()> {
        let actor = DiskUser::current();
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

impl std::fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimDisk").finish_non_exhaustive()
    }
}
