//! How often an address and a key can ask. A client that asks more often gets 429 and a time to come back.
//!
//! The server charges an address before any work. It charges a key once a request is known to be signed by it and new,
//! so that a stranger cannot use up its allowance. Allowances exist for a bounded number of addresses and keys; a
//! forgotten one starts anew.

pub mod client_wait;
pub mod connections;
pub mod semaphore;

use std::{net::IpAddr, net::Ipv6Addr, sync::Arc, time::Duration, time::Instant};

use countersign_core::values::key::PublicKey;
use countersign_store::{budget::Bucket, budget::Rate, budget::find_or_make, machine::clock::uptime_nanos};
use quick_cache::sync::Cache;
use thiserror::Error;

use crate::limits::semaphore::{Claimant, FairSemaphore, Permit, SemaphoreRules};
use crate::metrics::{Counter, named};

const MAX_ADDRESSES: usize = 65_536;
const MAX_KEYS: usize = 16_384;
/// Requests of one key, and from one address, that can fetch at the same time (`upstream`).
const FETCHING_PER_KEY: usize = 8;
const FETCHING_PER_ADDRESS: usize = 16;
/// Bytes of large answers on their way to one address (`sending`).
const SENDING_PER_ADDRESS: usize = 32 << 20;
/// Pages that are made for one address at the same time, or wait for it. A browser has six connections.
const PAGES_PER_ADDRESS: usize = 16;
/// Listeners to events at one address.
const LISTENING_PER_ADDRESS: usize = 1_024;

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
    /// Requests from an address, under any key, that make the server fetch. New keys cost nothing.
    pub address_fetches: Rate,
}

named! {
    pub enum Limit {
        Address = "address",
        AddressAuthenticated = "address_authenticated",
        AddressFetches = "address_fetches",
        AddressFetching = "address_fetching",
        AddressListening = "address_listening",
        AddressPages = "address_pages",
        AddressSending = "address_sending",
        Key = "key",
        KeyFetches = "key_fetches",
        KeyFetching = "key_fetching",
    }
}

impl Limit {
    fn describe(self) -> &'static str {
        match self {
            Self::Address => "too many requests from this address",
            Self::AddressAuthenticated => "too many signed requests from this address",
            Self::AddressFetches => "too many requests from this address for which the server fetches",
            Self::AddressFetching => "too many requests from this address fetch at the same time",
            Self::AddressListening => "too many listeners to events at this address",
            Self::AddressPages => "too many pages are being made for this address",
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
    refused: [Counter; Limit::ALL.len()],
    fetching_keys: Arc<FairSemaphore>,
    fetching_addresses: Arc<FairSemaphore>,
    listening: Arc<FairSemaphore>,
    pages: Arc<FairSemaphore>,
    sending: Arc<FairSemaphore>,
}

#[derive(Debug, Default)]
struct Address {
    requests: Bucket,
    authenticated: Bucket,
    fetches: Bucket,
}

#[derive(Debug, Default)]
struct Key {
    requests: Bucket,
    fetches: Bucket,
}

/// The client, as the limits see it.
#[derive(Debug, Clone)]
pub struct MeteredClient {
    limiter: Arc<Limiter>,
    /// The network that counts as one address.
    pub(crate) network: IpAddr,
    address: Arc<Address>,
}

impl Limiter {
    pub fn new(rates: Rates) -> Self {
        let each = |share| FairSemaphore::new(SemaphoreRules::each(share));
        Self {
            rates,
            addresses: Cache::new(MAX_ADDRESSES),
            keys: Cache::new(MAX_KEYS),
            refused: Default::default(),
            fetching_keys: each(FETCHING_PER_KEY),
            fetching_addresses: each(FETCHING_PER_ADDRESS),
            listening: each(LISTENING_PER_ADDRESS),
            pages: each(PAGES_PER_ADDRESS),
            sending: each(SENDING_PER_ADDRESS),
        }
    }

    /// Looked up once for each connection. Behind a proxy, once for each request.
    pub fn client(self: &Arc<Self>, address: IpAddr) -> MeteredClient {
        let network = network_of(address);
        let address = find_or_make(&self.addresses, network);
        MeteredClient { limiter: Arc::clone(self), network, address }
    }

    /// How many addresses are remembered.
    pub fn known_addresses(&self) -> usize {
        self.addresses.len()
    }

    /// How often requests met this limit since the start.
    pub fn refusals(&self, limit: Limit) -> u64 {
        self.refused[limit as usize].get()
    }

    fn refuse(&self, limit: Limit, wait: Duration) -> Limited {
        self.refused[limit as usize].add(1);
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

    /// Counts a new request that `key` has signed.
    pub fn charge_key(&self, key: &PublicKey, now: Instant) -> Result<(), Limited> {
        let key = find_or_make(&self.limiter.keys, *key);
        self.charge(&key.requests, self.limiter.rates.key, Limit::Key, now)
    }

    /// Counts a request of `key` that makes the server fetch.
    pub fn charge_fetch(&self, key: &PublicKey, now: Instant) -> Result<(), Limited> {
        let (key, rates) = (find_or_make(&self.limiter.keys, *key), self.limiter.rates);
        self.charge(&key.fetches, rates.key_fetches, Limit::KeyFetches, now)?;
        self.charge(&self.address.fetches, rates.address_fetches, Limit::AddressFetches, now)
    }

    /// A request's share of what its key and its address can fetch at the same time.
    pub fn share_fetching(&self, key: &PublicKey) -> Result<[Permit; 2], Limited> {
        let Limiter { fetching_keys, fetching_addresses, .. } = &*self.limiter;
        let own = Claimant::default().with_key(key);
        let own = fetching_keys.try_take(own).map_err(|_| self.refuse_share(Limit::KeyFetching))?;
        Ok([own, self.share(fetching_addresses, 1, Limit::AddressFetching)?])
    }

    pub fn share_listening(&self) -> Result<Permit, Limited> {
        self.share(&self.limiter.listening, 1, Limit::AddressListening)
    }

    /// A page, from its request to its answer. A flood is refused before anything works on it (D229).
    pub fn share_pages(&self) -> Result<Permit, Limited> {
        self.share(&self.limiter.pages, 1, Limit::AddressPages)
    }

    /// Room for an answer of so many bytes. An answer larger than the share of an address takes all of it.
    pub fn share_sending(&self, bytes: usize) -> Result<Permit, Limited> {
        self.share(&self.limiter.sending, bytes.min(SENDING_PER_ADDRESS), Limit::AddressSending)
    }

    fn share(&self, of: &Arc<FairSemaphore>, weight: usize, limit: Limit) -> Result<Permit, Limited> {
        of.try_take_many(self.claimant(), weight).map_err(|_| self.refuse_share(limit))
    }

    fn refuse_share(&self, limit: Limit) -> Limited {
        self.limiter.refuse(limit, Duration::from_secs(1))
    }

    fn claimant(&self) -> Claimant {
        Claimant::at(Some(self.network))
    }

    fn charge(&self, bucket: &Bucket, rate: Rate, limit: Limit, now: Instant) -> Result<(), Limited> {
        bucket.take(rate, uptime_nanos(now)).map_err(|wait| self.limiter.refuse(limit, wait))
    }
}

/// The network that counts as one address: an IPv4 address, or the /64 of an IPv6 address, all of which one client can
/// have.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}
