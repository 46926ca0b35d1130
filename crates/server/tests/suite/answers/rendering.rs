//! Turns to make pages.

use std::{net::IpAddr, sync::mpsc, time::Duration};

use axum::http::StatusCode;
use countersign_server::{
    limits::places::Claimant,
    rendering::{MAX_WAITING_EACH, Renderings},
};
use futures_util::FutureExt as _;

#[tokio::test]
async fn one_who_waits_too_long_is_told_to_come_back() {
    let renderings = Renderings::new(1, Duration::from_millis(10));
    let (release, released) = mpsc::channel::<()>();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let first = renderings.run(Claimant::default(), move || {
        let _ = begin.send(());
        released.recv().is_ok()
    });
    let second = async {
        begun.await.unwrap();
        let refused = renderings.run(Claimant::default(), || ()).await.unwrap_err();
        release.send(()).unwrap();
        refused
    };
    let (first, refused) = tokio::join!(first, second);
    assert!(first.unwrap());
    assert_eq!((refused.status, refused.retry_after), (StatusCode::SERVICE_UNAVAILABLE, Some(1)));
    assert_eq!(renderings.run(Claimant::default(), || 7).await.unwrap(), 7);
}

#[tokio::test]
async fn a_panic_gives_its_turn_back() {
    let renderings = Renderings::new(1, Duration::from_secs(30));
    let failed = renderings.run(Claimant::default(), || panic!("on purpose")).await.unwrap_err();
    assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(renderings.run(Claimant::default(), || 7).await.unwrap(), 7);
}

#[tokio::test]
async fn a_flood_is_turned_away_at_once_and_others_go_first() {
    let renderings = Renderings::new(1, Duration::from_secs(30));
    let at = |n: u8| Claimant::at(Some(IpAddr::from([192, 0, 2, n])));
    let (release, released) = mpsc::channel::<()>();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let first = renderings.run(at(1), move || {
        let _ = begin.send(());
        released.recv().is_ok()
    });
    let (tell, order) = mpsc::channel();
    let others = async {
        begun.await.unwrap();
        let mut waiting: Vec<_> = (0..MAX_WAITING_EACH)
            .map(|_| {
                let tell = tell.clone();
                Box::pin(renderings.run(at(1), move || tell.send("flood")))
            })
            .collect();
        assert!(waiting.iter_mut().all(|page| page.now_or_never().is_none()), "they wait");
        for _ in 0..3 {
            let refused = renderings.run(at(1), || ()).now_or_never().expect("an answer at once");
            assert_eq!(refused.unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
        }
        let mut honest = Box::pin(renderings.run(at(2), move || tell.send("honest")));
        assert!((&mut honest).now_or_never().is_none(), "a page is being made");
        release.send(()).unwrap();
        let flood = futures_util::future::join_all(waiting);
        let (honest, flood) = tokio::join!(honest, flood);
        assert!(honest.is_ok() && flood.iter().all(Result::is_ok));
    };
    let (first, ()) = tokio::join!(first, others);
    assert!(first.unwrap());
    assert_eq!(order.recv().unwrap(), "honest");
    assert_eq!(order.iter().count(), MAX_WAITING_EACH);
    assert_eq!(renderings.turns.refused.get(), 3);
}
