//! Finds PostgreSQL's programs, and the user that runs them.

use std::{
    env, fs,
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// Names a directory with the programs of one PostgreSQL.
const OVERRIDE: &str = "COUNTERSIGN_POSTGRES";
/// Makes its absence a failure.
const NEEDED: &str = "COUNTERSIGN_NEED_POSTGRES";

#[derive(Debug, Clone)]
pub(super) struct Programs {
    dir: PathBuf,
    /// The user for PostgreSQL, which refuses to run as root.
    user: Option<LentUser>,
}

#[derive(Debug, Clone, Copy)]
struct LentUser {
    user: u32,
    group: u32,
}

impl Programs {
    pub(super) fn find() -> Option<Self> {
        if let Some(dir) = env::var_os(OVERRIDE).map(PathBuf::from) {
            assert!(is_complete(&dir), "{OVERRIDE}={} has no initdb, postgres and psql", dir.display());
            return Some(Self { dir, user: user() });
        }
        let Some(dir) = on_path().or_else(newest_package) else {
            assert!(env::var_os(NEEDED).is_none(), "PostgreSQL is not installed, and {NEEDED} is set");
            return None;
        };
        Some(Self { dir, user: user() })
    }

    /// A command for one of the programs, with nothing of the tester's environment that would lead it elsewhere.
    pub(super) fn command(&self, name: &str) -> Command {
        self.any_command(&self.dir.join(name))
    }

    /// A command for any program, as the user that owns the data.
    pub(super) fn any_command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default()).env("LC_ALL", "C");
        command.current_dir("/").stdin(Stdio::null());
        if let Some(LentUser { user, group }) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    pub(super) fn give(&self, path: &Path) {
        if let Some(LentUser { user, group }) = self.user {
            std::os::unix::fs::chown(path, Some(user), Some(group)).expect("root gives its files away");
        }
    }
}

/// Runs a command that must succeed; what it says on standard output.
#[track_caller]
pub(super) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(super) fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{} {}{}", output.status, text(&output.stdout), text(&output.stderr))
}

fn is_complete(dir: &Path) -> bool {
    ["initdb", "postgres", "psql", "pg_basebackup"].iter().all(|name| dir.join(name).is_file())
}

/// Links in `PATH` lead to the directory that has all programs.
fn on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let found = env::split_paths(&path).filter_map(|dir| dir.join("initdb").canonicalize().ok());
    found.filter_map(|initdb| initdb.parent().map(Path::to_owned)).find(|dir| is_complete(dir))
}

/// Finds the newest version. Debian keeps the programs of each version out of `PATH`; so does Red Hat.
fn newest_package() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let red_hat = fs::read_dir("/usr").into_iter().flatten().flatten();
    let red_hat = red_hat.filter(|entry| entry.file_name().to_string_lossy().starts_with("pgsql-"));
    let version = |dir: &PathBuf| {
        let name = dir.file_name()?.to_string_lossy().into_owned();
        name.trim_start_matches("pgsql-").parse::<u32>().ok()
    };
    let dirs = debian.chain(red_hat).map(|entry| entry.path());
    let newest = dirs.filter(|dir| is_complete(&dir.join("bin"))).max_by_key(version);
    newest.map(|dir| dir.join("bin"))
}

/// The user `nobody`, if we are root. It owns no cluster that is there, unlike `postgres`.
fn user() -> Option<LentUser> {
    let we_are_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !we_are_root {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(|id| id.parse().ok());
        Some(LentUser { user: numbers.next()??, group: numbers.next()?? })
    };
    Some(ids("nobody").or_else(|| ids("postgres")).expect("a user other than root, such as nobody"))
}
