//! How often an address and a key can ask.

use std::{net::IpAddr, sync::Arc, time::Duration, time::Instant};

use countersign_core::values::key::PublicKey;
use countersign_server::limits::{Limit, Limited, Limiter, Rates};
use countersign_store::{budget::Rate, machine::clock::uptime_nanos};

const SECOND: Duration = Duration::from_secs(1);

fn limiter() -> Arc<Limiter> {
    limiter_of(10, 2 * SECOND)
}

/// A limiter that lets an address ask so often in a second, and what it can ask in `burst` at once.
pub(super) fn limiter_of(per_second: u64, burst: Duration) -> Arc<Limiter> {
    // Starts the clock before the test reads it.
    uptime_nanos(Instant::now());
    Arc::new(Limiter::new(Rates {
        address: Rate::new(per_second, SECOND, per_second * burst.as_secs()),
        address_authenticated: Rate::new(1, SECOND, 3),
        key: Rate::new(1, SECOND, 2),
        key_fetches: Rate::new(1, 60 * SECOND, 1),
        address_fetches: Rate::new(1, 60 * SECOND, 3),
    }))
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn key(n: u8) -> PublicKey {
    countersign_testing::key(n).public_key()
}

#[test]
fn each_address_has_its_own_allowance_and_a_network_of_ipv6_one() {
    let (limiter, now) = (limiter(), Instant::now());
    let first = limiter.client(address("192.0.2.1"));
    for _ in 0..20 {
        first.charge_request(now).unwrap();
    }
    assert!(first.charge_request(now).is_err());
    assert!(limiter.client(address("192.0.2.1")).charge_request(now).is_err(), "another connection");
    assert!(limiter.client(address("::ffff:192.0.2.1")).charge_request(now).is_err(), "the same address");
    limiter.client(address("192.0.2.2")).charge_request(now).unwrap();

    let subscriber = limiter.client(address("2001:db8:1:2::1"));
    for _ in 0..20 {
        subscriber.charge_request(now).unwrap();
    }
    assert!(limiter.client(address("2001:db8:1:2:ffff::9")).charge_request(now).is_err());
    limiter.client(address("2001:db8:1:3::1")).charge_request(now).unwrap();
    assert_eq!(limiter.refusals(Limit::Address), 4);
}

#[test]
fn each_key_has_its_own_allowance_wherever_it_asks_from() {
    let (limiter, now) = (limiter(), Instant::now());
    let (here, there) = (limiter.client(address("192.0.2.1")), limiter.client(address("192.0.2.2")));
    here.charge_key(&key(1), now).unwrap();
    there.charge_key(&key(1), now).unwrap();
    let limited = here.charge_key(&key(1), now).unwrap_err();
    assert_eq!(limited, Limited { limit: Limit::Key, seconds: 1 });
    assert_eq!(limited.to_string(), "too many requests of this key: try again in 1 s");
    here.charge_key(&key(2), now).unwrap();
    here.charge_key(&key(1), now + SECOND).unwrap();
}

#[test]
fn the_wait_is_told_in_whole_seconds_rounded_up() {
    let (limiter, now) = (limiter(), Instant::now());
    let client = limiter.client(address("192.0.2.1"));
    client.charge_fetch(&key(1), now).unwrap();
    assert_eq!(client.charge_fetch(&key(1), now).unwrap_err().seconds, 60);
    assert_eq!(client.charge_fetch(&key(1), now + SECOND / 2).unwrap_err().seconds, 60);
    assert_eq!(client.charge_fetch(&key(1), now + 59 * SECOND).unwrap_err().seconds, 1);
    client.charge_fetch(&key(1), now + 60 * SECOND).unwrap();
}

#[test]
fn new_keys_bring_an_address_only_so_many_fetches() {
    let (limiter, now) = (limiter(), Instant::now());
    let client = limiter.client(address("192.0.2.1"));
    for seed in 1..=3 {
        client.charge_fetch(&key(seed), now).unwrap();
    }
    assert_eq!(client.charge_fetch(&key(4), now).unwrap_err().limit, Limit::AddressFetches);
    limiter.client(address("192.0.2.2")).charge_fetch(&key(5), now).unwrap();
}

#[test]
fn one_key_and_one_address_have_a_part_of_the_fetches_only() {
    let limiter = limiter();
    let client = limiter.client(address("192.0.2.1"));
    let mut held: Vec<_> = (0..8).map(|_| client.share_fetching(&key(1)).unwrap()).collect();
    assert_eq!(client.share_fetching(&key(1)).unwrap_err().limit, Limit::KeyFetching);
    held.extend((0..8).map(|_| client.share_fetching(&key(2)).unwrap()));
    assert_eq!(client.share_fetching(&key(3)).unwrap_err().limit, Limit::AddressFetching);
    limiter.client(address("192.0.2.2")).share_fetching(&key(3)).unwrap();
    held.pop();
    client.share_fetching(&key(3)).unwrap();
}

#[test]
fn an_address_has_a_part_of_the_room_for_large_answers_and_one_answer_always_fits() {
    let limiter = limiter();
    let client = limiter.client(address("192.0.2.1"));
    let held: Vec<_> = (0..16).map(|_| client.share_sending((32 << 20) / 16).unwrap()).collect();
    let refused = client.share_sending(1).unwrap_err();
    assert_eq!((refused.limit, refused.seconds), (Limit::AddressSending, 1));
    limiter.client(address("192.0.2.2")).share_sending(1).unwrap();
    drop(held);
    let largest = client.share_sending(usize::MAX).unwrap();
    assert!(client.share_sending(1).is_err());
    drop(largest);
    client.share_sending(1).unwrap();
}

#[test]
fn strangers_without_number_are_forgotten_not_collected() {
    let (limiter, now) = (limiter(), Instant::now());
    for n in 0..2 * 65_536_u32 {
        limiter.client(IpAddr::V4(n.into())).charge_request(now).unwrap();
    }
    assert!(limiter.known_addresses() <= 65_536);
}
