//! Every step by which the store changes the disk goes wrong in every way, one at a time: nothing that was acknowledged
//! is lost, nothing is half made, and the store goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, sync::Arc, sync::Mutex, time::Duration};

use countersign_core::documents::layout;
use countersign_core::rules::{decide::assets, decide::register, decide::sign, snapshot::Change};
use countersign_core::values::{key::SecretKey, path::RepoPath, time::Timestamp};
use countersign_store::{Disk, DiskStep, Head, Repository, Store, StoreError};
use countersign_testing::copy_dir;

use crate::support::faults::{Actor, Faults, Kind, Taken, Target};
use crate::support::requests::{proposal, release, submission};
use crate::support::{Fixture, change, contents, hold_writer, let_tasks_begin, options, path, put};

/// If this variable is set, steps that only repeat others are tried as well.
const ALL_STEPS: &str = "COUNTERSIGN_ALL_STEPS";
/// How many steps are tried otherwise of those that are the same but for a name.
const REPEATED: usize = 1;

type Decision = Box<dyn Fn(&Head) -> Option<Change> + Send>;

/// A part of a script.
enum Act {
    Open,
    /// Changes that come together, and are published together.
    Change(Vec<Decision>),
    AwaitFold,
    Close,
    /// What was folded so far was folded long ago.
    LetTimePass,
}

/// One run of a script.
struct Run {
    fixture: Fixture,
    faults: Faults,
    store: Option<Arc<Store>>,
    attempts: Vec<Attempt>,
}

/// A change that someone asked for; `None` if it was not decided, or refused.
struct Attempt {
    change: Arc<Mutex<Option<Change>>>,
    is_acknowledged: bool,
}

impl Run {
    fn new(fixture: Fixture, target: Option<Target>) -> Self {
        Self { fixture, faults: Faults::new(target), store: None, attempts: Vec::new() }
    }

    /// Plays the script, up to where the process dies if it does. In the end the store is open on a disk that works.
    async fn play(&mut self, script: Vec<Act>, kind: Option<Kind>) {
        for (part, act) in script.into_iter().enumerate() {
            // What is waited for may begin at the end of the part before.
            if !matches!(act, Act::AwaitFold) {
                self.faults.begin_part(part);
            }
            match act {
                Act::Open => self.open(),
                Act::Change(decisions) => self.change(decisions).await,
                Act::AwaitFold => {
                    self.faults.await_step(|t| t.actor == Actor::Folder && t.step == DiskStep::SyncDir);
                }
                Act::Close => self.store = None,
                Act::LetTimePass => self.fixture.let_time_pass(),
            }
            if kind.is_some_and(Kind::kills) && self.faults.has_blown() {
                self.store = None;
                self.faults.lose_what_is_not_durable();
                self.store = Some(Arc::new(self.try_open(Disk::default()).expect("it starts after a crash")));
                return;
            }
        }
        self.faults.heal();
        if self.store.is_none() {
            self.open();
        }
    }

    fn open(&mut self) {
        let opened = self.try_open(self.faults.disk()).or_else(|error| {
            assert!(self.faults.has_blown(), "without a fault it opens: {error}");
            // A store that cannot start says so, and starts once the disk works.
            self.faults.heal();
            self.try_open(self.faults.disk())
        });
        self.store = Some(Arc::new(opened.unwrap()));
    }

    fn try_open(&self, disk: Disk) -> Result<Store, String> {
        let repository =
            Repository::open_on(disk, &self.fixture.repository()).map_err(|error| error.to_string())?;
        Store::start(repository, options()).map_err(|error| error.to_string())
    }

    async fn change(&mut self, decisions: Vec<Decision>) {
        let store = Arc::clone(self.store.as_ref().expect("the script opens it"));
        // So that they come together. A writer whose disk has failed would not hold.
        let release = if self.faults.has_blown() { None } else { Some(hold_writer(&store).await) };
        let mut tasks = Vec::new();
        for decide in decisions {
            let change = Arc::new(Mutex::new(None));
            let (captured, store) = (Arc::clone(&change), Arc::clone(&store));
            let decide = move |head: &Head, _| {
                let change = decide(head).ok_or(())?;
                *captured.lock().unwrap() = Some(change.clone());
                Ok::<_, ()>((change, ()))
            };
            tasks.push(tokio::spawn(async move { store.transact(decide).await }));
            self.attempts.push(Attempt { change, is_acknowledged: false });
        }
        let_tasks_begin().await;
        if let Some(release) = release {
            release.wait();
        }
        let first = self.attempts.len() - tasks.len();
        for (task, attempt) in tasks.into_iter().zip(&mut self.attempts[first..]) {
            match task.await.unwrap() {
                Ok(decided) => attempt.is_acknowledged = decided.is_ok(),
                Err(error) => {
                    let is_told = matches!(error, StoreError::Io(_) | StoreError::Corrupt { .. });
                    assert!(is_told && self.faults.has_blown(), "without a fault it is stored: {error}");
                }
            }
        }
    }

    /// The history is the attempts, each whole or not there at all, and none missing that was acknowledged.
    fn check(&self) {
        let report = self.fixture.git(&["fsck", "--strict", "--full", "--no-dangling"]);
        assert_eq!(report, "", "git fsck");
        let head = self.store.as_ref().unwrap().head();
        assert_eq!(self.fixture.git(&["rev-parse", "main"]).trim(), head.commit.to_string());
        assert_eq!(head.index, Head::clone(&head).rebuild_index().index, "the index is that of the tree");
        let mut files = BTreeMap::from([("svc.repository.json".to_owned(), "{}\n".to_owned())]);
        let mut attempts = self.attempts.iter();
        for (message, touched) in self.commits().split_off(1) {
            let is_it = |change: &Change| change.message.trim_end() == message;
            let attempt = attempts.by_ref().find(|attempt| {
                let found = attempt.change.lock().unwrap().as_ref().is_some_and(is_it);
                assert!(found || !attempt.is_acknowledged, "lost before {message}");
                found
            });
            let change =
                attempt.expect("no one asked for this commit").change.lock().unwrap().clone().unwrap();
            assert_eq!(touched, apply(&mut files, &change), "a change is whole: {message}");
        }
        assert!(attempts.all(|attempt| !attempt.is_acknowledged), "an acknowledged change is lost");
        assert_eq!(contents(&head), files);
    }

    /// Message, and what happened to which file, of each commit.
    fn commits(&self) -> Vec<(String, BTreeSet<String>)> {
        let log = ["log", "--reverse", "--no-renames", "--name-status", "--format=%x01%B%x02", "main"];
        let shown = self.fixture.git(&log);
        let commits = shown.split('\u{1}').skip(1).map(|commit| commit.split_once('\u{2}').unwrap());
        commits
            .map(|(message, files)| {
                let files = files.lines().filter(|line| !line.is_empty()).map(|line| line.replace('\t', " "));
                (message.trim_end().to_owned(), files.collect())
            })
            .collect()
    }
}

/// Makes `change` to `files`; what Git would say about it.
fn apply(files: &mut BTreeMap<String, String>, change: &Change) -> BTreeSet<String> {
    let mut touched = BTreeSet::new();
    for (path, content) in &change.files {
        let name = path.to_string();
        let new = content.as_ref().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        let old = match &new {
            Some(new) => files.insert(name.clone(), new.clone()),
            None => files.remove(&name),
        };
        match (old, new) {
            (None, Some(_)) => touched.insert(format!("A {name}")),
            (Some(_), None) => touched.insert(format!("D {name}")),
            (Some(old), Some(new)) if old != new => touched.insert(format!("M {name}")),
            (Some(_), Some(_)) | (None, None) => false,
        };
    }
    touched
}

/// Two files that are nothing without one another.
fn pair(name: &str) -> Decision {
    let change = change(&[&format!("+{name}/a={name}"), &format!("+{name}/b={name}")]);
    Box::new(move |_| Some(change.clone()))
}

fn project() -> RepoPath {
    path("https/a.example/443/acme")
}

fn now() -> Timestamp {
    Timestamp::from_unix_seconds(1_700_000_000).unwrap()
}

fn key() -> SecretKey {
    SecretKey::from_seed(&[1; 32])
}

fn register() -> Decision {
    Box::new(|head| {
        let proposal = proposal(project(), &key(), &[&key()], now());
        register::register(head, &proposal, Duration::from_secs(3_600), now()).ok().map(|(change, _)| change)
    })
}

fn sign(file: RepoPath) -> Decision {
    Box::new(move |head| {
        let submission = submission(head, &key(), file.clone());
        sign::sign(head, &submission, now()).ok().map(|(change, _)| change)
    })
}

fn add_release() -> Decision {
    Box::new(|head| {
        let release = release(path(&format!("{}/v1", project())), 1);
        let index = release.write_index(&project(), now()).unwrap();
        let added = assets::register_assets(head, &index, &key().public_key(), 3);
        added.ok().map(|(change, _)| change)
    })
}

/// From nothing to a release that collects signatures, with a restart.
fn script_of_a_project() -> Vec<Act> {
    vec![
        Act::Open,
        Act::Change(vec![register()]),
        Act::Change(vec![pair("one"), sign(layout::pending_signers(&project())), pair("two")]),
        Act::Change(vec![add_release(), pair("three")]),
        Act::Close,
        Act::Open,
        Act::Change(vec![sign(layout::index_in(&path(&format!("{}/v1", project())))), pair("four")]),
    ]
}

/// Sixteen packs become one; later, the sixteen go.
fn script_of_a_fold() -> Vec<Act> {
    vec![
        Act::Open,
        Act::Change(vec![pair("sixteenth")]),
        Act::AwaitFold,
        Act::Change(vec![pair("after the fold")]),
        Act::Close,
        Act::LetTimePass,
        Act::Open,
        Act::Change(vec![pair("after the removal")]),
        Act::Close,
        Act::Open,
    ]
}

/// Runs `script` on `fixture` once for each step that it takes, and has that step go wrong.
async fn try_every_step(kind: Kind, fixture: &dyn Fn() -> (Fixture, Vec<Change>), script: fn() -> Vec<Act>) {
    let start = async |target: Option<Target>| {
        let (fixture, before) = fixture();
        let mut run = Run::new(fixture, target);
        run.attempts = before.into_iter().map(Attempt::made).collect();
        run.play(script(), target.map(|target| target.kind)).await;
        run
    };
    let clean = start(None).await;
    clean.check();
    let steps = choose_steps(clean.faults.taken(), kind);
    for Taken { actor, number, step, path, part } in &steps {
        let name = path.file_name().unwrap_or_default();
        // Shown if the test fails: the last line is the one.
        eprintln!("{kind:?} at part {part}, step {number} of the {actor:?}: {step:?} {name:?}");
        let mut run = start(Some(Target { actor: *actor, number: *number, kind })).await;
        assert!(run.faults.has_blown(), "the same script takes the same steps");
        run.change(vec![pair("in the end")]).await;
        assert!(run.attempts.last().unwrap().is_acknowledged, "the disk works, and the store goes on");
        run.check();
        let before = run.store.take().unwrap().head();
        let after = run.try_open(Disk::default()).unwrap().head();
        assert_eq!((after.commit, &after.index), (before.commit, &before.index));
        assert_eq!(contents(&after), contents(&before));
        assert_eq!(leftovers(&run.fixture), Vec::<String>::new());
    }
    eprintln!("{kind:?}: {} steps", steps.len());
}

impl Attempt {
    fn made(change: Change) -> Self {
        Self { change: Arc::new(Mutex::new(Some(change))), is_acknowledged: true }
    }
}

/// The steps of a clean run that can go wrong in this way.
fn choose_steps(taken: Vec<Taken>, kind: Kind) -> Vec<Taken> {
    let all = std::env::var_os(ALL_STEPS).is_some();
    let mut alike: BTreeMap<String, usize> = BTreeMap::new();
    let mut is_chosen = |taken: &Taken| {
        let label = format!("{} {:?} {:?} {:?}", taken.part, taken.actor, taken.step, taken.path.extension());
        let seen = alike.entry(label).or_default();
        *seen += 1;
        kind.applies_to(taken.step) && (all || *seen <= REPEATED)
    };
    taken.into_iter().filter(|taken| is_chosen(taken)).collect()
}

/// Files that a start should have removed.
fn leftovers(fixture: &Fixture) -> Vec<String> {
    let mut found = Vec::new();
    for dir in ["objects/pack", "refs/heads", "", ".."] {
        let names = fs::read_dir(fixture.repository().join(dir)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        found.extend(names.filter(|name| name.ends_with("tmp") || name.ends_with(".lock")));
    }
    found
}

/// A repository with fifteen packs: one more, and they are folded.
async fn fifteen_packs() -> (Fixture, Vec<Change>) {
    let fixture = Fixture::in_memory();
    let store = fixture.start();
    let mut made = Vec::new();
    for n in 0..14 {
        let line = format!("+dir/{n}={n}");
        put(&store, &[&line]).await.unwrap();
        made.push(change(&[&line]));
    }
    drop(store);
    assert_eq!(fixture.packs().len(), 15);
    (fixture, made)
}

async fn try_both_scripts(kind: Kind) {
    try_every_step(kind, &|| (Fixture::in_memory(), Vec::new()), script_of_a_project).await;
    let (template, made) = fifteen_packs().await;
    let copied = || {
        let fixture = Fixture::in_memory();
        copy_dir(&template.repository(), &fixture.repository());
        (fixture, made.clone())
    };
    try_every_step(kind, &copied, script_of_a_fold).await;
}

#[tokio::test]
async fn a_step_that_fails_loses_nothing() {
    try_both_scripts(Kind::Fails).await;
    try_both_scripts(Kind::ShortWrite).await;
}

#[tokio::test]
async fn a_step_that_was_done_and_reported_as_failed_loses_nothing() {
    try_both_scripts(Kind::DoneButFails).await;
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_the_store_goes_on_once_there_is_room() {
    try_both_scripts(Kind::DiskFull).await;
}

#[tokio::test]
async fn a_disk_that_answers_nothing_any_more_loses_nothing_and_the_store_goes_on_once_it_is_back() {
    try_both_scripts(Kind::DiskDead).await;
}

#[tokio::test]
async fn a_crash_before_any_step_loses_nothing() {
    try_both_scripts(Kind::Crash).await;
    try_both_scripts(Kind::CrashMidway).await;
}

#[tokio::test]
async fn a_power_cut_before_any_step_loses_nothing() {
    try_both_scripts(Kind::PowerCut).await;
    try_both_scripts(Kind::PowerCutInPart).await;
}
