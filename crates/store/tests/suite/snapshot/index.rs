//! The in-memory index after each change equals one that is built from the tree alone.

use std::{collections::BTreeSet, time::Duration};

use countersign_core::documents::layout;
use countersign_core::rules::decide::{assets, proposal, register, sign, statement, update};
use countersign_core::rules::snapshot::{Change, Snapshot};
use countersign_core::values::{key::SecretKey, path::RepoPath, time::Timestamp};
use countersign_store::{Head, PathEntry, Store};
use countersign_testing::Random;

use crate::support::requests::{proposal, release, revocation, submission};
use crate::support::{Fixture, commit, path};

const STEPS: u64 = 600;

#[tokio::test]
async fn the_index_equals_a_rebuild_after_every_change_and_after_a_restart() {
    let fixture = Fixture::new();
    let store = fixture.start();
    let mut world = World::new();
    for step in 0..STEPS {
        world.step(&store, step).await;
        let head = store.head();
        assert_eq!(
            head.index,
            Head::clone(&head).rebuild_index().index,
            "after step {step}: {:?}",
            world.log.last()
        );
        check_signers(&head, &world.projects);
    }
    let before = store.head();
    std::mem::drop(store);
    let after = fixture.start().head();
    assert_eq!(before.index, after.index);
    let kinds: BTreeSet<&str> = world.log.iter().copied().collect();
    let expected = ["activate", "add", "complete", "drop", "propose", "register", "revoke", "sign"];
    assert_eq!(kinds, BTreeSet::from(expected), "every kind of change took place");
    assert!(world.keys.iter().any(|key| after.index.waiting_for(&key.public_key()).next().is_some()));
}

/// Checks that the signers that govern a path are found by it, whether or not there is something at the path.
fn check_signers(head: &Head, projects: &[RepoPath]) {
    for project in projects {
        let own = match head.entry(&layout::active_signers(project)) {
            Some(PathEntry::File(id)) => Some(id),
            Some(PathEntry::Directory) | None => None,
        };
        for below in ["", "/v1", "/no/such/release", "/far/below/in/a/b/c/d/e/f/g/h/i/j/k"] {
            let found = head.nearest_signers(&path(&format!("{project}{below}")));
            assert_eq!(found.map(|found| found.id), own, "{project}{below}");
        }
    }
}

/// Random requests, the same at every run; refused ones do no harm.
pub(crate) struct World {
    random: Random,
    pub(crate) keys: Vec<SecretKey>,
    pub(crate) projects: Vec<RepoPath>,
    log: Vec<&'static str>,
}

impl World {
    pub(crate) fn new() -> Self {
        let projects = ["https/a.example/443/acme", "https/a.example/443/other/app", "http/b.example/80"];
        Self {
            random: Random::congruential(7),
            keys: (1..=5).map(|seed| SecretKey::from_seed(&[seed; 32])).collect(),
            projects: projects.map(path).to_vec(),
            log: Vec::new(),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.place(bound)
    }

    pub(crate) async fn step(&mut self, store: &Store, step: u64) {
        let now = Timestamp::from_unix_seconds(1_700_000_000 + 60 * i64::try_from(step).unwrap()).unwrap();
        let (project, key) = (self.below(self.projects.len()), self.below(self.keys.len()));
        let project = self.projects[project].clone();
        match self.below(20) {
            0..=1 => self.propose(store, project, key, now).await,
            2 => {
                let decide = move |head: &Head, _| proposal::drop_pending(head, &project);
                self.note(store.transact(decide).await.unwrap().is_ok(), "drop");
            }
            3..=8 => self.sign_proposal(store, &project, key, now).await,
            9..=11 => self.add_release(store, &project, key, now).await,
            12..=17 => self.sign_release(store, &project, key, now).await,
            _ => self.revoke(store, &project, key, now).await,
        }
    }

    fn note(&mut self, accepted: bool, kind: &'static str) {
        if accepted {
            self.log.push(kind);
        }
    }

    async fn propose(&mut self, store: &Store, project: RepoPath, key: usize, now: Timestamp) {
        let second = self.below(self.keys.len());
        let members: BTreeSet<usize> = [key, second].into();
        let members: Vec<_> = members.into_iter().map(|member| &self.keys[member]).collect();
        let proposal = proposal(project.clone(), &self.keys[key], &members, now);
        let is_active = store.head().read(&layout::active_signers(&project)).unwrap().is_some();
        if is_active {
            let decide = move |head: &Head, _| update::update(head, &proposal, now);
            self.note(store.transact(decide).await.unwrap().is_ok(), "propose");
        } else {
            let expiry = Duration::from_secs(60 * 60);
            let decide = move |head: &Head, _| register::register(head, &proposal, expiry, now);
            self.note(store.transact(decide).await.unwrap().is_ok(), "register");
        }
    }

    async fn sign_proposal(&mut self, store: &Store, project: &RepoPath, key: usize, now: Timestamp) {
        self.submit(store, layout::pending_signers(project), key, now, ("sign", "activate")).await;
    }

    async fn sign_release(&mut self, store: &Store, project: &RepoPath, key: usize, now: Timestamp) {
        let file = self.release(project);
        self.submit(store, file, key, now, ("sign", "complete")).await;
    }

    async fn submit(
        &mut self,
        store: &Store,
        file: RepoPath,
        key: usize,
        now: Timestamp,
        (partly, wholly): (&'static str, &'static str),
    ) {
        let submission = submission(&store.head(), &self.keys[key], file);
        let decide = move |head: &Head, _| sign::sign(head, &submission, now);
        if let Ok(signed) = store.transact(decide).await.unwrap() {
            self.note(true, if signed.is_complete { wholly } else { partly });
        }
    }

    fn release(&mut self, project: &RepoPath) -> RepoPath {
        layout::index_in(&path(&format!("{project}/v{}", self.below(4))))
    }

    async fn add_release(&mut self, store: &Store, project: &RepoPath, key: usize, now: Timestamp) {
        let dir = self.release(project).parent().unwrap();
        let release = release(dir, self.below(3));
        let caller = self.keys[key].public_key();
        let index = release.write_index(project, now).unwrap();
        let decide = move |head: &Head, _| assets::register_assets(head, &index, &caller, 3);
        self.note(store.transact(decide).await.unwrap().is_ok(), "add");
    }

    async fn revoke(&mut self, store: &Store, project: &RepoPath, key: usize, now: Timestamp) {
        let file = self.release(project);
        let request = revocation(file, &self.keys[key], now);
        let decide = move |head: &Head, _| statement::revoke(head, &request.statement, &request.request, now);
        self.note(store.transact(decide).await.unwrap().is_ok(), "revoke");
    }
}

/// A broken file in one project leaves the others in the index.
#[tokio::test]
async fn a_broken_file_is_left_out_of_the_index_and_nothing_else_is() {
    let fixture = Fixture::new();
    let store = fixture.start();
    let mut world = World::new();
    for step in 0..80 {
        world.step(&store, step).await;
    }
    let before = store.head();
    let mut change = Change::new("Break something");
    change.write(path("https/broken.example/443/svc.index.json"), b"{}".to_vec());
    change
        .write(path("https/broken.example/443/svc.index.json.signatures.json.pending"), b"nonsense".to_vec());
    commit(&store, change).await.unwrap();
    assert_eq!(store.head().index, before.index);
    assert_eq!(Head::clone(&store.head()).rebuild_index().index, before.index);
}
