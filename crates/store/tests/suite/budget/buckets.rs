//! A steady rate with room for bursts.

use std::time::Duration;

use countersign_store::budget::{Bucket, DayUse, Rate};

const SECOND: u64 = 1_000_000_000;

/// Five of them at once.
fn ten_a_second() -> Rate {
    Rate::new(10, Duration::from_secs(1), 5)
}

/// How many of `asked` are granted at this moment.
fn granted(bucket: &Bucket, rate: Rate, now: u64, asked: usize) -> usize {
    (0..asked).filter(|_| bucket.take(rate, now).is_ok()).count()
}

#[test]
fn a_burst_is_granted_at_once_and_comes_back_at_the_steady_rate() {
    let slow = Rate::new(30, Duration::from_secs(60), 60);
    for (rate, interval, burst) in [(ten_a_second(), SECOND / 10, 5), (slow, 2 * SECOND, 60)] {
        let (bucket, start, room) = (Bucket::default(), 1_000 * SECOND, interval * burst);
        assert_eq!(
            bucket.take_many(rate, burst + 1, start),
            Err(Duration::from_nanos(interval)),
            "all or none"
        );
        assert_eq!(granted(&bucket, rate, start, 1_000), burst as usize);
        // A refusal is not charged, and tells when to come.
        for _ in 0..1_000 {
            assert_eq!(bucket.take(rate, start), Err(Duration::from_nanos(interval)));
        }
        let left = |after: u64| bucket.left(rate, start + after);
        assert_eq!([interval - 1, interval, room - 1, room].map(left), [0, 1, burst - 1, burst]);
        assert_eq!(granted(&bucket, rate, start + 4 * interval, 1_000), 4);
        // However long the rest was, no more than a burst.
        let late = start + 3_600 * SECOND;
        assert!(bucket.take_many(rate, u64::MAX, late).is_err());
        assert_eq!(granted(&bucket, rate, late, 1_000), burst as usize);
        // The steady rate is granted for ever.
        assert!((1..1_000).all(|n| bucket.take(rate, late + n * interval).is_ok()));
    }
}

#[test]
fn what_is_given_back_can_be_taken_again_and_no_more_than_that() {
    let bucket = Bucket::default();
    assert_eq!(bucket.take_many(ten_a_second(), 5, SECOND), Ok(()));
    bucket.give_back(ten_a_second(), 3);
    assert_eq!(granted(&bucket, ten_a_second(), SECOND, 100), 3);
    bucket.give_back(ten_a_second(), u64::MAX);
    assert_eq!(granted(&bucket, ten_a_second(), SECOND, 100), 5);
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

#[test]
fn in_no_24_hours_there_is_more_than_a_day_has() {
    const HOUR: u64 = 3_600 * SECOND;
    let (use_of, most) = (DayUse::default(), 1_000);
    let mut taken: Vec<(u64, u64)> = Vec::new();
    // As much as there is, at moments that fit no hour, for ten days.
    for step in 0..1_000 {
        let now = 7 * HOUR / 3 + step * HOUR * 24 / 100;
        let left = use_of.left(most, now);
        let count = left.min(1 + step % 400);
        assert_eq!(use_of.take_many(most, count, now), Ok(()));
        taken.push((now, count));
        let day: u64 = taken.iter().filter(|(then, _)| now - then < 24 * HOUR).map(|(_, count)| count).sum();
        assert!(day <= most, "{day} within 24 hours");
    }
    let all: u64 = taken.iter().map(|(_, count)| count).sum();
    assert!(all > 9 * most, "it comes back: {all}");
}

#[test]
fn what_a_day_has_comes_back_when_it_is_a_day_old() {
    const HOUR: u64 = 3_600 * SECOND;
    let use_of = DayUse::default();
    assert_eq!(use_of.take_many(100, 60, 0), Ok(()));
    assert_eq!(use_of.take_many(100, 40, 3 * HOUR), Ok(()));
    let wait = |hours: u64| Err(Duration::from_nanos(hours * HOUR));
    assert_eq!(use_of.take_many(100, 1, 4 * HOUR), wait(21));
    assert_eq!(use_of.take_many(100, 61, 4 * HOUR), wait(24));
    use_of.give_back(40);
    assert_eq!(use_of.left(100, 4 * HOUR), 40);
    assert_eq!([24, 25].map(|hours| use_of.left(100, hours * HOUR)), [40, 100]);
}
