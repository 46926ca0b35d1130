//! A store in a directory of its own, and the real `git` to look at what it wrote.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a helper of tests")]

use std::sync::{Arc, Barrier, atomic::AtomicBool, atomic::AtomicI64, atomic::Ordering};
use std::{collections::BTreeMap, fs, io, path::Path, path::PathBuf, time::Duration};

use countersign_core::rules::snapshot::{Change, Snapshot};
use countersign_core::values::time::Timestamp;
use countersign_store::machine::{clock::Clock, data_dir::DataDir};
use countersign_store::{
    Author, Disk, DiskStep, Head, Moment, ObjectId, OpenError, Options, Repository, Store, StoreError,
    StoreRole,
};
pub(crate) use countersign_testing::path;
use countersign_testing::{await_until, memory_dir, repo::git};
use tempfile::TempDir;

pub(crate) mod faults;
pub(crate) mod replaying;
pub(crate) mod requests;
pub(crate) mod team;

/// Waits until so few packs are in use.
pub(crate) fn await_folding(store: &Store, most: usize) {
    await_until("folding", || store.packs() <= most);
}

pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    data_dir: Option<DataDir>,
}

pub(crate) fn clock() -> Clock {
    let seconds = AtomicI64::new(1_700_000_000);
    Clock::new(move || Timestamp::from_unix_seconds(seconds.fetch_add(1, Ordering::Relaxed)).unwrap())
}

pub(crate) fn options() -> Options {
    let author = Author::new("Countersign", "countersign@localhost").unwrap();
    Options {
        author,
        clock: clock(),
        initial: first_change,
        budget: None,
        speaks_for: |_, _| Ok(()),
        role: StoreRole::Single,
    }
}

fn first_change(_: Timestamp) -> Change {
    let mut initial = Change::new("Create the repository");
    initial.write(path("svc.repository.json"), b"{}\n".to_vec());
    initial
}

/// A change from lines such as `+a/b=content` and `-a/c`.
pub(crate) fn change(lines: &[&str]) -> Change {
    let mut change = Change::new(format!("Change {}", lines.join(" ")));
    for line in lines {
        match line.strip_prefix('+').and_then(|write| write.split_once('=')) {
            Some((name, content)) => change.write(path(name), content.as_bytes().to_vec()),
            None => change.delete(path(&line[1..])),
        }
    }
    change
}

/// Stores the change of `lines`, whatever is there.
pub(crate) async fn put(store: &Store, lines: &[&str]) -> Result<(), StoreError> {
    commit(store, change(lines)).await
}

/// Stores a change, whatever is there.
pub(crate) async fn commit(store: &Store, change: Change) -> Result<(), StoreError> {
    let stored = store.transact(move |_, _| Ok::<_, ()>((change.clone(), ()))).await?;
    stored.expect("this decision refuses nothing");
    Ok(())
}

/// A disk on which each step fails that `is_bad` points out.
pub(crate) fn failing_disk(is_bad: impl Fn(DiskStep, Moment, &Path) -> bool + Send + Sync + 'static) -> Disk {
    Disk::with_fault(Arc::new(move |step, moment, path| match is_bad(step, moment, path) {
        true => Err(io::ErrorKind::StorageFull.into()),
        false => Ok(()),
    }))
}

/// A disk that answers nothing while the switch is on.
pub(crate) fn switched_disk() -> (Disk, Arc<AtomicBool>) {
    let is_dead = Arc::new(AtomicBool::new(false));
    let dead = Arc::clone(&is_dead);
    (failing_disk(move |_, _, _| dead.load(Ordering::SeqCst)), is_dead)
}

/// A disk that tells the store's writer once that a moved branch may not have moved.
pub(crate) fn disk_that_doubts_a_move() -> Disk {
    let has_failed = AtomicBool::new(false);
    failing_disk(move |step, moment, path| {
        let is_it = step == DiskStep::SyncDir && moment == Moment::After && path.ends_with("refs/heads");
        let is_writer = std::thread::current().name() == Some("store-writer");
        is_it && is_writer && !has_failed.swap(true, Ordering::SeqCst)
    })
}

/// Makes these calls wait for the writer together, so that it takes them in one batch. Gives their answers.
pub(crate) async fn call_together<T: Send + 'static>(
    store: &Arc<Store>,
    calls: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let release = hold_writer(store).await;
    let calls: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    let_tasks_begin().await;
    release.wait();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    answers
}

/// Makes these changes in one batch.
pub(crate) async fn commit_together(
    store: &Arc<Store>,
    changes: impl IntoIterator<Item = Change>,
) -> Vec<Result<(), StoreError>> {
    let own = Arc::clone(store);
    let commit = move |change| {
        let store = Arc::clone(&own);
        async move { commit(&store, change).await }
    };
    call_together(store, changes.into_iter().map(commit)).await
}

pub(crate) fn read(head: &Head, name: &str) -> Option<String> {
    head.read(&path(name)).unwrap().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

/// Every file with its content.
pub(crate) fn contents(head: &Head) -> BTreeMap<String, String> {
    let mut names = Vec::new();
    head.walk(&mut |name, _| names.push(name.to_owned()));
    names.into_iter().map(|name| (name.clone(), read_both_ways(head, &name))).collect()
}

/// Reads a file as decisions do, and as it is served.
fn read_both_ways(head: &Head, name: &str) -> String {
    let (name, content) = (path(name), read(head, name).unwrap());
    let served = head.content(head.file(&name).unwrap()).unwrap();
    assert_eq!(served, content.as_bytes(), "{name}");
    content
}

/// Occupies the writer; it goes on once the barrier is waited for. Everything that is spawned in between, on a
/// single-threaded runtime, is in the queue by then.
pub(crate) async fn hold_writer(store: &Arc<Store>) -> Arc<Barrier> {
    let barrier = Arc::new(Barrier::new(2));
    let (held, store) = (Arc::clone(&barrier), Arc::clone(store));
    tokio::spawn(async move {
        let decide = move |_: &Head, _| {
            held.wait();
            held.wait();
            Err::<(Change, ()), ()>(())
        };
        let _ = store.transact(decide).await;
    });
    let_tasks_begin().await;
    barrier.wait();
    barrier
}

/// Lets every spawned task run until it waits. The runtime takes some dozens of tasks at a time.
pub(crate) async fn let_tasks_begin() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// A repository made by `git`, with one commit of `entry` in its tree, on `branch`.
pub(crate) fn foreign_repository(fixture: &Fixture, branch: &str, mode: &str, name: &str) {
    let dir = fixture.repository();
    fs::create_dir(&dir).unwrap();
    fixture.git(&["init", "-q", "--bare", &format!("--initial-branch={branch}")]);
    let content = dir.join("content");
    fs::write(&content, "{}\n").unwrap();
    let blob = fixture.git(&["hash-object", "-w", content.to_str().unwrap()]);
    let info = format!("{mode},{},{name}", blob.trim());
    fixture.git(&["update-index", "--add", "--cacheinfo", &info]);
    let marker = format!("100644,{},svc.other.json", blob.trim());
    fixture.git(&["update-index", "--add", "--cacheinfo", &marker]);
    commit_index(fixture, &[], branch);
}

pub(crate) fn commit_index(fixture: &Fixture, parents: &[&str], branch: &str) {
    let tree = fixture.git(&["write-tree"]);
    let commit = fixture.commit_tree(tree.trim(), "x", parents);
    fixture.git(&["update-ref", &format!("refs/heads/{branch}"), &commit]);
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::at(TempDir::new().unwrap())
    }

    /// In memory where the system has such a place: for tests that play the disk's part themselves.
    pub(crate) fn in_memory() -> Self {
        Self::at(memory_dir())
    }

    fn at(dir: TempDir) -> Self {
        let data_dir = Some(DataDir::lock(dir.path()).unwrap());
        Self { dir, data_dir }
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.data_dir.as_ref().unwrap().repository()
    }

    pub(crate) fn start(&self) -> Store {
        self.start_on(Disk::default())
    }

    pub(crate) fn start_on(&self, disk: Disk) -> Store {
        Store::start(Repository::open_on(disk, &self.repository()).unwrap(), options()).unwrap()
    }

    pub(crate) fn open_error(&self) -> OpenError {
        Repository::open(&self.repository()).expect_err("the repository must be refused")
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.repository(), arguments, b"")
    }

    /// The id of a new commit, which no branch leads to.
    pub(crate) fn commit_tree(&self, tree: &str, message: &str, parents: &[&str]) -> String {
        let made = ["-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", tree, "-m", message];
        self.git(&[&made, parents].concat()).trim().to_owned()
    }

    /// What a name stands for.
    pub(crate) fn id_of(&self, name: &str) -> ObjectId {
        ObjectId::from_hex(self.git(&["rev-parse", name]).trim().as_bytes()).unwrap()
    }

    /// The file of a loose object, the content of `name` on the branch.
    pub(crate) fn loose_object(&self, name: &str) -> PathBuf {
        let id = self.git(&["rev-parse", &format!("main:{name}")]);
        let (dir, rest) = id.trim().split_at(2);
        self.repository().join("objects").join(dir).join(rest)
    }

    /// `git` agrees with every object, pack and reference, and with the files of `head`.
    pub(crate) fn check(&self, head: &Head) {
        let report = self.git(&["fsck", "--strict", "--full", "--no-dangling"]);
        assert!(!report.contains("error") && !report.contains("warning"), "{report}");
        for pack in self.packs() {
            self.git(&["verify-pack", pack.to_str().unwrap()]);
        }
        assert_eq!(self.git(&["rev-parse", "main"]).trim(), head.commit.to_string());
        self.git(&["config", "core.quotePath", "false"]);
        let listed = self.git(&["ls-tree", "-r", "--format=%(objectname) %(path)", "main"]);
        let mut own = String::new();
        head.walk(&mut |name, id| own += &format!("{id} {name}\n"));
        assert_eq!(listed, own);
        let reopened = Repository::open(&self.repository()).unwrap();
        let reopened = Store::start(reopened, options()).unwrap().head();
        assert_eq!(reopened.root, head.root);
        assert_eq!(contents(&reopened), contents(head));
    }

    /// The index files of all packs.
    pub(crate) fn packs(&self) -> Vec<PathBuf> {
        self.pack_files("idx")
    }

    /// What was folded so far was folded long ago: the packs that were taken in go at the next start.
    pub(crate) fn let_time_pass(&self) {
        for list in self.fold_lists() {
            let file = fs::File::options().write(true).open(list).unwrap();
            // Their order counts: what was folded twice must go in the order in which it was folded.
            let long_ago = file.metadata().unwrap().modified().unwrap() - Duration::from_secs(3_600);
            file.set_modified(long_ago).unwrap();
        }
    }

    /// The lists of what was folded.
    pub(crate) fn fold_lists(&self) -> Vec<PathBuf> {
        self.pack_files("folded")
    }

    pub(crate) fn pack_files(&self, ending: &str) -> Vec<PathBuf> {
        let names = fs::read_dir(self.repository().join("objects/pack")).unwrap();
        let names = names.map(|entry| entry.unwrap().path());
        names.filter(|name| name.extension().is_some_and(|held| held == ending)).collect()
    }

    /// The messages on the branch, oldest first; the history must be a line.
    pub(crate) fn log(&self) -> Vec<String> {
        assert_eq!(self.git(&["rev-list", "--min-parents=2", "main"]), "");
        self.git(&["log", "--reverse", "--format=%s", "main"]).lines().map(str::to_owned).collect()
    }
}
