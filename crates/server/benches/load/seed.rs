//! Fills a repository as years of use would, in a few large commits.

use std::{fs, io, path::Path, path::PathBuf, sync::Arc, thread, time::Duration};

use countersign_core::rules::snapshot::Change;
use countersign_forge::forges::speaks_for;
use countersign_store::store::{OpenSettings, OpenedData, open_repository};
use countersign_store::{Head, Store, StoreRole, machine::clock::Clock, machine::data_dir::DataDir};
use tokio::{runtime::Runtime, task::JoinSet};

use crate::plan::{Plan, Shape, owner_name};
use crate::{Failure, documents::Collecting, documents::Owner, process};

/// An owner with a few files to sign, who signs none. They are the same few at every size.
pub(crate) const IDLE_OWNER: &str = "idle";
pub(crate) const IDLE_RELEASES: usize = 10;
/// Releases in one commit. Few commits write large directories less often.
const RELEASES_PER_COMMIT: usize = 1_000;
/// Commits to prepare while the store writes others.
const AHEAD: usize = 4;
/// Changes with the seeded content, so that no older directory is used for it.
const KEPT_AS: &str = "2";

/// A data directory that the measurement can change.
pub(crate) struct Seeded {
    /// Removed with this value.
    dir: tempfile::TempDir,
    pub(crate) files: usize,
}

impl Seeded {
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A directory for the files of the run, on the same disk.
    pub(crate) fn beside(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.data_dir().join("repo.git")
    }
}

pub(crate) fn seed(runtime: &Runtime, plan: Plan) -> Result<Seeded, Failure> {
    let dir = tempfile::tempdir()?;
    let files = runtime.block_on(fill(&dir.path().join("data"), plan))?;
    Ok(Seeded { dir, files })
}

/// A copy of the kept repository of this shape and size. The first call makes that repository.
pub(crate) fn copy_kept(
    runtime: &Runtime,
    keep: &Path,
    (shape, files): (Shape, usize),
) -> Result<Seeded, Failure> {
    let kept = keep.join(format!("{shape}-{files}-{KEPT_AS}"));
    if !kept.exists() {
        fs::create_dir_all(keep)?;
        let new = tempfile::tempdir_in(keep)?;
        let count = runtime.block_on(fill(&new.path().join("data"), Plan::new(shape, files)))?;
        fs::write(new.path().join("files"), count.to_string())?;
        fs::rename(new.path(), &kept)?;
    }
    let files = fs::read_to_string(kept.join("files"))?.trim().parse()?;
    let dir = tempfile::tempdir_in(keep)?;
    copy(&kept.join("data"), &dir.path().join("data"))?;
    Ok(Seeded { dir, files })
}

/// Adds releases that wait for signatures, to all owners in turn.
pub(crate) fn add_collecting(
    runtime: &Runtime,
    data_dir: &Path,
    plan: Plan,
    count: usize,
) -> Result<Vec<Collecting>, Failure> {
    runtime.block_on(async {
        let (repository, _locked) = open(data_dir)?;
        let mut change = Change::new(format!("Add {count} releases that wait for signatures"));
        let mut added = Vec::with_capacity(count);
        for i in 0..count {
            let owner = Owner::new(owner_name(plan.collecting_owner(i)))?;
            added.push(owner.write_collecting(&mut change, &format!("v2.{i}"))?);
        }
        commit(&repository.store, change).await?;
        wait_for_folding(data_dir)?;
        Ok(added)
    })
}

/// Returns the number of files in the tree.
async fn fill(data_dir: &Path, plan: Plan) -> Result<usize, Failure> {
    let (repository, _locked) = open(data_dir)?;
    let store = Arc::new(repository.store);
    let mut tasks = JoinSet::new();
    for first in (0..plan.releases()).step_by(RELEASES_PER_COMMIT) {
        if tasks.len() == AHEAD
            && let Some(done) = tasks.join_next().await
        {
            done??;
        }
        let store = Arc::clone(&store);
        tasks.spawn(async move { commit(&store, complete_releases(plan, first)?).await });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let idle = Owner::new(IDLE_OWNER.to_owned())?;
    let mut change = Change::new("Add a project with releases that no one signs");
    idle.write_project(&mut change)?;
    for i in 0..IDLE_RELEASES {
        idle.write_collecting(&mut change, &format!("v1.{i}"))?;
    }
    commit(&store, change).await?;
    wait_for_folding(data_dir)?;
    let mut files = 0;
    store.head().walk(&mut |_, _| files += 1);
    Ok(files)
}

fn complete_releases(plan: Plan, first: usize) -> Result<Change, Failure> {
    let end = plan.releases().min(first + RELEASES_PER_COMMIT);
    let mut change = Change::new(format!("Add {} releases", end - first));
    let mut owner: Option<(usize, Owner)> = None;
    for release in first..end {
        let number = plan.owner_of(release);
        let (_, owner) = match owner.take().filter(|(current, _)| *current == number) {
            Some(same) => owner.insert(same),
            None => owner.insert((number, Owner::new(owner_name(number))?)),
        };
        if release % plan.releases_per_owner == 0 {
            owner.write_project(&mut change)?;
        }
        owner.write_complete(&mut change, &plan.version_of(release))?;
    }
    Ok(change)
}

/// The lock must be dropped last.
fn open(data_dir: &Path) -> Result<(OpenedData, DataDir), Failure> {
    let settings = process::settings(data_dir)?;
    let locked = DataDir::lock(data_dir)?;
    let settings = OpenSettings {
        author: settings.author,
        clock: Clock::system(),
        budget: None,
        speaks_for,
        role: StoreRole::Single,
    };
    Ok((open_repository(&locked, settings)?, locked))
}

async fn commit(store: &Store, change: Change) -> Result<(), Failure> {
    store.transact(move |_: &Head, _| Ok::<_, Failure>((change.clone(), ()))).await?
}

/// So that the measured server does not begin by folding these packs.
fn wait_for_folding(data_dir: &Path) -> io::Result<()> {
    let pack_dir = data_dir.join("repo.git/objects/pack");
    let names = || -> io::Result<Vec<_>> {
        fs::read_dir(&pack_dir)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    };
    let mut before = Vec::new();
    loop {
        let now = names()?;
        let is_folding = now.iter().any(|name| name.to_string_lossy().ends_with("countersign-tmp"));
        if now == before && !is_folding {
            return Ok(());
        }
        before = now;
        thread::sleep(Duration::from_millis(200));
    }
}

/// Packs never change once they have their name, so they need no copy.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let is_pack = from.extension().is_some_and(|ending| ending == "pack" || ending == "idx");
        if from.is_dir() {
            copy(&from, &to)?;
        } else if !is_pack || fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}
