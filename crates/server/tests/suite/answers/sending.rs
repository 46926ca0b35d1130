//! Room for large answers, and turns to make pages.

use std::{sync::mpsc, time::Duration};

use axum::{body::Bytes, http::StatusCode, http::header::CONTENT_LENGTH};
use countersign_core::rules::snapshot::ReadError;
use countersign_server::http::sending::{
    BodyPart, MOST_BYTES, PIECE_BYTES, SMALL_BYTES, Sending, few_turns, run_in_turn,
};
use countersign_server::limits::{connections::RequestSender, semaphore::Claimant};
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;

#[tokio::test(start_paused = true)]
async fn large_answers_have_so_much_room_and_the_next_one_waits_for_it() {
    let (sending, sender) = (Sending::default(), RequestSender::default());
    let mut held = Vec::new();
    for _ in 0..MOST_BYTES / (2 << 20) {
        held.push(sending.hold(2 << 20, &sender).now_or_never().expect("room").unwrap());
    }
    assert_eq!(sending.bytes(), MOST_BYTES);
    let refused = sending.hold(1, &sender).await.unwrap_err();
    assert_eq!((refused.status(), refused.retry_after), (StatusCode::SERVICE_UNAVAILABLE, Some(1)));

    let mut waiting = Box::pin(sending.hold(2 << 20, &sender));
    assert!(waiting.as_mut().now_or_never().is_none(), "it waits");
    held.pop();
    let _held = waiting.await.unwrap();
    assert_eq!(sending.bytes(), MOST_BYTES);
}

#[tokio::test]
async fn what_is_small_needs_no_room_and_what_is_large_gives_it_back_when_it_is_sent() {
    let (sending, sender) = (Sending::default(), RequestSender::default());
    let all = sending.hold(MOST_BYTES, &sender).await.unwrap();
    let small = sending.answer(Bytes::from(vec![7; SMALL_BYTES]), &sender).await.unwrap();
    assert_eq!(small.into_body().collect().await.unwrap().to_bytes().len(), SMALL_BYTES);
    drop(all);

    let large = sending.answer(Bytes::from(vec![7; SMALL_BYTES + 1]), &sender).await.unwrap();
    assert_eq!(large.headers()[CONTENT_LENGTH], (SMALL_BYTES + 1).to_string());
    assert!(sending.bytes() > SMALL_BYTES);
    let mut large = Box::pin(large.into_body());
    let piece = large.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(piece.len(), PIECE_BYTES);
    drop(large);
    assert_eq!(sending.bytes(), 0);
}

#[tokio::test]
async fn a_body_in_parts_is_read_as_it_is_sent_and_breaks_off_where_it_cannot_be_read() {
    let (sending, sender) = (Sending::default(), RequestSender::default());
    let room = || sending.hold(1, &sender);
    let part =
        |from: usize| BodyPart { bytes: Bytes::from(vec![b'a' + from as u8; 100_000]), next: Some(from + 1) };
    let last = || BodyPart { bytes: Bytes::from_static(b"!"), next: None };
    let whole = sending
        .stream(room().await.unwrap(), part(0), move |from| Ok(if from == 3 { last() } else { part(from) }));
    let whole = whole.collect().await.unwrap().to_bytes();
    assert_eq!(
        (whole.len(), whole[99_999], whole[100_000], whole.last()),
        (300_001, b'a', b'b', Some(&b'!'))
    );

    let broken = sending.stream(room().await.unwrap(), part(0), |_| {
        let path = countersign_core::values::path::RepoPath::parse("a").unwrap();
        Err(ReadError { path, reason: "on purpose".to_owned() })
    });
    assert!(broken.collect().await.is_err());
    assert_eq!(sending.bytes(), 0);
}

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
