//! Turns to make pages.

use std::{sync::mpsc, time::Duration};

use axum::http::StatusCode;
use countersign_server::{http::sending::few_turns, http::sending::run_in_turn, limits::semaphore::Claimant};

#[tokio::test]
async fn one_who_waits_too_long_is_told_to_come_back() {
    let renderings = few_turns(1, 256, Duration::from_millis(10));
    let (release, released) = mpsc::channel::<()>();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let first = run_in_turn(&renderings, Claimant::default(), move || {
        let _ = begin.send(());
        released.recv().is_ok()
    });
    let second = async {
        begun.await.unwrap();
        let refused = run_in_turn(&renderings, Claimant::default(), || ()).await.unwrap_err();
        release.send(()).unwrap();
        refused
    };
    let (first, refused) = tokio::join!(first, second);
    assert!(first.unwrap());
    assert_eq!((refused.status(), refused.retry_after), (StatusCode::SERVICE_UNAVAILABLE, Some(1)));
    assert_eq!(run_in_turn(&renderings, Claimant::default(), || 7).await.unwrap(), 7);
}

#[tokio::test]
async fn a_panic_gives_its_turn_back() {
    let renderings = few_turns(1, 256, Duration::from_secs(30));
    let failed = run_in_turn(&renderings, Claimant::default(), || panic!("on purpose")).await.unwrap_err();
    assert_eq!(failed.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(run_in_turn(&renderings, Claimant::default(), || 7).await.unwrap(), 7);
}
