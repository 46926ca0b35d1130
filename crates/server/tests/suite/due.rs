//! Signers that have waited long enough take effect (D132): to the second, once, and before any request is answered.

use std::sync::{Arc, atomic::AtomicI64, atomic::AtomicUsize, atomic::Ordering};

use countersign_core::rules::decide::statement::{StatementRefusal, veto};
use countersign_core::{documents::layout, values::key::SecretKey, values::time::Timestamp};
use countersign_server::{api::state::App, serve::due::HeldBack, serve::start::Running};
use countersign_store::{machine::clock::Clock, snapshot::index::WaitingSigners};
use countersign_testing::{PENDING, PROJECT, Signers, World, alice, bob, path, signers};
use tempfile::TempDir;

use crate::support::{get, start_with};

const DELAY: i64 = 48 * 3_600;

/// Alice signs and administrates, Bob is master.
fn team(time: &str) -> Signers {
    signers(time).artifact(1, [&alice()]).master(1, [&bob()]).delay(48)
}

fn next() -> Signers {
    team("2026-02-01T09:00:00Z")
}

struct Scene {
    _dir: TempDir,
    running: Running,
    world: World,
    seconds: Arc<AtomicI64>,
    looks: Arc<AtomicUsize>,
}

impl Scene {
    async fn start() -> Self {
        let world = World::new();
        let seconds = Arc::new(AtomicI64::new(world.now.unix_seconds()));
        let (shown, looks) = (Arc::clone(&seconds), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&looks);
        let clock = Clock::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Timestamp::from_unix_seconds(shown.load(Ordering::Relaxed)).unwrap()
        });
        let (dir, running) = start_with(clock).await;
        let mut scene = Self { _dir: dir, running, world, seconds, looks };
        scene.world.register(&team("2026-01-31T10:00:00Z"), &alice()).unwrap();
        scene.store().await;
        for person in [alice(), bob()] {
            scene.sign(&person).await;
        }
        scene
    }

    fn app(&self) -> &App {
        self.running.app()
    }

    /// What the world's last decision changed.
    async fn store(&self) {
        let change = self.world.last.clone();
        self.app().store.transact(move |_, _| Ok::<_, ()>((change.clone(), ()))).await.unwrap().unwrap();
    }

    async fn sign(&mut self, person: &SecretKey) {
        self.world.sign(PENDING, person).unwrap();
        self.store().await;
    }

    /// Alice proposed the next signers and agreed; when they take effect.
    async fn agree(&mut self, file: &Signers) -> i64 {
        self.world.update(file, &alice()).unwrap();
        self.store().await;
        self.sign(&alice()).await;
        self.world.now.unix_seconds() + DELAY
    }

    fn set(&self, seconds: i64) {
        self.seconds.store(seconds, Ordering::Relaxed);
    }

    async fn signers(&self) -> String {
        get(self.running.address, &format!("/v1/get_signers/{PROJECT}"), "").await.body
    }

    fn commits(&self) -> i64 {
        self.app().store.recent_commits().end()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_the_second_before_sees_the_old_signers_and_one_at_the_second_the_new_ones() {
    let mut scene = Scene::start().await;
    let due = scene.agree(&next()).await;
    scene.set(due - 1);
    assert_eq!(scene.signers().await, team("2026-01-31T10:00:00Z").text());
    scene.set(due);
    assert_eq!(scene.signers().await, next().text());
    let entry = layout::history_entry(&path(PROJECT), 2);
    let entry = get(scene.running.address, &format!("/v1/files/{entry}"), "").await.body;
    let in_force = Timestamp::from_unix_seconds(due).unwrap();
    assert!(entry.contains(&format!("\"timestamp\": \"{in_force}\"")), "{entry}");
    scene.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_at_once_make_one_commit_and_all_see_it() {
    let mut scene = Scene::start().await;
    let due = scene.agree(&next()).await;
    let before = scene.commits();
    scene.set(due + 5);
    let asked = (0..32).map(|_| scene.signers());
    for signers in futures_util::future::join_all(asked).await {
        assert_eq!(signers, next().text());
    }
    assert_eq!(scene.commits(), before + 1);
    scene.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_veto_and_the_due_time_do_not_both_win() {
    let (mut vetoed, mut in_force) = (0, 0);
    for round in 0..8 {
        let mut scene = Scene::start().await;
        let due = scene.agree(&next()).await;
        let request = scene.world.veto_request(&scene.world.veto_document("no"), &bob());
        let just_before = Timestamp::from_unix_seconds(due - 1).unwrap();
        let store = Arc::clone(&scene.app().store);
        let vetoing = async {
            if round % 2 == 1 {
                tokio::task::yield_now().await;
            }
            store.transact(move |head, _| veto(head, &request, just_before)).await.unwrap()
        };
        scene.set(due);
        let (outcome, seen) = match round % 2 {
            0 => tokio::join!(vetoing, scene.signers()),
            _ => {
                let seen = scene.signers().await;
                (vetoing.await, seen)
            }
        };
        match outcome {
            Ok(outcome) => {
                assert!(outcome.in_force);
                vetoed += 1;
                assert_eq!(scene.signers().await, team("2026-01-31T10:00:00Z").text());
            }
            Err(StatementRefusal::NotFound(_)) => {
                in_force += 1;
                assert_eq!(scene.signers().await, next().text());
            }
            Err(other) => panic!("{other}"),
        }
        assert!([next().text(), team("2026-01-31T10:00:00Z").text()].contains(&seen));
        scene.running.stop().await.unwrap();
    }
    assert!(in_force >= 4 && vetoed + in_force == 8, "{vetoed} vetoed, {in_force} in force");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_nothing_waits_a_read_does_not_even_look_at_the_clock() {
    let mut scene = Scene::start().await;
    let looks = || scene.looks.load(Ordering::Relaxed);
    let before = looks();
    for _ in 0..20 {
        assert_eq!(scene.signers().await, team("2026-01-31T10:00:00Z").text());
    }
    assert_eq!(looks(), before);
    // With something that waits, it does.
    scene.agree(&next()).await;
    let before = scene.looks.load(Ordering::Relaxed);
    scene.signers().await;
    assert!(scene.looks.load(Ordering::Relaxed) > before);
    scene.running.stop().await.unwrap();
}

/// So many projects, whose signers are due one second after the other.
fn waiting(count: usize) -> Arc<WaitingSigners> {
    let mut waiting = WaitingSigners::default();
    (0..count)
        .for_each(|number| waiting.set(&path(&format!("{PROJECT}{number}")), Some(second(number as i64))));
    Arc::new(waiting)
}

fn second(number: i64) -> Timestamp {
    Timestamp::from_unix_seconds(1_800_000_000 + number).unwrap()
}

#[test]
fn a_request_looks_at_none_of_those_that_are_held_back() {
    let mut durations = Vec::new();
    for count in [1, 600, 20_000] {
        let (held, waiting, now) = (HeldBack::default(), waiting(count), second(count as i64));
        assert!(held.has_other_due(&waiting, || now));
        assert_eq!(held.other_due(&waiting, now).len(), count);
        waiting.due(now).for_each(|signers| assert!(held.hold(signers.clone())));
        assert!(!held.has_other_due(&waiting, || now));
        let looks = held.looks();
        let begin = std::time::Instant::now();
        (0..100_000).for_each(|_| assert!(!held.has_other_due(&waiting, || now)));
        durations.push((count, begin.elapsed() / 100_000));
        assert_eq!(held.looks(), looks, "{count} are held back");
    }
    println!("{durations:?} for a request, by how many are held back");
}

#[test]
fn what_is_due_next_is_seen_at_its_second_and_what_is_held_back_is_not() {
    let (held, now, late) = (HeldBack::default(), second(10), second(1_000));
    let first = waiting(1);
    let known = first.due(now).next().unwrap().clone();
    held.hold(known.clone());
    assert!(!held.has_other_due(&first, || late));
    // A commit lets another one wait.
    let mut more = WaitingSigners::clone(&first);
    more.set(&path(PROJECT), Some(second(500)));
    let more = Arc::new(more);
    assert!(!held.has_other_due(&more, || second(499)));
    let looks = held.looks();
    assert!(held.has_other_due(&more, || second(500)));
    assert_eq!(held.looks(), looks, "that was known from the first look");
    assert_eq!(held.other_due(&more, second(500)), [(second(500), path(PROJECT))]);
    // The signers of the same project that wait instead are others.
    let mut replaced = WaitingSigners::clone(&first);
    replaced.set(&known.1, Some(second(600)));
    let replaced = Arc::new(replaced);
    assert!(!held.has_other_due(&replaced, || second(599)));
    assert!(held.has_other_due(&replaced, || second(600)));
    held.forget_done(&replaced);
    assert!(held.has_other_due(&first, || now), "they were forgotten with what replaced them");
    // What is let go of is due again.
    held.hold(known.clone());
    assert!(!held.has_other_due(&first, || now));
    held.release(&known);
    assert!(held.has_other_due(&first, || now));
}
