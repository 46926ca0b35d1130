//! A steady rate with room for bursts, in one number.

use std::{
    convert::Infallible,
    hash::Hash,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use quick_cache::sync::Cache;

/// A rate: a count in a time, of which `burst` can come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Nanoseconds in which one comes back.
    interval: u64,
    /// Nanoseconds in which all that may come at once comes back.
    room: u64,
}

impl Rate {
    pub fn new(count: u64, per: Duration, burst: u64) -> Self {
        let per = u64::try_from(per.as_nanos()).unwrap_or(u64::MAX);
        let interval = (per / count.max(1)).max(1);
        Self { interval, room: interval.saturating_mul(burst.max(1)) }
    }
}

/// What one caller has used up: the time, in nanoseconds of the caller's clock, at which all of it has come back.
#[derive(Debug, Default)]
pub struct Bucket(AtomicU64);

impl Bucket {
    /// Takes one, or says how long until there is one.
    pub fn take(&self, rate: Rate, now: u64) -> Result<(), Duration> {
        self.take_many(rate, 1, now)
    }

    /// Takes so many, all or none, or says how long until there are so many. More than a burst there never are.
    pub fn take_many(&self, rate: Rate, count: u64, now: u64) -> Result<(), Duration> {
        let cost = rate.interval.saturating_mul(count);
        let mut full_at = self.0.load(Ordering::Relaxed);
        loop {
            let taken = full_at.max(now).saturating_add(cost);
            let latest = now.saturating_add(rate.room);
            if taken > latest {
                return Err(Duration::from_nanos(taken - latest));
            }
            match self.0.compare_exchange_weak(full_at, taken, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => full_at = other,
            }
        }
    }

    /// Puts back what was taken and not used.
    pub fn give_back(&self, rate: Rate, count: u64) {
        let cost = rate.interval.saturating_mul(count);
        let give = |full_at: u64| Some(full_at.saturating_sub(cost));
        // It always gives a value, so it cannot fail.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, give);
    }

    /// How many could be taken now.
    pub fn left(&self, rate: Rate, now: u64) -> u64 {
        let used = self.0.load(Ordering::Relaxed).saturating_sub(now);
        rate.room.saturating_sub(used) / rate.interval
    }
}

const HOUR: u64 = 3_600_000_000_000;
/// How many whole hours any 24 hours lie within.
const HOURS: usize = 25;

/// What was used in the last day, hour by hour. In no 24 hours there is more than allowed, which a [`Bucket`] does not
/// promise: it gives a whole burst, and as much again until that has come back.
#[derive(Debug, Default)]
pub struct DayUse(Mutex<HourlyUse>);

#[derive(Debug, Default)]
struct HourlyUse {
    /// The newest hour of the caller's clock.
    hour: u64,
    /// The use in each hour, by its number modulo `HOURS`.
    used: [u64; HOURS],
}

impl DayUse {
    /// Takes so many of `most` in a day, all or none, or says how long until there are so many.
    pub fn take_many(&self, most: u64, count: u64, now: u64) -> Result<(), Duration> {
        let mut hours = self.advance(now);
        let newest = hours.hour;
        let mut left = most.saturating_sub(hours.used.iter().sum());
        if count <= left {
            *hours.of(newest) += count;
            return Ok(());
        }
        // The oldest hour, which is the one after the newest modulo their count, is forgotten first.
        for later in 1..=HOURS as u64 {
            left = left.saturating_add(*hours.of(newest + later));
            if count <= left {
                return Err(Duration::from_nanos((newest + later) * HOUR - now));
            }
        }
        Err(Duration::from_nanos(HOURS as u64 * HOUR))
    }

    /// Puts back what was taken a moment ago and not used.
    pub fn give_back(&self, mut count: u64) {
        let mut hours = self.lock();
        for earlier in 0..HOURS as u64 {
            let hour = hours.hour + HOURS as u64 - earlier;
            let used = hours.of(hour);
            let given = count.min(*used);
            *used -= given;
            count -= given;
        }
    }

    /// How many could be taken now.
    pub fn left(&self, most: u64, now: u64) -> u64 {
        most.saturating_sub(self.advance(now).used.iter().sum())
    }

    /// Forgets what is a day old.
    fn advance(&self, now: u64) -> MutexGuard<'_, HourlyUse> {
        let mut hours = self.lock();
        let hour = now / HOUR;
        for new in (hours.hour + 1..=hour).take(HOURS) {
            *hours.of(new) = 0;
        }
        hours.hour = hours.hour.max(hour);
        hours
    }

    fn lock(&self) -> MutexGuard<'_, HourlyUse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HourlyUse {
    fn of(&mut self, hour: u64) -> &mut u64 {
        &mut self.used[(hour % HOURS as u64) as usize]
    }
}

pub fn find_or_make<K: Hash + Eq + Clone, V: Default>(cache: &Cache<K, Arc<V>>, key: K) -> Arc<V> {
    // Two who come at once get one between them: otherwise each would have an allowance of its own.
    let Ok(value) = cache.get_or_insert_with(&key, || Ok::<_, Infallible>(Arc::default()));
    value
}
