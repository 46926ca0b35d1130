//! How fast the log is. Run it with `--release` and many releases to learn something:
//! `COUNTERSIGN_COMMITS=100000 cargo test --release -p countersign-log --test suite speed -- --nocapture`

use std::{sync::Arc, time::Duration, time::Instant};

use countersign_core::rules::snapshot::Change;
use countersign_log::{LogOptions, TransparencyLog};
use countersign_store::Store;
use tokio::{runtime::Runtime, task::JoinSet};

use crate::support::{Fixture, complete, index, publish, register, wait_for};

/// Commits that wait together, as under load.
const AT_ONCE: usize = 256;
/// Staples that are timed together.
const BATCH: usize = 100;

/// In each project.
const RELEASES: usize = 200;

fn project(number: usize) -> String {
    format!("https/a.example/443/owner/project{number}")
}

fn release(number: usize) -> String {
    format!("{}/releases/v{number}", project(number / RELEASES))
}

/// First all projects, then all releases, then their completion: what waits together can be committed in any order.
async fn commit_all(store: &Arc<Store>, releases: usize) {
    commit_each(store, (0..releases.div_ceil(RELEASES)).map(|number| register(&project(number)))).await;
    commit_each(store, (0..releases).map(|number| publish(&release(number)))).await;
    commit_each(store, (0..releases).map(|number| complete(&release(number)))).await;
}

async fn commit_each(store: &Arc<Store>, changes: impl Iterator<Item = Change>) {
    let mut waiting = JoinSet::new();
    for change in changes {
        let store = Arc::clone(store);
        waiting.spawn(async move {
            store.transact(move |_, _| Ok::<_, ()>((change.clone(), ()))).await.unwrap().unwrap();
        });
        if waiting.len() == AT_ONCE {
            while waiting.join_next().await.transpose().unwrap().is_some() {}
        }
    }
    while waiting.join_next().await.transpose().unwrap().is_some() {}
}

#[test]
fn it_keeps_up_and_starts_soon() {
    let commits: usize = std::env::var("COUNTERSIGN_COMMITS").map_or(600, |text| text.parse().unwrap());
    let releases = commits / 2;
    let mut fixture = Fixture::in_memory();
    let runtime = Runtime::new().unwrap();
    let store = Arc::new(fixture.store.take().unwrap());

    let begin = Instant::now();
    runtime.block_on(commit_all(&store, releases));
    eprintln!("{commits} commits without a log: {:?}", begin.elapsed());
    drop(store);
    let begin = Instant::now();
    fixture.open();
    eprintln!("the store opened in {:?}", begin.elapsed());

    let begin = Instant::now();
    let log = fixture.start_log();
    let newest = fixture.wait_for_all(&log);
    eprintln!("{} leaves from the repository in {:?}", newest.checkpoint().size, begin.elapsed());
    drop(log);

    let begin = Instant::now();
    let log = fixture.start_log();
    wait_for(&log, |log| (log.figures().size == newest.checkpoint().size).then_some(()));
    eprintln!("from the caches in {:?}", begin.elapsed());

    let head = fixture.store().head();
    let (mut best, mut bytes) = (Duration::MAX, 0);
    for round in 0..releases.min(10_000) / BATCH {
        let begin = Instant::now();
        bytes = (round * BATCH..(round + 1) * BATCH)
            .map(|number| {
                log.staple(|| std::sync::Arc::clone(&head), &index(&release(number))).1.unwrap().write().len()
            })
            .max()
            .unwrap_or_default();
        best = best.min(begin.elapsed() / u32::try_from(BATCH).unwrap());
    }
    // Others may use the machine as well, so the best counts.
    eprintln!("a staple in {best:?}, with up to {bytes} bytes");
    drop((head, log));

    for has_log in [false, true] {
        let fixture = Fixture::in_memory();
        let options = LogOptions { checkpoint_every: Duration::from_secs(5), ..fixture.options() };
        let log = has_log.then(|| TransparencyLog::start(fixture.store(), options).unwrap());
        let store = Arc::new(fixture.store.unwrap());
        let begin = Instant::now();
        runtime.block_on(commit_all(&store, releases));
        let took = begin.elapsed();
        let behind = log.as_ref().map(|log| (begin.elapsed(), log.figures().size));
        eprintln!("{commits} commits, log {has_log}: {took:?}; {behind:?}");
        if let Some(log) = log {
            let all = u64::try_from(2 * releases + releases.div_ceil(RELEASES) + 1).unwrap();
            wait_for(&log, |log| (log.figures().size == all).then_some(()));
            eprintln!("the log has all of them after {:?}", begin.elapsed());
        }
    }
}
