//! Which connections go when there are too many.

use std::{net::IpAddr, sync::Arc, time::Duration, time::Instant};

use axum::http::Method;
use countersign_server::limits::connections::{Admitted, ConnectionLimits, Connections};

const MAX_LARGE_HEADS: usize = 1_024;

const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
const THERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED));

fn connections(total: usize, per_address: usize) -> Arc<Connections> {
    Arc::new(Connections::new(ConnectionLimits { total, per_address: Some(per_address) }))
}

/// One connection after the other, each a second later.
fn admit_many(connections: &Arc<Connections>, address: Option<IpAddr>, count: u64) -> Vec<Admitted> {
    countersign_store::machine::clock::uptime_nanos(Instant::now());
    let start = Instant::now();
    (0..count).map(|n| connections.admit(address, start + Duration::from_secs(n)).unwrap()).collect()
}

#[test]
fn one_who_comes_takes_the_place_of_the_one_that_waited_longest() {
    let connections = connections(100, 4);
    let held = admit_many(&connections, HERE, 4);
    // The first has just sent a request, and waits for the next one.
    held[0].client_wait.begin(&Method::GET, Instant::now() + Duration::from_secs(60));
    drop(held[0].client_wait.pause());
    let new = connections.admit(HERE, Instant::now() + Duration::from_secs(60)).unwrap();
    let open: Vec<_> = held.iter().chain([&new]).map(|held| !held.client_wait.has_to_go()).collect();
    assert_eq!(open, [true, false, true, true, true]);
    assert_eq!(connections.permits.held(), 4);
}

#[test]
fn an_address_takes_no_places_of_another_one() {
    let connections = connections(100, 4);
    let honest = admit_many(&connections, THERE, 4);
    let others = admit_many(&connections, HERE, 50);
    assert!(honest.iter().all(|held| !held.client_wait.has_to_go()));
    assert_eq!(others.iter().filter(|held| !held.client_wait.has_to_go()).count(), 4);
}

#[test]
fn proxies_are_counted_in_the_total_only() {
    let connections = connections(20, 4);
    let held = admit_many(&connections, None, 25);
    let open: Vec<_> = held.iter().map(|held| !held.client_wait.has_to_go()).collect();
    assert_eq!(open.iter().filter(|open| **open).count(), 20);
    assert!(open[5..].iter().all(|open| *open), "the oldest went");
}

#[test]
fn a_connection_at_work_keeps_its_place() {
    let connections = connections(100, 2);
    let held = admit_many(&connections, HERE, 2);
    held.iter().for_each(|held| held.client_wait.begin(&Method::GET, Instant::now()));
    let working: Vec<_> = held.iter().map(|held| held.client_wait.pause()).collect();
    assert!(connections.admit(HERE, Instant::now()).is_none());
    assert_eq!(connections.permits.refused.get(), 1);
    // Waiting for a body is not work.
    let body = held[1].client_wait.await_body();
    let new = connections.admit(HERE, Instant::now()).unwrap();
    assert!(!held[0].client_wait.has_to_go() && held[1].client_wait.has_to_go());
    drop((body, working, new));
}

#[test]
fn only_so_many_wait_with_large_heads() {
    let connections = connections(8_192, 8_192);
    let held = admit_many(&connections, HERE, 2 * MAX_LARGE_HEADS as u64 + 1);
    let grow = |held: &Admitted| {
        held.client_wait.grow_head();
        connections.admit_large_head()
    };
    let (first, others) = held.split_at(MAX_LARGE_HEADS);
    let mut large: Vec<_> = first.iter().map(|held| grow(held).unwrap()).collect();
    assert!(held.iter().all(|held| !held.client_wait.has_to_go()), "the last that is let in");
    large.push(grow(&others[0]).unwrap());
    let (gone, kept) = held.split_at(MAX_LARGE_HEADS / 32);
    assert!(gone.iter().all(|held| held.client_wait.has_to_go()), "the oldest go");
    assert!(kept.iter().all(|held| !held.client_wait.has_to_go()));
    // None of them has closed yet.
    large.extend(others[1..MAX_LARGE_HEADS].iter().map(|held| grow(held).unwrap()));
    assert!(grow(&others[MAX_LARGE_HEADS]).is_none());
    large.pop();
    assert!(grow(&others[MAX_LARGE_HEADS]).is_some());
    drop(large);
    let again: Vec<_> = (0..2 * MAX_LARGE_HEADS).map(|_| connections.admit_large_head().unwrap()).collect();
    assert!(connections.admit_large_head().is_none(), "{}", again.len());
}

#[test]
fn places_are_given_back() {
    let connections = connections(100, 4);
    for _ in 0..3 {
        let held = admit_many(&connections, HERE, 4);
        assert!(held.iter().all(|held| !held.client_wait.has_to_go()));
    }
    assert!(connections.permits.is_empty());
    assert_eq!(connections.accepted.get(), 12);
}

#[test]
fn there_are_no_more_connections_than_files() {
    let limits = ConnectionLimits { total: 8_192, per_address: Some(2_048) };
    assert_eq!(limits.within_file_limit(None), limits);
    assert_eq!(limits.within_file_limit(Some(20_000)), limits);
    let few = limits.within_file_limit(Some(1_024));
    assert_eq!(few, ConnectionLimits { total: 512, per_address: Some(256) });
}
