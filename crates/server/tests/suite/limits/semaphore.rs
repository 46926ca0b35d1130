//! Permits that many want and few can have.

use std::{net::IpAddr, sync::Arc, time::Duration};

use countersign_core::values::{key::PublicKey, path::RepoPath};
use countersign_server::limits::semaphore::{
    BETWEEN_LOOKS, Claimant, FairSemaphore, GaveWay, MinimumPace, NoPermit, Permit, SemaphoreRules,
};
use futures_util::FutureExt as _;
use tokio::time::Instant;

const PACE: MinimumPace = MinimumPace { bytes_per_second: 1_000, after: Duration::ZERO };

const RULES: SemaphoreRules = SemaphoreRules {
    total: 8,
    share: 4,
    strangers: 4,
    waiting: 4,
    max_wait: Duration::from_secs(10),
    grace: Some(Duration::ZERO),
    pace: None,
};

fn at(n: u8) -> Claimant {
    Claimant::at(Some(IpAddr::from([192, 0, 2, n])))
}

fn key(n: u8) -> PublicKey {
    countersign_testing::key(n).public_key()
}

fn project(name: &str) -> RepoPath {
    RepoPath::parse(&format!("https/github.com/443/{name}/app")).unwrap()
}

fn has_lost(place: &Permit) -> bool {
    place.lost().now_or_never().is_some()
}

fn take(places: &Arc<FairSemaphore>, claimant: Claimant, count: usize) -> Vec<Permit> {
    (0..count).map(|_| places.try_take(claimant.clone()).unwrap()).collect()
}

#[test]
fn an_address_a_project_and_a_key_each_get_their_share_and_no_more() {
    for claimant in [at(1), at(9).with_key(&key(1)), at(9).with_project(&project("acme"))] {
        let places = FairSemaphore::new(SemaphoreRules { waiting: 0, ..RULES });
        let held = take(&places, claimant.clone(), 4);
        assert_eq!(places.try_take(claimant.clone()).unwrap_err(), NoPermit);
        assert!(!held.iter().any(has_lost), "its own places do not make room for it");
        take(&places, at(2), 4);
        drop(held);
        take(&places, claimant, 4);
        assert_eq!((places.refused.get(), places.gave_way()), (1, 0));
        assert!(places.is_empty());
    }
}

#[test]
fn one_key_at_many_addresses_has_one_share() {
    let places = FairSemaphore::new(SemaphoreRules { waiting: 0, ..RULES });
    let _held: Vec<_> = (0..4).map(|n| places.try_take(at(n).with_key(&key(1))).unwrap()).collect();
    places.try_take(at(5).with_key(&key(1))).unwrap_err();
    places.try_take(at(5).with_key(&key(2))).unwrap();
}

/// Four addresses with any number of keys hold everything. A newcomer that holds nothing still gets in.
#[test]
fn a_newcomer_takes_a_place_from_those_who_hold_most_until_it_holds_as_many() {
    let places = FairSemaphore::new(SemaphoreRules { total: 64, share: 32, ..RULES });
    let mut crowd = Vec::new();
    for n in 0..64 {
        crowd.push(places.try_take(at(n % 4).with_key(&key(n))).unwrap());
    }
    let honest = take(&places, at(9).with_key(&key(99)), 12);
    assert!(!honest.iter().any(has_lost));
    // Then 13 each, and 12.
    places.try_take(at(9).with_key(&key(99))).unwrap_err();
    assert_eq!((places.held(), places.gave_way()), (64, 12));
    let lost: Vec<_> = crowd.iter().map(has_lost).collect();
    assert!(lost[..12].iter().all(|lost| *lost), "the oldest of each went: {lost:?}");
    assert!(!lost[12..].iter().any(|lost| *lost), "{lost:?}");
    // Holders that lost a place get none back while others hold as many.
    places.try_take(at(0).with_key(&key(200))).unwrap_err();
    assert!(!honest.iter().any(has_lost));
}

#[test]
fn those_who_hold_one_each_keep_it() {
    let places = FairSemaphore::new(SemaphoreRules { waiting: 0, ..RULES });
    let held: Vec<_> = (0..8).map(|n| places.try_take(at(n)).unwrap()).collect();
    places.try_take(at(9)).unwrap_err();
    assert!(!held.iter().any(has_lost));
}

#[test]
fn signers_find_a_place_whatever_strangers_hold() {
    let places = FairSemaphore::new(SemaphoreRules { waiting: 0, ..RULES });
    let strangers: Vec<_> = (0..4).map(|n| places.try_take(at(n).as_stranger()).unwrap()).collect();
    places.try_take(at(5).as_stranger()).unwrap_err();
    let _signer = take(&places, at(6).with_project(&project("acme")), 4);
    assert!(!strangers.iter().any(has_lost));
}

#[test]
fn a_stranger_takes_its_place_from_strangers_alone() {
    let places = FairSemaphore::new(SemaphoreRules { waiting: 0, ..RULES });
    let signer = take(&places, at(6).with_project(&project("acme")), 4);
    let strangers = take(&places, at(1).as_stranger(), 4);
    let newcomer = places.try_take(at(2).as_stranger()).unwrap();
    assert_eq!(strangers.iter().filter(|place| has_lost(place)).count(), 1);
    assert!(!signer.iter().any(has_lost) && !has_lost(&newcomer));
}

#[tokio::test(start_paused = true)]
async fn a_place_is_kept_for_a_while_and_taken_then() {
    let grace = Duration::from_secs(3);
    let places = FairSemaphore::new(SemaphoreRules { grace: Some(grace), ..RULES });
    let held = [take(&places, at(1), 4), take(&places, at(2), 4)].into_iter().flatten().collect::<Vec<_>>();
    places.try_take(at(3)).unwrap_err();
    let began = Instant::now();
    let place = places.take(at(3)).await.unwrap();
    assert!((grace..grace + BETWEEN_LOOKS).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert!(has_lost(&held[0]) && !held[1..].iter().any(has_lost));
    let kept = place.keep(async { 7 }).await;
    assert_eq!(kept, Ok(7));
    assert_eq!(held[0].keep(std::future::pending::<()>()).await, Err(GaveWay));
}

#[tokio::test(start_paused = true)]
async fn the_slow_lose_their_places_first_and_only_when_others_want_them() {
    let grace = Duration::from_secs(2);
    let rules = SemaphoreRules { grace: Some(grace), pace: Some(PACE), waiting: 0, ..RULES };
    let places = FairSemaphore::new(rules);
    let held: Vec<_> = (0..8).map(|n| places.try_take(at(n)).unwrap()).collect();
    tokio::time::advance(grace * 2).await;
    for (n, place) in held.iter().enumerate() {
        // Exactly the minimum pace is enough; a byte less is not.
        place.meter().add(if n == 5 { 3_999 } else { 4_000 });
    }
    assert!(!held.iter().any(has_lost));
    let newcomer = places.try_take(at(9)).unwrap();
    assert_eq!(held.iter().position(has_lost), Some(5));
    places.try_take(at(10)).unwrap_err();
    assert!(!has_lost(&newcomer));
}

#[tokio::test(start_paused = true)]
async fn time_that_the_server_takes_makes_no_holder_slow() {
    let grace = Duration::from_secs(2);
    let places =
        FairSemaphore::new(SemaphoreRules { grace: Some(grace), pace: Some(PACE), waiting: 0, ..RULES });
    let held: Vec<_> = (0..8).map(|n| places.try_take(at(n)).unwrap()).collect();
    let is_taken = || places.try_take(at(9)).is_ok();
    let read = |place: usize| held[place].keep_waiting(tokio::time::sleep(grace * 3));
    {
        let mut reads: Vec<_> = (0..8).map(|place| Box::pin(read(place))).collect();
        assert!(reads.iter_mut().all(|reading| reading.as_mut().now_or_never().is_none()));
        tokio::time::advance(grace * 2).await;
        assert!(!is_taken(), "the server still reads for all of them");
        // Reading that is given up counts like reading that ends.
        reads.truncate(4);
        tokio::time::advance(grace / 2).await;
        assert!(!is_taken(), "four had half of their time");
        for reading in reads {
            reading.await.unwrap();
        }
    }
    // The last four had their time, the first four have it still.
    assert!(is_taken());
    assert_eq!(held.iter().position(has_lost), Some(4));
    assert!(!held[..4].iter().any(has_lost));
}

#[tokio::test(start_paused = true)]
async fn without_addresses_the_slow_make_room_too() {
    let rules = SemaphoreRules { grace: Some(Duration::from_secs(2)), pace: Some(PACE), waiting: 0, ..RULES };
    let places = FairSemaphore::new(rules);
    let held = take(&places, Claimant::default(), 8);
    places.try_take(Claimant::default()).unwrap_err();
    tokio::time::advance(Duration::from_secs(2)).await;
    places.try_take(Claimant::default()).unwrap();
    assert!(has_lost(&held[0]) && !held[1..].iter().any(has_lost));
}

#[tokio::test(start_paused = true)]
async fn of_those_who_wait_the_one_that_holds_least_is_next_whenever_it_came() {
    let places = FairSemaphore::new(SemaphoreRules { total: 2, share: 2, grace: None, ..RULES });
    let mut held = take(&places, at(1), 2);
    let mut crowd: Vec<_> = (0..3).map(|_| Box::pin(places.take(at(1)))).collect();
    assert!(crowd.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
    let mut honest = Box::pin(places.take(at(2)));
    assert!(honest.as_mut().now_or_never().is_none());
    assert_eq!(places.waiting(), 4);
    held.pop();
    let place = honest.as_mut().now_or_never().unwrap().unwrap();
    assert!(crowd.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
    drop(place);
    assert!(crowd[0].as_mut().now_or_never().unwrap().is_ok());
}

/// Waiters come in turns also if there is one place: every claimant holds nothing whenever it becomes free.
#[tokio::test(start_paused = true)]
async fn addresses_that_wait_take_turns() {
    let places = FairSemaphore::new(SemaphoreRules { total: 1, share: 1, waiting: 20, grace: None, ..RULES });
    let first = places.try_take(at(1)).unwrap();
    let wait = |n: u8| {
        let places = Arc::clone(&places);
        let mut waiting = Box::pin(async move { places.take(at(n)).await });
        assert!(waiting.as_mut().now_or_never().is_none());
        (n, waiting)
    };
    let mut waiting: Vec<_> = [1, 1, 1, 2, 2, 3].into_iter().map(wait).collect();
    let mut served = Vec::new();
    drop(first);
    while !waiting.is_empty() {
        let ready = waiting
            .iter_mut()
            .enumerate()
            .find_map(|(i, (_, waiting))| Some((i, waiting.as_mut().now_or_never()?)));
        let (i, place) = ready.expect("someone is next");
        served.push(waiting.remove(i).0);
        drop(place.unwrap());
    }
    assert_eq!(served, [2, 3, 1, 2, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_wait_and_the_crowd_makes_room_among_those_too() {
    let places = FairSemaphore::new(SemaphoreRules { grace: None, ..RULES });
    let _held = [take(&places, at(1), 4), take(&places, at(2), 4)].into_iter().flatten().collect::<Vec<_>>();
    let mut crowd: Vec<_> = (0..4).map(|_| Box::pin(places.take(at(1)))).collect();
    assert!(crowd.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
    assert_eq!(places.take(at(1)).now_or_never().unwrap().unwrap_err(), NoPermit);
    let mut honest = Box::pin(places.take(at(3)));
    assert!(honest.as_mut().now_or_never().is_none(), "it waits");
    assert_eq!(places.waiting(), 4);
    assert_eq!(crowd[3].as_mut().now_or_never().unwrap().unwrap_err(), NoPermit);
    let began = Instant::now();
    assert_eq!(honest.await.unwrap_err(), NoPermit);
    assert_eq!(began.elapsed(), RULES.max_wait);
}

#[tokio::test(start_paused = true)]
async fn one_who_leaves_while_waiting_leaves_nothing_behind() {
    let places = FairSemaphore::new(RULES);
    let held: Vec<_> = (0..8).map(|n| places.try_take(at(n)).unwrap()).collect();
    let mut waiting = Box::pin(places.take(at(9).with_key(&key(1)).as_stranger()));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(waiting);
    drop(held);
    assert!(places.is_empty());
}

/// Else those who want little would hold up one who wants much for ever.
#[tokio::test(start_paused = true)]
async fn one_who_wants_many_is_not_passed_over() {
    let places = FairSemaphore::new(SemaphoreRules { share: 8, grace: None, ..RULES });
    let mut held: Vec<_> = (1..=2).map(|n| places.try_take_many(at(n), 3).unwrap()).collect();
    places.try_take_many(at(3), 3).unwrap_err();
    let mut large = Box::pin(places.take_within(at(3), 5, RULES.max_wait));
    assert!(large.as_mut().now_or_never().is_none());
    let mut small = Box::pin(places.take(at(4)));
    assert!(small.as_mut().now_or_never().is_none(), "there is room for it, but it is not next");
    held.pop();
    let large = large.as_mut().now_or_never().unwrap().unwrap();
    assert_eq!((places.held(), places.waiting()), (8, 1));
    drop(large);
    assert!(small.as_mut().now_or_never().unwrap().is_ok());
    drop(small);
    drop(held);
    assert!(places.is_empty());
}
