//! A disk that goes wrong at one chosen step. Steps are counted for each thread of the store by itself, so that the
//! same script counts the same steps in every run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex};
use std::{fs, io, path::Path, path::PathBuf, thread, time::Duration};

use countersign_store::{Disk, DiskStep, Moment};

/// Far longer than any step takes: a test that would hang fails instead.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Who takes a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Actor {
    /// Opens the repository, and makes its first commit.
    Opener,
    Writer,
    Folder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The step fails, and nothing happened.
    Fails,
    /// The step fails, although it was done.
    DoneButFails,
    /// Half of the bytes are written, then it fails.
    ShortWrite,
    /// From the step on there is no room, until [`Faults::heal`].
    DiskFull,
    /// From the step on every step fails, removing included, until [`Faults::heal`].
    DiskDead,
    /// The process dies before the step.
    Crash,
    /// The process dies with half of the bytes written.
    CrashMidway,
    /// The machine dies before the step: nothing remains of what no fsync has made durable.
    PowerCut,
    /// The machine dies before the step, and every other change of a name had reached the disk by itself.
    PowerCutInPart,
}

/// Where something is to go wrong: at which step of which thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) actor: Actor,
    pub(crate) number: usize,
    pub(crate) kind: Kind,
}

/// A step that was taken while the script was at its part `part`.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub(crate) actor: Actor,
    pub(crate) number: usize,
    pub(crate) step: DiskStep,
    pub(crate) path: PathBuf,
    pub(crate) part: usize,
}

#[derive(Clone)]
pub(crate) struct Faults {
    shared: Arc<(Mutex<State>, Condvar)>,
}

struct State {
    target: Option<Target>,
    counts: BTreeMap<Actor, usize>,
    taken: Vec<Taken>,
    part: usize,
    /// The target was reached.
    blown: bool,
    /// The step under way, of this thread, is the target.
    armed: Option<Actor>,
    mode: Mode,
    /// Changes of names that no fsync has made durable: what was there before.
    names: Vec<(PathBuf, Option<Vec<u8>>)>,
    /// Files with content that no fsync has made durable.
    unsynced: BTreeSet<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Works,
    Full,
    Dead,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Fails,
        Self::DoneButFails,
        Self::ShortWrite,
        Self::DiskFull,
        Self::DiskDead,
        Self::Crash,
        Self::CrashMidway,
        Self::PowerCut,
        Self::PowerCutInPart,
    ];

    /// Whether the process is over.
    pub(crate) fn kills(self) -> bool {
        match self {
            Self::Crash | Self::CrashMidway | Self::PowerCut | Self::PowerCutInPart => true,
            Self::Fails | Self::DoneButFails | Self::ShortWrite | Self::DiskFull | Self::DiskDead => false,
        }
    }

    pub(crate) fn applies_to(self, step: DiskStep) -> bool {
        match self {
            Self::ShortWrite | Self::CrashMidway => step == DiskStep::Write,
            // The caller does not hear of a file that was created and not returned.
            Self::DoneButFails => step != DiskStep::Create,
            Self::Fails
            | Self::DiskFull
            | Self::DiskDead
            | Self::Crash
            | Self::PowerCut
            | Self::PowerCutInPart => true,
        }
    }
}

impl Faults {
    pub(crate) fn new(target: Option<Target>) -> Self {
        let state = State {
            target,
            counts: BTreeMap::new(),
            taken: Vec::new(),
            part: 0,
            blown: false,
            armed: None,
            mode: Mode::Works,
            names: Vec::new(),
            unsynced: BTreeSet::new(),
        };
        Self { shared: Arc::new((Mutex::new(state), Condvar::new())) }
    }

    pub(crate) fn disk(&self) -> Disk {
        let shared = Arc::clone(&self.shared);
        Disk::with_fault(Arc::new(move |step, moment, path| {
            let answer = shared.0.lock().unwrap().pass(step, moment, path);
            shared.1.notify_all();
            answer
        }))
    }

    pub(crate) fn begin_part(&self, part: usize) {
        self.shared.0.lock().unwrap().part = part;
    }

    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.shared.0.lock().unwrap().taken.clone()
    }

    pub(crate) fn has_blown(&self) -> bool {
        self.shared.0.lock().unwrap().blown
    }

    /// From now on everything works.
    pub(crate) fn heal(&self) {
        self.shared.0.lock().unwrap().mode = Mode::Works;
    }

    /// Waits until a step was taken in this part of the script, or something went wrong.
    pub(crate) fn await_step(&self, is_it: impl Fn(&Taken) -> bool) {
        let (state, changed) = &*self.shared;
        let is_over = |state: &State| {
            state.blown || state.taken.iter().any(|taken| taken.part == state.part && is_it(taken))
        };
        let state = state.lock().unwrap();
        let waited = changed.wait_timeout_while(state, TIMEOUT, |state| !is_over(state)).unwrap();
        assert!(!waited.1.timed_out(), "the step is never taken");
    }

    /// Waits until the disk is as it should be; looks after each step.
    pub(crate) fn await_disk(&self, is_right: impl Fn() -> bool) {
        let (state, changed) = &*self.shared;
        let state = state.lock().unwrap();
        let waited = changed.wait_timeout_while(state, TIMEOUT, |_| !is_right()).unwrap();
        assert!(!waited.1.timed_out(), "the disk never becomes right");
    }

    /// What a power cut leaves, once nothing uses the disk any more.
    pub(crate) fn lose_what_is_not_durable(&self) {
        let state = self.shared.0.lock().unwrap();
        let every = match state.target.map(|target| target.kind) {
            Some(Kind::PowerCut) => 1,
            Some(Kind::PowerCutInPart) => 2,
            _ => return,
        };
        for path in &state.unsynced {
            let length = fs::metadata(path).expect("no file gets its name before it is synced").len();
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length / 2).unwrap();
        }
        for (path, before) in state.names.iter().rev().step_by(every) {
            match before {
                Some(bytes) => fs::write(path, bytes).unwrap(),
                None if path.is_dir() => fs::remove_dir_all(path).unwrap(),
                None => drop(fs::remove_file(path)),
            }
        }
    }
}

impl State {
    fn pass(&mut self, step: DiskStep, moment: Moment, path: &Path) -> io::Result<()> {
        let actor = match thread::current().name() {
            Some("store-writer") => Actor::Writer,
            Some("store-fold") => Actor::Folder,
            _ => Actor::Opener,
        };
        match moment {
            Moment::Before => self.before(actor, step, path)?,
            Moment::Midway => self.hit(actor, &[Kind::ShortWrite, Kind::CrashMidway])?,
            Moment::After => {
                self.note_durable(step, path);
                self.hit(actor, &[Kind::DoneButFails])?;
            }
        }
        self.check_mode(step)
    }

    fn before(&mut self, actor: Actor, step: DiskStep, path: &Path) -> io::Result<()> {
        self.check_mode(step)?;
        let count = self.counts.entry(actor).or_default();
        let number = *count;
        *count += 1;
        self.taken.push(Taken { actor, number, step, path: path.to_owned(), part: self.part });
        if self.target.is_some_and(|target| target.actor == actor && target.number == number && !self.blown) {
            self.armed = Some(actor);
            let at_once = [Kind::Fails, Kind::DiskFull, Kind::DiskDead, Kind::Crash];
            self.hit(actor, &at_once)?;
            self.hit(actor, &[Kind::PowerCut, Kind::PowerCutInPart])?;
            self.check_mode(step)?;
        }
        self.note_volatile(step, path);
        Ok(())
    }

    /// Goes wrong, if this thread is at the target and it is one of `kinds`.
    fn hit(&mut self, actor: Actor, kinds: &[Kind]) -> io::Result<()> {
        let Some(kind) = self.target.map(|target| target.kind).filter(|kind| kinds.contains(kind)) else {
            return Ok(());
        };
        if self.armed != Some(actor) || self.blown {
            return Ok(());
        }
        self.blown = true;
        match kind {
            Kind::Fails | Kind::DoneButFails | Kind::ShortWrite => return Err(injected()),
            Kind::DiskFull => self.mode = Mode::Full,
            Kind::DiskDead | Kind::Crash | Kind::CrashMidway | Kind::PowerCut | Kind::PowerCutInPart => {
                self.mode = Mode::Dead;
            }
        }
        Ok(())
    }

    fn check_mode(&self, step: DiskStep) -> io::Result<()> {
        // Removing needs no room, and neither does a sync of what has found its room.
        let needs_room = match step {
            DiskStep::CreateDir
            | DiskStep::Create
            | DiskStep::Write
            | DiskStep::WriteAt
            | DiskStep::Rename
            | DiskStep::Commit => true,
            DiskStep::SetLength | DiskStep::Sync | DiskStep::SyncDir | DiskStep::Remove => false,
        };
        match self.mode {
            Mode::Works => Ok(()),
            Mode::Full if needs_room => Err(io::ErrorKind::StorageFull.into()),
            Mode::Full => Ok(()),
            Mode::Dead => Err(injected()),
        }
    }

    fn note_volatile(&mut self, step: DiskStep, path: &Path) {
        match step {
            DiskStep::Create | DiskStep::CreateDir | DiskStep::Rename if !path.is_dir() => {
                self.names.push((path.to_owned(), fs::read(path).ok()));
            }
            DiskStep::Remove if path.is_file() => self.names.push((path.to_owned(), fs::read(path).ok())),
            DiskStep::Create
            | DiskStep::CreateDir
            | DiskStep::Rename
            | DiskStep::Remove
            | DiskStep::Write
            | DiskStep::WriteAt
            | DiskStep::SetLength
            | DiskStep::Sync
            | DiskStep::SyncDir
            | DiskStep::Commit => {}
        }
        if matches!(step, DiskStep::Create | DiskStep::Write) {
            self.unsynced.insert(path.to_owned());
        }
        if step == DiskStep::Remove {
            self.unsynced.remove(path);
        }
    }

    fn note_durable(&mut self, step: DiskStep, path: &Path) {
        if step == DiskStep::Sync {
            self.unsynced.remove(path);
        }
        if step == DiskStep::SyncDir {
            self.names.retain(|(name, _)| name.parent() != Some(path));
        }
    }
}

fn injected() -> io::Error {
    io::Error::other("injected by a test")
}
