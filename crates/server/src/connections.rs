//! Which connections exist, and which of them go when there are too many.
//!
//! A client that opens thousands of connections and sends a byte at a time must not keep others out, not even clients
//! behind the same router. So a new connection never waits: it takes the place of the connection that has waited
//! longest for its client. A connection that works on a request never has to go.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{
    counting::Counter,
    patience::{Dropped, Patience},
};

/// File descriptors for everything else: packs, the database, outgoing connections.
const OTHER_FILES: u64 = 768;
/// Connections with a large head, each of which has a larger buffer. Those that have to go take a moment to close.
/// Until then there can be twice as many.
const MAX_LARGE_HEADS: usize = 1_024;
/// The part of the limit to free at once. Checking all connections for each new one would cost more.
const PART: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub total: usize,
    /// For one address, unless it is a trusted proxy.
    pub per_address: Option<usize>,
}

#[derive(Debug)]
pub struct Connections {
    /// Within the limit of open files.
    pub limits: ConnectionLimits,
    open: Mutex<Open>,
    pub accepted: Counter,
    pub refused: Counter,
    pub too_slow: Counter,
    pub gave_way: Counter,
    large_heads: AtomicUsize,
}

#[derive(Debug, Default)]
struct Open {
    by_number: HashMap<u64, Entry>,
    by_address: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Entry {
    /// `Some` if the connections of this address are counted.
    address: Option<IpAddr>,
    patience: Arc<Patience>,
}

/// A place among the connections. Dropping it gives it back.
#[derive(Debug)]
pub struct Admitted {
    pub number: u64,
    pub patience: Arc<Patience>,
    connections: Arc<Connections>,
}

impl Connections {
    pub fn new(limits: ConnectionLimits) -> Self {
        Self {
            limits: limits.within_file_limit(raise_file_limit()),
            open: Mutex::default(),
            accepted: Counter::default(),
            refused: Counter::default(),
            too_slow: Counter::default(),
            gave_way: Counter::default(),
            large_heads: AtomicUsize::new(0),
        }
    }

    pub fn open(&self) -> usize {
        self.lock().by_number.len()
    }

    /// Addresses with open connections, if they are counted.
    pub fn addresses(&self) -> usize {
        self.lock().by_address.len()
    }

    /// A place for a new connection; `None` if all others are at work. Without an address only the total counts.
    pub fn admit(self: &Arc<Self>, address: Option<IpAddr>, now: Instant) -> Option<Admitted> {
        let mut open = self.lock();
        let address = address.filter(|_| self.limits.per_address.is_some());
        let of_address = address.and_then(|address| open.by_address.get(&address)).copied().unwrap_or(0);
        let has_room = match self.limits.per_address {
            Some(most) if of_address >= most => {
                self.make_room(&mut open, most, |entry| entry.address == address)
            }
            Some(_) | None => true,
        };
        let total = self.limits.total;
        let has_room =
            has_room && (open.by_number.len() < total || self.make_room(&mut open, total, |_| true));
        if !has_room {
            self.refused.add(1);
            return None;
        }
        let number = self.accepted.add(1);
        let patience = Arc::new(Patience::new(now));
        open.by_number.insert(number, Entry { address, patience: Arc::clone(&patience) });
        if let Some(address) = address {
            *open.by_address.entry(address).or_default() += 1;
        }
        Some(Admitted { number, patience, connections: Arc::clone(self) })
    }

    pub fn note_dropped(&self, dropped: Dropped) {
        let count = match dropped {
            Dropped::TooSlow => &self.too_slow,
            Dropped::GaveWay => &self.gave_way,
        };
        count.add(1);
    }

    /// Admits a large head. If there are too many, the oldest of them go; `None` if that takes too long.
    pub fn admit_large_head(self: &Arc<Self>) -> Option<LargeHead> {
        let count = self.large_heads.fetch_add(1, Ordering::Relaxed) + 1;
        let admitted = LargeHead(Arc::clone(self));
        if count > 2 * MAX_LARGE_HEADS {
            self.gave_way.add(1);
            return None;
        }
        if count > MAX_LARGE_HEADS {
            let mut open = self.lock();
            let is_large = |entry: &Entry| entry.patience.has_large_head() && entry.patience.is_waiting();
            if open.by_number.values().filter(|entry| is_large(entry)).count() > MAX_LARGE_HEADS {
                self.make_room(&mut open, MAX_LARGE_HEADS, is_large);
            }
        }
        Some(admitted)
    }

    /// Ends the connections that have waited longest for their clients; false if there are none.
    fn make_room(&self, open: &mut Open, limit: usize, may_go: impl Fn(&Entry) -> bool) -> bool {
        let waiting = open.by_number.iter().filter(|(_, entry)| may_go(entry) && entry.patience.is_waiting());
        let mut waiting: Vec<(u64, u64)> =
            waiting.map(|(number, entry)| (entry.patience.since(), *number)).collect();
        let count = (limit / PART).max(1).min(waiting.len());
        if count == 0 {
            return false;
        }
        waiting.select_nth_unstable(count - 1);
        for (_, number) in &waiting[..count] {
            if let Some(entry) = open.remove(*number) {
                entry.patience.give_way();
            }
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.by_number.remove(&number)?;
        if let Some(address) = entry.address
            && let Some(count) = self.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(entry)
    }
}

/// A connection with a larger buffer. Dropping this ends the count.
#[derive(Debug)]
pub struct LargeHead(Arc<Connections>);

impl Drop for LargeHead {
    fn drop(&mut self) {
        self.0.large_heads.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admitted {
    /// Whether it has not made room for another one.
    pub fn is_open(&self) -> bool {
        self.connections.lock().by_number.contains_key(&self.number)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.connections.lock().remove(self.number);
    }
}

impl ConnectionLimits {
    /// No more connections than there are file descriptors.
    pub fn within_file_limit(self, files: Option<u64>) -> Self {
        let Some(files) = files else { return self };
        let room = files.saturating_sub(OTHER_FILES).max(files / 2);
        let total = self.total.min(usize::try_from(room).unwrap_or(usize::MAX)).max(1);
        if total < self.total {
            tracing::warn!(connections = total, files, "the limit of open files allows fewer connections");
        }
        // At most half, so that one address never has them all.
        Self { total, per_address: self.per_address.map(|most| most.min(total / 2).max(1)) }
    }
}

/// Raises the limit of open files as far as the system allows, and returns it if there is one.
fn raise_file_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files could not be raised");
            current
        }
    }
}
