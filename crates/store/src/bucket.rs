//! A steady rate with room for bursts, in one number.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use quick_cache::sync::Cache;

/// So many in so much time, of which `burst` may come at once.
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

pub fn find_or_make<K: std::hash::Hash + Eq + Clone, V: Default>(cache: &Cache<K, Arc<V>>, key: K) -> Arc<V> {
    if let Some(found) = cache.get(&key) {
        return found;
    }
    // Two who come at once get one between them: otherwise each would have an allowance of its own.
    let made = cache.get_or_insert_with(&key, || Ok::<_, std::convert::Infallible>(Arc::default()));
    match made {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const TEN_A_SECOND: Rate = Rate { interval: SECOND / 10, room: SECOND / 10 * 5 };

    /// How many of `asked` are granted at this moment.
    fn granted(bucket: &Bucket, rate: Rate, now: u64, asked: usize) -> usize {
        (0..asked).filter(|_| bucket.take(rate, now).is_ok()).count()
    }

    #[test]
    fn a_rate_is_an_interval_and_room_for_a_burst() {
        assert_eq!(Rate::new(10, Duration::from_secs(1), 5), TEN_A_SECOND);
        let slow = Rate::new(30, Duration::from_secs(60), 60);
        assert_eq!(slow, Rate { interval: 2 * SECOND, room: 120 * SECOND });
    }

    #[test]
    fn a_burst_is_granted_at_once_and_comes_back_at_the_steady_rate() {
        let bucket = Bucket::default();
        let start = 1_000 * SECOND;
        assert_eq!(granted(&bucket, TEN_A_SECOND, start, 100), 5);
        assert_eq!(granted(&bucket, TEN_A_SECOND, start + SECOND / 10 - 1, 100), 0);
        assert_eq!(granted(&bucket, TEN_A_SECOND, start + SECOND / 10, 100), 1);
        assert_eq!(granted(&bucket, TEN_A_SECOND, start + SECOND / 10 * 4, 100), 3);
    }

    #[test]
    fn rest_earns_no_more_than_a_burst() {
        let bucket = Bucket::default();
        assert_eq!(granted(&bucket, TEN_A_SECOND, 0, 100), 5);
        assert_eq!(granted(&bucket, TEN_A_SECOND, 3_600 * SECOND, 100), 5);
    }

    #[test]
    fn the_steady_rate_is_granted_for_ever() {
        let bucket = Bucket::default();
        let tenths = (0..1_000).map(|n| n * SECOND / 10);
        assert!(tenths.into_iter().all(|now| bucket.take(TEN_A_SECOND, now).is_ok()));
    }

    #[test]
    fn whoever_is_refused_is_told_when_to_come_and_is_not_charged() {
        let bucket = Bucket::default();
        granted(&bucket, TEN_A_SECOND, 0, 5);
        for _ in 0..1_000 {
            assert_eq!(bucket.take(TEN_A_SECOND, 0), Err(Duration::from_millis(100)));
        }
        assert_eq!(bucket.take(TEN_A_SECOND, SECOND / 10), Ok(()));
    }

    #[test]
    fn many_are_taken_at_once_or_not_at_all() {
        let bucket = Bucket::default();
        assert_eq!(bucket.take_many(TEN_A_SECOND, 4, 0), Ok(()));
        assert_eq!(bucket.left(TEN_A_SECOND, 0), 1);
        assert_eq!(bucket.take_many(TEN_A_SECOND, 2, 0), Err(Duration::from_millis(100)));
        assert_eq!(bucket.take_many(TEN_A_SECOND, 1, 0), Ok(()));
        assert_eq!(bucket.left(TEN_A_SECOND, SECOND / 10 - 1), 0);
        assert_eq!(bucket.left(TEN_A_SECOND, SECOND / 10 * 2), 2);
        assert_eq!(bucket.left(TEN_A_SECOND, 3_600 * SECOND), 5);
        assert!(bucket.take_many(TEN_A_SECOND, 6, 3_600 * SECOND).is_err(), "more than a burst");
        assert!(bucket.take_many(TEN_A_SECOND, u64::MAX, 3_600 * SECOND).is_err());
    }

    #[test]
    fn what_is_given_back_can_be_taken_again_and_no_more_than_that() {
        let bucket = Bucket::default();
        assert_eq!(bucket.take_many(TEN_A_SECOND, 5, SECOND), Ok(()));
        bucket.give_back(TEN_A_SECOND, 3);
        assert_eq!(granted(&bucket, TEN_A_SECOND, SECOND, 100), 3);
        bucket.give_back(TEN_A_SECOND, u64::MAX);
        assert_eq!(granted(&bucket, TEN_A_SECOND, SECOND, 100), 5);
    }

    #[test]
    fn threads_get_a_burst_between_them() {
        let bucket = Bucket::default();
        let rate = Rate::new(1, Duration::from_secs(3_600), 1_000);
        let granted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| granted(&bucket, rate, 7, 1_000))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
        });
        assert_eq!(granted, 1_000);
    }
}
