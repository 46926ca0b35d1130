//! One listener, and what it is sent.

use std::{sync::Arc, time::Duration};

use countersign_core::{rules::snapshot::Change, values::path::RepoPath};
use countersign_server::api::state::App;
use countersign_server::events::{EventSource, HEARTBEAT, ListenRequest, Listener};
use countersign_server::limits::connections::RequestSender;
use countersign_store::journal::recent_commits::KEPT;
use tokio::time::{Instant, timeout};

use crate::support::{INDEX, commit, start};

fn source_of(app: &App) -> EventSource {
    EventSource {
        store: Arc::clone(&app.store),
        events: Arc::clone(&app.events),
        is_stopping: app.stopping(),
    }
}

async fn listen(app: &App, query: &str) -> Listener {
    let request = ListenRequest::parse(query, &Default::default()).unwrap();
    let mut listener = Listener::start(source_of(app), request, &RequestSender::default()).await.unwrap();
    let first = next(&mut listener).await;
    assert!(first.starts_with(": ") && first.contains("\nretry: 2000\nid: "), "{first}");
    listener
}

async fn next(listener: &mut Listener) -> String {
    String::from_utf8(listener.next().await.unwrap().to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_sign_of_life_says_how_far_was_looked_and_is_no_event() {
    let (_dir, running) = start().await;
    let mut listener = listen(running.app(), "type=dropped").await;
    let first = running.app().store.head().commit.to_string();
    for _ in 0..3 {
        let asked = Instant::now();
        assert_eq!(next(&mut listener).await, format!(": nothing new\nid: {first}\n\n"));
        assert_eq!(asked.elapsed(), HEARTBEAT);
    }
    // The listener did not get this one, and must not get it after a reconnect either.
    let newest = commit(running.app(), &format!("Add {INDEX}")).await;
    assert_eq!(next(&mut listener).await, format!(": nothing new\nid: {newest}\n\n"));
    drop(listener);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_happens_to_others_all_the_time_does_not_keep_a_sign_of_life_away() {
    let (_dir, running) = start().await;
    let mut listener = listen(running.app(), "prefix=https/elsewhere.example.org").await;
    let asked = Instant::now();
    let app = running.app().clone();
    let busy = tokio::spawn(async move {
        loop {
            commit(&app, &format!("Add {INDEX}")).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    assert!(next(&mut listener).await.starts_with(": nothing new\nid: "));
    assert!(asked.elapsed() < 2 * HEARTBEAT, "{:?}", asked.elapsed());
    busy.abort();
    assert!(busy.await.unwrap_err().is_cancelled());
    drop(listener);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_first_event_is_told_at_once_and_those_that_follow_it_together() {
    let (_dir, running) = start().await;
    let app = running.app();
    let mut listener = listen(app, "").await;
    let others: Vec<_> = futures_util::future::join_all((0..500).map(|_| listen(app, "type=dropped"))).await;
    tokio::time::sleep(HEARTBEAT / 2).await;
    let quiet = Instant::now();
    commit(app, &format!("Add {INDEX}")).await;
    assert_eq!(next(&mut listener).await.matches("data: ").count(), 1);
    assert_eq!(quiet.elapsed(), Duration::ZERO);
    for _ in 0..5 {
        commit(app, &format!("Sign {INDEX}")).await;
    }
    assert_eq!(next(&mut listener).await.matches("data: ").count(), 5);
    let rested = quiet.elapsed();
    assert!(rested > Duration::from_millis(300) && rested < Duration::from_secs(1), "{rested:?}");
    drop((listener, others));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn much_is_told_in_pieces_and_nothing_twice() {
    let (_dir, running) = start().await;
    let app = running.app();
    let mut listener = listen(app, "").await;
    let title = format!("Sign and complete {INDEX}");
    let commits = futures_util::future::join_all((0..200).map(|_| commit(app, &title))).await.len();
    let (mut ids, mut events) = (Vec::new(), 0);
    while ids.len() < commits {
        let piece = next(&mut listener).await;
        assert!(piece.len() < 18 * 1024, "{}", piece.len());
        events += piece.matches("\ndata: ").count();
        ids.extend(piece.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned));
    }
    let commits = app.store.recent_commits().from(1, usize::MAX).unwrap();
    assert_eq!(ids, commits.iter().map(|commit| commit.id.to_string()).collect::<Vec<_>>());
    assert_eq!(events, 400);
    drop(listener);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_who_falls_behind_what_is_kept_is_let_go() {
    let (_dir, running) = start().await;
    let mut listener = listen(running.app(), "").await;
    let change = |n: usize| {
        let mut change = Change::new(format!("Add {INDEX}"));
        change.write(RepoPath::parse("notes/newest").unwrap(), n.to_string().into_bytes());
        running.app().store.transact(move |_, _| Ok::<_, ()>((change.clone(), ())))
    };
    // One more than is kept. The listener has not looked at the first of them.
    for n in (0..=KEPT).step_by(100) {
        let changed = futures_util::future::join_all((n..=KEPT.min(n + 99)).map(change)).await;
        assert!(changed.into_iter().all(|changed| changed.is_ok_and(|changed| changed.is_ok())));
    }
    assert_eq!(listener.next().await, None);
    drop(listener);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_listener_that_rests() {
    let (_dir, running) = start().await;
    let mut listener = listen(running.app(), "").await;
    commit(running.app(), &format!("Add {INDEX}")).await;
    next(&mut listener).await;
    let ending = tokio::spawn(async move { listener.next().await });
    timeout(Duration::from_secs(1), running.stop()).await.unwrap().unwrap();
    assert_eq!(ending.await.unwrap(), None);
}
