//! What the machine can do without Countersign, and how large a repository is.

use std::{fs, fs::File, io, io::Write as _, path::Path, process::Command, time::Instant};

use serde::Serialize;

use crate::Failure;

const FSYNCS: u32 = 200;
const COMMITS: u32 = 30;
const COMMITTED_FILES: usize = 1_000;

#[derive(Clone, Copy, Serialize)]
pub(crate) struct Writes {
    /// Rounds of a small write and an fsync, one after the other.
    pub(crate) fsyncs_per_second: f64,
    /// `git add` and `git commit` of one changed file out of 1,000, durably, one after the other.
    pub(crate) git_commits_per_second: f64,
}

impl Writes {
    /// `beside` is a directory on the measured disk.
    pub(crate) fn measure(beside: &Path) -> Result<Self, Failure> {
        let dir = tempfile::tempdir_in(beside)?;
        Ok(Self {
            fsyncs_per_second: fsync_rate(dir.path())?,
            git_commits_per_second: git_commit_rate(dir.path())?,
        })
    }

    pub(crate) fn mean(self, other: Self) -> Self {
        Self {
            fsyncs_per_second: (self.fsyncs_per_second + other.fsyncs_per_second) / 2.0,
            git_commits_per_second: (self.git_commits_per_second + other.git_commits_per_second) / 2.0,
        }
    }
}

fn fsync_rate(dir: &Path) -> Result<f64, Failure> {
    let mut file = File::create(dir.join("file"))?;
    let started = Instant::now();
    for _ in 0..FSYNCS {
        file.write_all(&[0; 512])?;
        file.sync_all()?;
    }
    Ok(f64::from(FSYNCS) / started.elapsed().as_secs_f64())
}

fn git_commit_rate(dir: &Path) -> Result<f64, Failure> {
    let tree = dir.join("tree");
    fs::create_dir(&tree)?;
    for i in 0..COMMITTED_FILES {
        fs::write(tree.join(format!("file{i}")), [b'x'; 512])?;
    }
    git(&tree, &["init", "--quiet"])?;
    git(&tree, &["add", "."])?;
    git(&tree, &["commit", "--quiet", "-m", "all"])?;
    let started = Instant::now();
    for i in 0..COMMITS {
        let name = format!("file{i}");
        fs::write(tree.join(&name), i.to_string())?;
        git(&tree, &["add", &name])?;
        git(&tree, &["commit", "--quiet", "-m", &name])?;
    }
    Ok(f64::from(COMMITS) / started.elapsed().as_secs_f64())
}

#[derive(Clone, Copy, Serialize)]
pub(crate) struct Weight {
    pub(crate) bytes: u64,
    pub(crate) packs: u64,
    pub(crate) objects: u64,
}

impl Weight {
    pub(crate) fn of(repository: &Path) -> Result<Self, Failure> {
        let counted = git(repository, &["count-objects", "-v"])?;
        let field = |name: &str| -> Result<u64, Failure> {
            let value = counted.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            Ok(value.ok_or_else(|| format!("git count-objects says nothing about {name}"))?.parse()?)
        };
        Ok(Self { bytes: bytes_below(repository)?, packs: field("packs")?, objects: field("in-pack")? })
    }
}

fn bytes_below(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_below(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// Git without the user's settings, and with the same durability as the server.
fn git(dir: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new("git");
    command.current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for (name, value) in [("NAME", "Bench"), ("EMAIL", "bench@example.org")] {
        command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    let settings = ["core.fsync=all", "core.fsyncMethod=fsync", "gc.auto=0", "init.defaultBranch=main"];
    command.args(settings.into_iter().flat_map(|setting| ["-c", setting])).args(arguments);
    let output = command.output().map_err(|error| format!("git cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The time that `git clone` takes to copy every object of a repository, as over a network.
pub(crate) fn clone_time(repository: &Path, beside: &Path) -> Result<f64, Failure> {
    let dir = tempfile::tempdir_in(beside)?;
    let started = Instant::now();
    let clone = Command::new("git")
        .args(["clone", "--quiet", "--mirror", "--no-local"])
        .args([repository, &dir.path().join("clone.git")])
        .status()?;
    if !clone.success() {
        return Err("git clone failed".into());
    }
    Ok(started.elapsed().as_secs_f64())
}
