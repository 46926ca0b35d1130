//! How many can follow the journal (D68), each bound at the last that is let in and the first that is not.

use std::{net::IpAddr, pin::pin, time::Duration};

use countersign_server::events::journal::{
    CommitNews, FollowRequest, MAX_READING, MAX_READING_PER_ADDRESS, MAX_WAITING, MAX_WAITING_PER_ADDRESS,
};
use countersign_server::{api::state::App, limits::semaphore::Claimant};
use futures_util::FutureExt as _;

use crate::support::{commit, start};

fn at(number: usize) -> Claimant {
    Claimant::at(Some(IpAddr::from([198, 51, 100, number as u8])))
}

/// Waits for what comes after the newest commit.
async fn wait(app: &App, claimant: Claimant) -> Result<(), u16> {
    let request = FollowRequest { after: Some(app.store.head().commit), wait: Duration::from_secs(60) };
    let news = CommitNews { end: app.events.subscribe(), is_stopping: app.stopping() };
    app.followers.wait(&app.store, request, claimant, news).await.map_err(|error| error.code.status())
}

#[tokio::test]
async fn so_many_followers_wait() {
    let (_dir, running) = start().await;
    let app = running.app();
    let addresses = MAX_WAITING / MAX_WAITING_PER_ADDRESS;
    let mut waiting = Vec::new();
    for number in 0..MAX_WAITING {
        let mut follower = Box::pin(wait(app, at(number % addresses)));
        assert!(follower.as_mut().now_or_never().is_none(), "{number} waits");
        waiting.push(follower);
    }
    assert_eq!(app.followers.waiting.held(), MAX_WAITING);
    assert_eq!(wait(app, at(0)).await, Err(503), "its address has all that it can have");
    // A newcomer takes the place of one that has more.
    let mut newcomer = pin!(wait(app, at(200)));
    assert!(newcomer.as_mut().now_or_never().is_none());
    assert_eq!(app.followers.waiting.held(), MAX_WAITING);
    let (mut refused, mut others) = (Vec::new(), Vec::new());
    for mut follower in waiting {
        match follower.as_mut().now_or_never() {
            Some(answer) => refused.push(answer),
            None => others.push(follower),
        }
    }
    assert_eq!(refused, [Err(503)]);
    commit(app, "Sign something").await;
    assert_eq!(newcomer.await, Ok(()));
    for follower in others {
        assert_eq!(follower.await, Ok(()));
    }
    assert!(app.followers.waiting.is_empty());
}

#[tokio::test]
async fn so_many_followers_read() {
    let (_dir, running) = start().await;
    let places = &running.app().followers.reading;
    let addresses = MAX_READING / MAX_READING_PER_ADDRESS;
    let held: Vec<_> = (0..MAX_READING_PER_ADDRESS).map(|_| places.try_take(at(0)).unwrap()).collect();
    assert!(places.try_take(at(0)).is_err(), "its address has all that it can have");
    let others = (0..MAX_READING - MAX_READING_PER_ADDRESS).map(|number| at(1 + number % (addresses - 1)));
    let others: Vec<_> = others.map(|claimant| places.try_take(claimant).unwrap()).collect();
    assert_eq!(places.held(), MAX_READING);
    assert!(places.try_take(at(200)).is_err(), "none of them is slow yet");
    drop((held, others));
    assert!(places.is_empty());
}
