//! How often an address and a key can ask. A client that asks more often gets 429 and a time to come back.
//!
//! The server charges an address before any work. It charges a key once a request is known to be signed by it and new,
//! so that a stranger cannot use up its allowance. Allowances exist for a bounded number of addresses and keys; a
//! forgotten one starts anew.

pub mod caps;
pub mod places;
mod share;

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use countersign_core::values::key::PublicKey;
use quick_cache::sync::Cache;
use thiserror::Error;

use self::share::{Count, Held};
use countersign_store::bucket::{Bucket, Rate, find_or_make};
use countersign_store::clock::uptime_nanos;

const MAX_ADDRESSES: usize = 65_536;
const MAX_KEYS: usize = 16_384;
/// Requests of one key, and from one address, that can fetch at the same time (`upstream`).
const FETCHING_PER_KEY: u32 = 8;
const FETCHING_PER_ADDRESS: u32 = 16;
/// Bytes of large answers on their way to one address (`sending`).
const SENDING_PER_ADDRESS: u32 = 32 << 20;
/// Listeners to events at one address.
const LISTENING_PER_ADDRESS: u32 = 1_024;

/// What the operator allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// All requests from an address.
    pub address: Rate,
    /// Requests from an address that need authentication.
    pub address_authenticated: Rate,
    /// Authenticated requests of a key.
    pub key: Rate,
    /// Requests of a key that make the server fetch.
    pub key_fetches: Rate,
    /// The same for all keys at an address, since new keys cost nothing.
    pub address_fetches: Rate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Address,
    AddressAuthenticated,
    AddressFetches,
    AddressFetching,
    AddressListening,
    AddressSending,
    Key,
    KeyFetches,
    KeyFetching,
}

impl Limit {
    pub const ALL: [Self; 9] = [
        Self::Address,
        Self::AddressAuthenticated,
        Self::AddressFetches,
        Self::AddressFetching,
        Self::AddressListening,
        Self::AddressSending,
        Self::Key,
        Self::KeyFetches,
        Self::KeyFetching,
    ];

    fn describe(self) -> &'static str {
        match self {
            Self::Address => "too many requests from this address",
            Self::AddressAuthenticated => "too many signed requests from this address",
            Self::AddressFetches => "too many requests from this address for which the server fetches",
            Self::AddressFetching => "too many requests from this address fetch at the same time",
            Self::AddressListening => "too many listeners to events at this address",
            Self::AddressSending => "too many large answers are on their way to this address",
            Self::Key => "too many requests of this key",
            Self::KeyFetches => "too many requests of this key for which the server fetches",
            Self::KeyFetching => "too many requests of this key fetch at the same time",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{}: try again in {} s", .limit.describe(), .seconds)]
pub struct Limited {
    pub limit: Limit,
    /// The time to wait, rounded up.
    pub seconds: u64,
}

#[derive(Debug)]
pub struct Limiter {
    rates: Rates,
    addresses: Cache<IpAddr, Arc<Address>>,
    keys: Cache<PublicKey, Arc<Key>>,
    refused: [AtomicU64; Limit::ALL.len()],
}

#[derive(Debug, Default)]
struct Address {
    requests: Bucket,
    authenticated: Bucket,
    fetches: Bucket,
    fetching: Arc<Count>,
    listening: Arc<Count>,
    sending: Arc<Count>,
}

#[derive(Debug, Default)]
struct Key {
    requests: Bucket,
    fetches: Bucket,
    fetching: Arc<Count>,
}

/// The client, as the limits see it.
#[derive(Debug, Clone)]
pub struct MeteredClient {
    limiter: Arc<Limiter>,
    /// Counts as one address.
    pub(crate) network: IpAddr,
    address: Arc<Address>,
}

/// A request's share of what its key and its address can fetch at the same time. Dropping it gives it back.
#[derive(Debug)]
pub struct FetchShare {
    _held: [Held; 2],
}

/// One of the listeners to events at an address. Dropping it gives the place back.
#[derive(Debug)]
pub struct ListenShare(#[expect(dead_code, reason = "held for its end")] Held);

/// The bytes of an answer on its way to an address. Dropping it gives them back.
#[derive(Debug)]
pub struct SendShare(#[expect(dead_code, reason = "held for its end")] Held);

impl Limiter {
    pub fn new(rates: Rates) -> Self {
        Self {
            rates,
            addresses: Cache::new(MAX_ADDRESSES),
            keys: Cache::new(MAX_KEYS),
            refused: Default::default(),
        }
    }

    /// Looked up once for each connection. Behind a proxy, once for each request.
    pub fn client(self: &Arc<Self>, address: IpAddr) -> MeteredClient {
        let network = network_of(address);
        let address = find_or_make(&self.addresses, network);
        MeteredClient { limiter: Arc::clone(self), network, address }
    }

    /// How often requests met this limit since the start.
    pub fn refusals(&self, limit: Limit) -> u64 {
        self.refused[limit as usize].load(Ordering::Relaxed)
    }

    fn refuse(&self, limit: Limit, wait: Duration) -> Limited {
        self.refused[limit as usize].fetch_add(1, Ordering::Relaxed);
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Limited { limit, seconds: seconds.max(1) }
    }
}

impl MeteredClient {
    pub fn charge_request(&self, now: Instant) -> Result<(), Limited> {
        self.charge(&self.address.requests, self.limiter.rates.address, Limit::Address, now)
    }

    pub fn charge_authenticated(&self, now: Instant) -> Result<(), Limited> {
        let rate = self.limiter.rates.address_authenticated;
        self.charge(&self.address.authenticated, rate, Limit::AddressAuthenticated, now)
    }

    /// For a new request that `key` has signed.
    pub fn charge_key(&self, key: &PublicKey, now: Instant) -> Result<(), Limited> {
        let key = find_or_make(&self.limiter.keys, *key);
        self.charge(&key.requests, self.limiter.rates.key, Limit::Key, now)
    }

    /// For a request of `key` that makes the server fetch.
    pub fn charge_fetch(&self, key: &PublicKey, now: Instant) -> Result<(), Limited> {
        let (key, rates) = (find_or_make(&self.limiter.keys, *key), self.limiter.rates);
        self.charge(&key.fetches, rates.key_fetches, Limit::KeyFetches, now)?;
        self.charge(&self.address.fetches, rates.address_fetches, Limit::AddressFetches, now)
    }

    /// Prevents one key or one address from taking all turns to fetch.
    pub fn share_fetching(&self, key: &PublicKey) -> Result<FetchShare, Limited> {
        let key = find_or_make(&self.limiter.keys, *key);
        let take = |count: &Arc<Count>, most, limit| {
            let held = count.hold(most);
            held.ok_or_else(|| self.limiter.refuse(limit, Duration::from_secs(1)))
        };
        let own = take(&key.fetching, FETCHING_PER_KEY, Limit::KeyFetching)?;
        let shared = take(&self.address.fetching, FETCHING_PER_ADDRESS, Limit::AddressFetching)?;
        Ok(FetchShare { _held: [own, shared] })
    }

    pub fn share_listening(&self) -> Result<ListenShare, Limited> {
        let held = self.address.listening.hold(LISTENING_PER_ADDRESS).map(ListenShare);
        held.ok_or_else(|| self.limiter.refuse(Limit::AddressListening, Duration::from_secs(1)))
    }

    /// Room for an answer of so many bytes. An answer larger than the share of an address takes all of it.
    pub fn share_sending(&self, bytes: usize) -> Result<SendShare, Limited> {
        let bytes = u32::try_from(bytes).map_or(SENDING_PER_ADDRESS, |bytes| bytes.min(SENDING_PER_ADDRESS));
        let held = self.address.sending.hold_many(bytes, SENDING_PER_ADDRESS).map(SendShare);
        held.ok_or_else(|| self.limiter.refuse(Limit::AddressSending, Duration::from_secs(1)))
    }

    fn charge(&self, bucket: &Bucket, rate: Rate, limit: Limit, now: Instant) -> Result<(), Limited> {
        bucket.take(rate, uptime_nanos(now)).map_err(|wait| self.limiter.refuse(limit, wait))
    }
}

/// Counts as one address. An IPv6 network of one client has 2⁶⁴ addresses.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use countersign_core::values::key::SecretKey;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limiter() -> Arc<Limiter> {
        // Starts the clock before the test reads it.
        uptime_nanos(Instant::now());
        Arc::new(Limiter::new(Rates {
            address: Rate::new(10, SECOND, 20),
            address_authenticated: Rate::new(1, SECOND, 3),
            key: Rate::new(1, SECOND, 2),
            key_fetches: Rate::new(1, 60 * SECOND, 1),
            address_fetches: Rate::new(1, 60 * SECOND, 3),
        }))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn key(seed: u8) -> PublicKey {
        SecretKey::from_seed(&[seed; 32]).public_key()
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
        let mut held: Vec<_> =
            (0..FETCHING_PER_KEY).map(|_| client.share_fetching(&key(1)).unwrap()).collect();
        assert_eq!(client.share_fetching(&key(1)).unwrap_err().limit, Limit::KeyFetching);
        held.extend((0..FETCHING_PER_KEY).map(|_| client.share_fetching(&key(2)).unwrap()));
        assert_eq!(client.share_fetching(&key(3)).unwrap_err().limit, Limit::AddressFetching);
        limiter.client(address("192.0.2.2")).share_fetching(&key(3)).unwrap();
        held.pop();
        client.share_fetching(&key(3)).unwrap();
    }

    #[test]
    fn an_address_has_a_part_of_the_room_for_large_answers_and_one_answer_always_fits() {
        let limiter = limiter();
        let client = limiter.client(address("192.0.2.1"));
        let held: Vec<_> =
            (0..16).map(|_| client.share_sending(SENDING_PER_ADDRESS as usize / 16).unwrap()).collect();
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
        for n in 0..MAX_ADDRESSES as u32 * 2 {
            limiter.client(IpAddr::V4(n.into())).charge_request(now).unwrap();
        }
        assert!(limiter.addresses.len() <= MAX_ADDRESSES);
    }
}
