//! Nodes that share an order of batches: here it is a list in memory, which can lose answers and batches.

use std::{fs, io, sync::Arc, sync::Mutex, sync::MutexGuard, sync::atomic::Ordering};

use countersign_core::rules::snapshot::{Change, Snapshot as _};
use countersign_core::values::bounds::{JOURNAL_ENTRY_FILES, SHARED_BATCH_FILES};
use countersign_core::values::{path::RepoPath, time::Timestamp};
use countersign_store::sequence::{
    Appended, BatchOffer, MAX_CLOCK_ERROR, OrderGap, OrderPosition, OrderedBatch, PassedBatch, SequenceError,
    Sequencer, SharedBatch, Votes,
};
use countersign_store::{
    Disk, DiskStep, Head, ObjectId, Options, Repository, Store, StoreError, StoreRole,
    journal::export::JournalBatches, machine::clock::Clock,
};

use super::following::entries_of;
use crate::support::faults::{Actor, Faults, Kind, Taken, Target};
use crate::support::replaying::{Recorded, everything, first_of_everything, speaks_for};
use crate::support::{Fixture, commit, contents, disk_that_doubts_a_move, options, put, switched_disk};

#[derive(Debug, Clone, Default)]
struct ListedOrder(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    batches: Vec<SharedBatch>,
    /// The next answer is lost, after or before the batch was added.
    loses_answer: Option<Loss>,
    forgotten: usize,
    /// `None` if the order has no clock.
    clock: Option<Timestamp>,
    passed: Vec<OrderPosition>,
    /// Nodes that do not pass over what this one does.
    dissenters: Vec<String>,
    passed_by_others: Vec<PassedBatch>,
    gap: Option<OrderGap>,
}

#[derive(Debug, Clone, Copy)]
enum Loss {
    BeforeEffect,
    AfterEffect,
}

impl Sequencer for ListedOrder {
    fn append(&mut self, batch: &SharedBatch, offer: &BatchOffer) -> Result<Appended, SequenceError> {
        let mut list = self.0.lock().unwrap();
        if let (Some(clock), Some(times)) = (list.clock, offer.times)
            && times.newest.ahead_of(clock).is_some_and(|lead| lead > MAX_CLOCK_ERROR)
        {
            return Ok(Appended::Untimely { clock });
        }
        let loss = list.loses_answer.take();
        if matches!(loss, Some(Loss::BeforeEffect)) {
            return Err(lost());
        }
        let before = offer.passed.map(|passed| passed.head).or(batch.base);
        if list.batches.last().map(|last| last.head) != before {
            return Ok(Appended::Behind);
        }
        list.batches.push(batch.clone());
        if loss.is_some() { Err(lost()) } else { Ok(Appended::Done) }
    }

    fn newest_known(
        &mut self,
        is_known: &mut dyn FnMut(&ObjectId) -> bool,
    ) -> Result<Option<ObjectId>, SequenceError> {
        let list = self.0.lock().unwrap();
        Ok(list.batches.iter().rev().map(|batch| batch.head).find(|head| is_known(head)))
    }

    fn batches_after(
        &mut self,
        commit: Option<ObjectId>,
        passed: Option<OrderPosition>,
    ) -> Result<Vec<OrderedBatch>, SequenceError> {
        let list = self.0.lock().unwrap();
        let numbered = (1..).zip(&list.batches).map(|(seq, batch)| OrderedBatch {
            position: OrderPosition { seq, head: batch.head },
            node: "another".to_owned(),
            batch: batch.clone(),
        });
        let numbered: Vec<_> = numbered.collect();
        if let Some(passed) = passed {
            return Ok(numbered[usize::try_from(passed.seq).unwrap()..].to_vec());
        }
        let Some(commit) = commit else { return Ok(numbered) };
        let at = list.batches.iter().position(|batch| batch.head == commit);
        Ok(numbered[at.ok_or(SequenceError::Unknown(commit))? + 1..].to_vec())
    }

    fn pass_over(&mut self, batch: &OrderedBatch, _: &str) -> Result<(), SequenceError> {
        self.0.lock().unwrap().passed.push(batch.position);
        Ok(())
    }

    fn votes_on(&mut self, _: OrderPosition) -> Result<Votes, SequenceError> {
        let others = self.0.lock().unwrap().dissenters.clone();
        Ok(Votes { against: vec!["this".to_owned()], others })
    }

    fn passed_batches(&self) -> Arc<Vec<PassedBatch>> {
        Arc::new(self.0.lock().unwrap().passed_by_others.clone())
    }

    fn find_gap(&mut self) -> Result<Option<OrderGap>, SequenceError> {
        Ok(self.0.lock().unwrap().gap)
    }

    fn note_published(&mut self, _: ObjectId, _: Option<OrderPosition>) {}

    fn ends_with(&self, _: &ObjectId) -> bool {
        false
    }

    fn forget_nonces(&mut self) -> Result<(), SequenceError> {
        self.0.lock().unwrap().forgotten += 1;
        Ok(())
    }
}

fn lost() -> SequenceError {
    SequenceError::Unavailable(Arc::new(io::Error::other("the answer was lost")))
}

/// Nodes on machines of their own, with one clock.
struct Nodes {
    order: ListedOrder,
    clock: Arc<Mutex<usize>>,
    steps: Vec<Recorded>,
}

impl Nodes {
    fn new() -> Self {
        Self { order: ListedOrder::default(), clock: Arc::default(), steps: everything().steps }
    }

    fn start(&self, fixture: &Fixture) -> Store {
        self.start_on(fixture, Disk::default())
    }

    fn start_on(&self, fixture: &Fixture, disk: Disk) -> Store {
        let (at, times) =
            (Arc::clone(&self.clock), self.steps.iter().map(|step| step.time).collect::<Vec<_>>());
        let options = Options {
            clock: Clock::new(move || times[*at.lock().unwrap()]),
            initial: first_of_everything,
            speaks_for,
            role: StoreRole::Node(Box::new(self.order.clone())),
            ..options()
        };
        Store::start(Repository::open_on(disk, &fixture.repository()).unwrap(), options).unwrap()
    }

    /// Makes this step, unless the node sees that it was made. A real decision gives what the rules allow on the head
    /// that it sees; where this one does not, the node has not heard of the step before.
    async fn act(&self, store: &Store, step: usize) -> Result<Result<(), &'static str>, StoreError> {
        *self.clock.lock().unwrap() = step;
        let change = self.steps[step].change();
        let decide = move |head: &Head, _| {
            let is_made = change.files.iter().all(|(path, content)| head.read(path).unwrap() == *content);
            if is_made { Err("it was made already") } else { Ok((change.clone(), ())) }
        };
        match store.transact(decide.clone()).await {
            Err(StoreError::Illegal(_)) => {
                store.catch_up().await?;
                store.transact(decide).await
            }
            made => made,
        }
    }

    /// A new node that has made the first steps.
    async fn start_at(&self, fixture: &Fixture, steps: usize) -> Store {
        let node = self.start(fixture);
        node.catch_up().await.unwrap();
        for step in 1..=steps {
            self.act(&node, step).await.unwrap().unwrap();
        }
        node
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.order.0.lock().unwrap()
    }

    fn batches(&self) -> usize {
        self.list().batches.len()
    }
}

#[tokio::test]
async fn nodes_in_turn_make_one_history() {
    let (one, other) = (Fixture::new(), Fixture::new());
    let nodes = Nodes::new();
    let (first, second) = (nodes.start(&one), nodes.start(&other));
    first.catch_up().await.unwrap();
    for step in 1..nodes.steps.len() {
        // The node has not heard of the step before: its first attempt comes to nothing, and it decides again.
        let node = if step % 2 == 0 { &first } else { &second };
        assert_eq!(nodes.act(node, step).await.unwrap(), Ok(()), "step {step}");
    }
    first.catch_up().await.unwrap();
    second.catch_up().await.unwrap();
    assert_eq!(first.head().commit, second.head().commit);
    assert_eq!(contents(&first.head()), contents(&second.head()));
    assert_eq!(entries_of(&first, None).len(), nodes.steps.len());
    let head = first.head();
    drop((first, second));
    one.check(&head);
    other.check(&head);
}

#[tokio::test]
async fn a_lost_answer_is_an_error_and_the_change_is_made_once_or_not_at_all() {
    for (loss, is_made) in [(Loss::BeforeEffect, false), (Loss::AfterEffect, true)] {
        let fixture = Fixture::in_memory();
        let nodes = Nodes::new();
        let node = nodes.start(&fixture);
        node.catch_up().await.unwrap();
        nodes.list().loses_answer = Some(loss);
        let unknown = nodes.act(&node, 1).await.unwrap_err();
        assert!(matches!(unknown, StoreError::Unconfirmed(_)), "{unknown}");
        let expected = if is_made { Err("it was made already") } else { Ok(()) };
        assert_eq!(nodes.act(&node, 1).await.unwrap(), expected);
        node.catch_up().await.unwrap();
        assert_eq!(nodes.batches(), 2);
        let head = node.head();
        drop(node);
        fixture.check(&head);
    }
}

#[tokio::test]
async fn batches_that_the_order_has_lost_are_given_back() {
    let (one, other) = (Fixture::in_memory(), Fixture::in_memory());
    let nodes = Nodes::new();
    let node = nodes.start_at(&one, 5).await;
    let tip = node.head().commit;
    nodes.list().batches.truncate(3);
    // Another node starts from what is left, and the one that has more comes back.
    let late = nodes.start_at(&other, 0).await;
    assert_ne!(late.head().commit, tip);
    node.catch_up().await.unwrap();
    late.catch_up().await.unwrap();
    assert_eq!(late.head().commit, tip);
    assert_eq!(nodes.list().forgotten, 1);
}

#[tokio::test]
async fn a_node_whose_history_went_another_way_stops_and_says_so() {
    let (one, other) = (Fixture::in_memory(), Fixture::in_memory());
    let nodes = Nodes::new();
    let (first, second) = (nodes.start(&one), nodes.start(&other));
    first.catch_up().await.unwrap();
    nodes.act(&first, 1).await.unwrap().unwrap();
    nodes.list().batches.truncate(1);
    second.catch_up().await.unwrap();
    // The same change at another time is another commit.
    *nodes.clock.lock().unwrap() = 2;
    let change = nodes.steps[1].change();
    commit(&second, change).await.unwrap();
    let stopped = first.catch_up().await.unwrap_err();
    assert!(matches!(stopped, StoreError::Halted(_)), "{stopped}");
    assert!(stopped.to_string().contains(&second.head().commit.to_string()), "{stopped}");
    assert_eq!(first.halted().map(|reason| reason.contains("another commit")), Some(true));
    assert!(matches!(nodes.act(&first, 2).await, Err(StoreError::Halted(_))));
}

#[tokio::test]
async fn what_no_node_writes_stops_a_node_until_the_order_is_right_again() {
    let (fixture, nodes) = (Fixture::in_memory(), Nodes::new());
    let node = nodes.start_at(&fixture, 3).await;
    let good = nodes.list().batches.clone();
    let lied = SharedBatch { body: good[1].body.clone(), ..good[2].clone() };
    let lies = [
        ("a batch is missing", vec![good[0].clone(), good[2].clone()]),
        ("two in another order", vec![good[0].clone(), good[2].clone(), good[1].clone()]),
        ("the body of another one", vec![good[0].clone(), good[1].clone(), lied]),
    ];
    for (lie, batches) in lies {
        let follower_dir = Fixture::in_memory();
        nodes.list().batches = batches;
        let follower = nodes.start(&follower_dir);
        let stopped = follower.catch_up().await;
        assert!(matches!(stopped, Err(StoreError::Halted(_))), "{lie}: {stopped:?}");
        nodes.list().batches = good.clone();
        follower.catch_up().await.unwrap();
        assert_eq!(follower.halted(), None);
        assert_eq!(follower.head().commit, node.head().commit, "{lie}");
    }
}

/// The server of a repository that someone changes, at the time of the last step.
fn forger(nodes: &Nodes, fixture: &Fixture) -> Store {
    let time = nodes.steps.last().unwrap().time;
    let options =
        Options { clock: Clock::new(move || time), speaks_for, role: StoreRole::Single, ..options() };
    Store::start(Repository::open(&fixture.repository()).unwrap(), options).unwrap()
}

/// What no decision gives.
fn forged_change() -> Change {
    let path = RepoPath::parse("https/example.org/443/acme/forged.json").unwrap();
    Change { files: [(path, Some(Arc::from(&b"forged"[..])))].into(), message: "Forge".to_owned() }
}

/// The batch of a node that does not know the rules: a commit on top of `good` that no decision gives.
async fn illegal_after(good: &[SharedBatch]) -> SharedBatch {
    let nodes = Nodes::new();
    nodes.list().batches = good.to_vec();
    let fixture = Fixture::in_memory();
    let node = nodes.start_at(&fixture, 0).await;
    let base = node.head();
    let forged = forged_change();
    drop(node);
    let store = forger(&nodes, &fixture);
    commit(&store, forged).await.unwrap();
    let export = store.journal(Some(base.commit)).unwrap().unwrap();
    JournalBatches::new(export, Some(base.commit), |_| false).next().unwrap().unwrap()
}

#[tokio::test]
async fn a_batch_that_the_rules_do_not_give_is_passed_over_with_all_that_continues_it() {
    let (one, other) = (Fixture::in_memory(), Fixture::in_memory());
    let nodes = Nodes::new();
    let (node, late) = (nodes.start_at(&one, 2).await, nodes.start(&other));
    let good = nodes.list().batches.clone();
    let illegal = illegal_after(&good).await;
    let next = SharedBatch { base: Some(illegal.head), ..illegal.clone() };
    nodes.list().batches.extend([illegal.clone(), next]);
    let before = node.head().commit;
    node.catch_up().await.unwrap();
    assert_eq!((node.head().commit, node.halted()), (before, None));
    assert_eq!(nodes.list().passed.iter().map(|place| place.seq).collect::<Vec<_>>(), [4, 5]);
    // The order goes on behind it, and a node that reads all of it comes to the same.
    nodes.act(&node, 3).await.unwrap().unwrap();
    assert_eq!(nodes.list().batches.last().unwrap().base, Some(before));
    late.catch_up().await.unwrap();
    assert_eq!(late.head().commit, node.head().commit);
    assert!(late.journal(Some(illegal.head)).unwrap().is_none());
}

#[tokio::test]
async fn a_node_that_alone_passes_over_a_batch_accepts_nothing() {
    let (fixture, nodes) = (Fixture::in_memory(), Nodes::new());
    let node = nodes.start_at(&fixture, 1).await;
    let good = nodes.list().batches.clone();
    let illegal = illegal_after(&good).await;
    {
        let mut list = nodes.list();
        list.batches.push(illegal);
        list.dissenters = vec!["two".to_owned(), "three".to_owned()];
    }
    let stopped = node.catch_up().await.unwrap_err();
    assert!(stopped.to_string().contains("two, three"), "{stopped}");
    assert!(matches!(nodes.act(&node, 2).await, Err(StoreError::Halted(_))));
    // One of them passes over it as well.
    nodes.list().dissenters = vec!["two".to_owned()];
    node.catch_up().await.unwrap();
    nodes.act(&node, 2).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_node_stops_whose_batch_the_others_pass_over() {
    let (fixture, nodes) = (Fixture::in_memory(), Nodes::new());
    let node = nodes.start_at(&fixture, 1).await;
    let head = node.head().commit;
    let mut votes =
        Votes { against: vec!["two".to_owned()], others: vec!["one".to_owned(), "three".to_owned()] };
    let passed = |votes: &Votes| PassedBatch {
        position: OrderPosition { seq: 2, head },
        node: "one".to_owned(),
        reason: "it breaks the rules".to_owned(),
        votes: votes.clone(),
    };
    nodes.list().passed_by_others = vec![passed(&votes)];
    node.catch_up().await.unwrap();
    votes.against.push("three".to_owned());
    votes.others.pop();
    nodes.list().passed_by_others = vec![passed(&votes)];
    let stopped = node.catch_up().await.unwrap_err();
    assert!(stopped.to_string().contains(&head.to_string()), "{stopped}");
    assert!(matches!(nodes.act(&node, 2).await, Err(StoreError::Halted(_))));
}

#[tokio::test]
async fn what_a_node_decides_against_the_rules_is_refused_and_never_shared() {
    let (fixture, nodes) = (Fixture::in_memory(), Nodes::new());
    let node = nodes.start_at(&fixture, 0).await;
    let change = forged_change();
    let refused = commit(&node, change).await;
    assert!(matches!(refused, Err(StoreError::Illegal(_))), "{refused:?}");
    assert_eq!(nodes.batches(), 1);
    nodes.act(&node, 1).await.unwrap().unwrap();
    assert_eq!(nodes.batches(), 2);
}

#[tokio::test]
async fn a_node_gives_nothing_back_that_the_rules_do_not_give() {
    let (fixture, nodes) = (Fixture::in_memory(), Nodes::new());
    let node = nodes.start_at(&fixture, 1).await;
    drop(node);
    // Someone changes the repository of the stopped node.
    let single = forger(&nodes, &fixture);
    let change = forged_change();
    commit(&single, change).await.unwrap();
    let forged = single.head().commit;
    drop(single);
    let node = nodes.start(&fixture);
    let stopped = node.catch_up().await.unwrap_err();
    assert!(stopped.to_string().contains(&forged.to_string()), "{stopped}");
    assert_eq!((nodes.batches(), nodes.list().forgotten), (2, 0));
}

#[tokio::test]
async fn a_change_whose_time_the_order_refuses_is_decided_anew_or_refused() {
    let (fixture, nodes) = (Fixture::in_memory(), Nodes::new());
    let node = nodes.start_at(&fixture, 0).await;
    // The clock of the order is an hour behind this node's.
    let behind = Timestamp::from_unix_seconds(nodes.steps[1].time.unix_seconds() - 3_600).unwrap();
    nodes.list().clock = Some(behind);
    let refused = nodes.act(&node, 1).await;
    assert!(matches!(refused, Err(StoreError::WrongClock { order, .. }) if order == behind), "{refused:?}");
    assert_eq!(nodes.batches(), 1);
    nodes.list().clock = None;
    nodes.act(&node, 1).await.unwrap().unwrap();
}

/// Each takes some hundred bytes of memory, and in the database as few as six.
#[tokio::test]
async fn a_batch_of_very_many_files_stops_a_node_before_it_holds_them() {
    let (fixture, nodes) = (Fixture::in_memory(), Nodes::new());
    nodes.start(&fixture).catch_up().await.unwrap();
    let first = nodes.list().batches[0].clone();
    let mut commit = String::from_utf8(first.body.to_vec()).unwrap();
    commit.truncate(commit.find("M 100644").unwrap());
    let most = SHARED_BATCH_FILES / JOURNAL_ENTRY_FILES;
    for (commits, words) in [(most, "does not have the content"), (most + 1, "more than 400000 files")] {
        let removals: String = (100_000..200_000).map(|number| format!("D {number}\n")).collect();
        let body: String = (0..commits).map(|_| format!("{commit}{removals}\n")).collect();
        let lied = SharedBatch { commits, body: body.into(), ..first.clone() };
        nodes.list().batches = vec![lied];
        let copy = Fixture::in_memory();
        let stopped = nodes.start(&copy).catch_up().await.unwrap_err();
        assert!(stopped.to_string().contains(words), "{stopped}");
    }
}

#[tokio::test]
async fn an_empty_order_is_not_filled_with_commits_unasked() {
    let (fixture, nodes) = (Fixture::in_memory(), Nodes::new());
    let node = nodes.start_at(&fixture, 0).await;
    nodes.list().batches.clear();
    let stopped = node.catch_up().await.unwrap_err();
    assert!(stopped.to_string().contains("admin cluster init"), "{stopped}");
    assert_eq!(nodes.batches(), 0);
}

#[tokio::test]
async fn what_the_disk_does_not_take_is_read_like_the_rest() {
    let (one, other) = (Fixture::new(), Fixture::in_memory());
    let nodes = Nodes::new();
    let (disk, is_broken) = switched_disk();
    let node = nodes.start_on(&one, disk);
    node.catch_up().await.unwrap();
    let last = nodes.steps.len() - 1;
    for step in 1..last {
        // It is in the order, so what the disk says does not matter yet.
        is_broken.store(step == last - 1, Ordering::SeqCst);
        nodes.act(&node, step).await.unwrap().unwrap();
    }
    let alone = nodes.start_at(&other, 0).await;
    assert_eq!(contents(&node.head()), contents(&alone.head()));
    assert_eq!(entries_of(&node, None), entries_of(&alone, None));
    let commits = node.recent_commits().read_back(node.head().commit).collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(commits.len(), last);
    // Nothing new is begun.
    assert!(matches!(nodes.act(&node, last).await, Err(StoreError::Io(_))));
    is_broken.store(false, Ordering::SeqCst);
    nodes.act(&node, last).await.unwrap().unwrap();
    let head = node.head();
    drop(node);
    one.check(&head);
}

#[tokio::test]
async fn many_batches_of_others_come_to_disk_together() {
    let (one, other) = (Fixture::in_memory(), Fixture::in_memory());
    let nodes = Nodes::new();
    let node = nodes.start_at(&one, nodes.steps.len() - 1).await;
    let faults = Faults::new(None);
    let late = nodes.start_on(&other, faults.disk());
    late.catch_up().await.unwrap();
    let head = late.head();
    assert_eq!(head.commit, node.head().commit);
    drop(late);
    let rounds = faults.taken().iter().filter(|taken| is_branch_moved(taken)).count();
    assert!(rounds < nodes.batches() / 2, "{rounds} rounds of fsync for {} batches", nodes.batches());
    other.check(&head);
}

/// Found by the simulator: the node went back to what was on disk, and then stopped at the next batch.
#[tokio::test]
async fn a_node_does_not_go_back_behind_what_it_has_published_when_its_disk_fails() {
    let (one, other) = (Fixture::in_memory(), Fixture::in_memory());
    let nodes = Nodes::new();
    let node = nodes.start_at(&one, 5).await;
    let late = nodes.start_on(&other, disk_that_doubts_a_move());
    late.catch_up().await.unwrap();
    assert_eq!((late.halted(), late.head().commit), (None, node.head().commit));
    let head = late.head();
    drop(late);
    other.check(&head);
}

#[tokio::test]
async fn what_a_node_holds_comes_to_disk_by_itself() {
    let fixture = Fixture::new();
    let nodes = Nodes::new();
    let faults = Faults::new(Some(Target { actor: Actor::Writer, number: 0, kind: Kind::DiskFull }));
    let node = nodes.start_on(&fixture, faults.disk());
    node.catch_up().await.unwrap();
    let head = node.head().commit.to_string();
    let branch = fixture.repository().join("refs/heads/main");
    assert!(!branch.exists(), "the disk is full");
    faults.heal();
    faults.await_disk(|| fs::read_to_string(&branch).is_ok_and(|id| id.trim() == head));
}

/// Every step by which a node writes what it holds goes wrong in every way.
#[tokio::test]
async fn a_node_whose_disk_fails_loses_nothing_that_is_in_the_order() {
    let steps = {
        let fixture = Fixture::in_memory();
        let (nodes, faults) = (Nodes::new(), Faults::new(None));
        hold_and_write(&nodes, &fixture, &faults).await;
        faults.taken()
    };
    // The first commit, and one more: those after it are written in the same way.
    let steps: Vec<_> = steps.iter().filter(|taken| taken.actor == Actor::Writer).take(14).collect();
    assert!(steps.len() > 5, "{steps:?}");
    let (mut tried, mut blown) = (0, 0);
    for taken in steps {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.applies_to(taken.step)) {
            let fixture = Fixture::in_memory();
            let nodes = Nodes::new();
            let target = Target { actor: Actor::Writer, number: taken.number, kind };
            let faults = Faults::new(Some(target));
            let what = format!("{kind:?} at {taken:?}");
            hold_and_write(&nodes, &fixture, &faults).await;
            tried += 1;
            blown += usize::from(faults.has_blown());
            if kind.kills() {
                faults.lose_what_is_not_durable();
            }
            let node = nodes.start(&fixture);
            node.catch_up().await.unwrap_or_else(|error| panic!("{what}: {error}"));
            let head = node.head();
            assert_eq!(Some(head.commit), nodes.list().batches.last().map(|batch| batch.head));
            drop(node);
            fixture.check(&head);
        }
    }
    // A slow machine takes a step more or less.
    assert!(2 * blown > tried, "{blown} of {tried}");
}

/// Batches that come so close together that the node holds some, and then writes.
async fn hold_and_write(nodes: &Nodes, fixture: &Fixture, faults: &Faults) {
    let node = nodes.start_on(fixture, faults.disk());
    // A disk that has failed refuses them: then they are in no order either.
    let _ = node.catch_up().await;
    for step in 1..6 {
        let _ = nodes.act(&node, step).await;
    }
}

fn is_branch_moved(taken: &Taken) -> bool {
    taken.step == DiskStep::Rename && taken.path.ends_with("refs/heads/main")
}

/// A change like a rotation of more releases than could be registered now (D202). A server on its own makes it all the
/// same.
#[tokio::test]
async fn a_change_that_fits_no_batch_is_refused_by_itself() {
    let nodes = Nodes::new();
    let (fixture, alone) = (Fixture::new(), Fixture::new());
    let store = nodes.start(&fixture);
    nodes.act(&store, 1).await.unwrap().unwrap();
    let parts: Vec<String> =
        (0..9).map(|n| format!("+large/{n}={}", n.to_string().repeat(2 << 20))).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let refused = put(&store, &parts).await;
    assert!(matches!(refused, Err(StoreError::TooLargeToShare { bytes }) if bytes > 15 << 20), "{refused:?}");
    assert_eq!(store.halted(), None);
    nodes.act(&store, 2).await.unwrap().unwrap();
    put(&alone.start(), &parts).await.unwrap();
}
