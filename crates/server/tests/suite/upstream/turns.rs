//! Turns to fetch.

use countersign_server::http::upstream::{
    FetchClaim, FetchKind, FetchOutcome, FetchTurns, MAX_FETCHING, MAX_WAITING,
};
use countersign_server::limits::semaphore::Claimant;
use futures_util::{FutureExt as _, future::join_all};

#[tokio::test(start_paused = true)]
async fn who_comes_when_all_turns_are_taken_waits_a_while_and_no_more_than_some_do() {
    let fetching = FetchTurns::default();
    let begin =
        || fetching.begin(FetchKind::Signers, FetchClaim { claimant: Claimant::default(), share: None });
    let mut turns: Vec<_> = join_all((0..MAX_FETCHING).map(|_| begin())).await;
    assert!(turns.iter().all(Result::is_ok));

    let mut waiting = Box::pin(begin());
    assert!(waiting.as_mut().now_or_never().is_none(), "it waits");
    turns.pop();
    assert!(waiting.as_mut().now_or_never().unwrap().is_ok(), "a turn became free");
    let taken = begin();
    drop(waiting);
    turns.push(taken.await);

    let mut queue: Vec<_> = (0..MAX_WAITING).map(|_| Box::pin(begin())).collect();
    assert!(queue.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
    assert_eq!(fetching.under_way(), MAX_FETCHING + MAX_WAITING);
    assert!(begin().now_or_never().unwrap().is_err(), "the queue is full");
    assert!(join_all(queue).await.iter().all(Result::is_err), "their time is up");
    assert_eq!(fetching.count(FetchKind::Signers, FetchOutcome::Busy), 1 + MAX_WAITING as u64);
    assert_eq!(fetching.under_way(), MAX_FETCHING);
}
