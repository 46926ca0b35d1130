//! The clock of the machine, as the program under test sees it.

use std::{fs, path::PathBuf, process::Command, sync::OnceLock};

use tempfile::TempDir;

use super::server::Launch;

/// A clock that a test can set while the program runs.
pub(crate) struct MachineClock {
    library: PathBuf,
    dir: TempDir,
}

impl MachineClock {
    /// `None` where there is no C compiler: then the clock is what it is.
    pub(crate) fn new() -> Option<Self> {
        static LIBRARY: OnceLock<Option<(TempDir, PathBuf)>> = OnceLock::new();
        let (_, library) = LIBRARY.get_or_init(build).as_ref()?;
        let clock = Self { library: library.clone(), dir: TempDir::new().expect("a temporary directory") };
        clock.set(0);
        Some(clock)
    }

    /// The program with this clock.
    pub(crate) fn give_to(&self, launch: Launch) -> Launch {
        let text = |path: PathBuf| path.to_str().expect("a plain name").to_owned();
        launch.env("LD_PRELOAD", &text(self.library.clone())).env("MACHINE_CLOCK", &text(self.file()))
    }

    /// Gives this clock to a command of the client.
    pub(crate) fn lend_to(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("MACHINE_CLOCK", self.file());
    }

    /// Gives this clock to a command of the client, and what it does takes longer by as much. The command notices when
    /// it wakes up for another reason.
    pub(crate) fn lend_long_to(&self, command: &mut Command) {
        self.lend_to(command);
        command.env("MACHINE_CLOCK_LONG", "1");
    }

    /// The program with this clock, for which what it does takes longer by as much.
    pub(crate) fn give_long_to(&self, launch: Launch) -> Launch {
        self.give_to(launch).env("MACHINE_CLOCK_LONG", "1")
    }

    /// The program with this clock, for which no time passes but what the test sets.
    pub(crate) fn give_still_to(&self, launch: Launch) -> Launch {
        self.give_to(launch).env("MACHINE_CLOCK_STILL", "1")
    }

    /// Ahead by so many seconds from now on.
    pub(crate) fn set(&self, seconds: i64) {
        let unfinished = self.dir.path().join("new");
        fs::write(&unfinished, seconds.to_string()).expect("a writable directory");
        fs::rename(unfinished, self.file()).expect("a writable directory");
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("seconds")
    }
}

fn build() -> Option<(TempDir, PathBuf)> {
    let dir = TempDir::new().expect("a temporary directory");
    let library = dir.path().join("clock.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/support/machine_clock.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
    if built.is_ok_and(|built| built.success()) {
        return Some((dir, library));
    }
    eprintln!("skipped: there is no C compiler here");
    None
}
