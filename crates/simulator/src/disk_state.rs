//! Decides what goes wrong at which step of a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::{ffi::OsString, fs, io, path::Path, path::PathBuf, thread};

use countersign_store::{DiskStep, Moment};

use crate::shadow::Shadow;

/// The user of a disk who takes a step.
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
    /// The step did not happen.
    NotDone,
    /// The step happened all the same.
    Done,
    /// Half of the bytes were written.
    Half,
    /// There is no room for so many steps.
    Full(usize),
    /// Every step fails, so many times.
    Dead(usize),
}

/// The steps among which a planned fault counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    AnyStep,
    /// A step where the branch lies. Few are, and most of what a publish promises depends on their order.
    Branch,
}

/// A fault that comes after some steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planned<T> {
    pub(crate) steps: usize,
    pub(crate) aim: Aim,
    pub(crate) fault: T,
}

/// What a disk is about to do, and what of it is durable.
pub(crate) struct DiskState {
    pub(crate) root: PathBuf,
    pub(crate) shadow: Option<Shadow>,
    pub(crate) crash: Option<Planned<Crash>>,
    /// The crash in the middle of the write of this user.
    pub(crate) crash_midway: Option<(DiskUser, Crash)>,
    pub(crate) failure: Option<Planned<DiskFailure>>,
    /// The step under way of this actor is the one to fail.
    pub(crate) failing: Option<(DiskUser, DiskFailure)>,
    pub(crate) trouble: Option<DiskFailure>,
    pub(crate) down: Option<Crash>,
    /// What SQLite had written when the machine went down, since closing it writes more.
    pub(crate) database: Vec<(OsString, Vec<u8>)>,
    pub(crate) is_database_named: bool,
    pub(crate) waiting: BTreeSet<DiskUser>,
    pub(crate) credit: BTreeMap<DiskUser, usize>,
    pub(crate) are_gates_open: bool,
    pub(crate) steps: u64,
    pub(crate) failures: u64,
    pub(crate) trace: Vec<String>,
}

impl DiskUser {
    /// Whether it works beside the others, and waits for leave.
    pub(crate) fn is_gated(self) -> bool {
        match self {
            Self::Folder | Self::Log => true,
            Self::Operator | Self::Writer | Self::Nonces => false,
        }
    }

    /// The user whose thread this is.
    pub(crate) fn current() -> Self {
        match thread::current().name() {
            Some("store-writer") => Self::Writer,
            Some("store-fold") => Self::Folder,
            Some("nonces") => Self::Nonces,
            Some("log-builder") => Self::Log,
            _ => Self::Operator,
        }
    }
}

impl DiskState {
    pub(crate) fn new(root: &Path) -> io::Result<Self> {
        Ok(Self {
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
        })
    }

    pub(crate) fn heal(&mut self) {
        (self.crash, self.crash_midway, self.failure) = (None, None, None);
        (self.failing, self.trouble) = (None, None);
    }

    pub(crate) fn pass(
        &mut self,
        actor: DiskUser,
        step: DiskStep,
        moment: Moment,
        path: &Path,
    ) -> io::Result<()> {
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
        let due = count_down(&mut self.crash, path);
        let is_write = matches!(step, DiskStep::Write | DiskStep::WriteAt);
        // Every other crash at a write comes in the middle of it.
        self.crash_midway =
            due.filter(|_| is_write && self.steps.is_multiple_of(2)).map(|crash| (actor, crash));
        if let Some(crash) = due.filter(|_| self.crash_midway.is_none()) {
            self.trace.push(format!("{crash:?}"));
            self.go_down(crash);
            return Err(injected());
        }
        if let Some(failure) = count_down(&mut self.failure, path) {
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

    /// Restores the database. SQLite syncs what it commits, so all that it had written then is what a crash leaves.
    pub(crate) fn restore_database(&mut self, is_lost: bool) -> io::Result<()> {
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

/// Counts down, and gives what comes when the count is over.
fn count_down<T>(planned: &mut Option<Planned<T>>, path: &Path) -> Option<T> {
    let due = planned.take_if(|planned| planned.aim.is_at(path) && planned.steps == 0);
    if let Some(planned) = planned.as_mut().filter(|planned| due.is_none() && planned.aim.is_at(path)) {
        planned.steps -= 1;
    }
    due.map(|planned| planned.fault)
}

impl Aim {
    fn is_at(self, path: &Path) -> bool {
        match self {
            Self::AnyStep => true,
            Self::Branch => {
                path.ends_with("refs/heads") || path.parent().is_some_and(|dir| dir.ends_with("refs/heads"))
            }
        }
    }
}

fn injected() -> io::Error {
    io::Error::other("injected by the simulator")
}
