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
fn a_rate_is_an_interval_and_room_for_a_burst() {
    let slow = Rate::new(30, Duration::from_secs(60), 60);
    for (rate, interval, burst) in [(ten_a_second(), SECOND / 10, 5), (slow, 2 * SECOND, 60)] {
        let bucket = Bucket::default();
        assert_eq!(bucket.take_many(rate, burst, 0), Ok(()));
        assert_eq!(bucket.take(rate, 0), Err(Duration::from_nanos(interval)));
        assert_eq!([interval - 1, interval].map(|now| bucket.left(rate, now)), [0, 1]);
        let room = interval * burst;
        assert_eq!([room - 1, room].map(|now| bucket.left(rate, now)), [burst - 1, burst]);
    }
}

#[test]
fn a_burst_is_granted_at_once_and_comes_back_at_the_steady_rate() {
    let bucket = Bucket::default();
    let start = 1_000 * SECOND;
    assert_eq!(granted(&bucket, ten_a_second(), start, 100), 5);
    assert_eq!(granted(&bucket, ten_a_second(), start + SECOND / 10 - 1, 100), 0);
    assert_eq!(granted(&bucket, ten_a_second(), start + SECOND / 10, 100), 1);
    assert_eq!(granted(&bucket, ten_a_second(), start + SECOND / 10 * 4, 100), 3);
}

#[test]
fn rest_earns_no_more_than_a_burst() {
    let bucket = Bucket::default();
    assert_eq!(granted(&bucket, ten_a_second(), 0, 100), 5);
    assert_eq!(granted(&bucket, ten_a_second(), 3_600 * SECOND, 100), 5);
}

#[test]
fn the_steady_rate_is_granted_for_ever() {
    let bucket = Bucket::default();
    let tenths = (0..1_000).map(|n| n * SECOND / 10);
    assert!(tenths.into_iter().all(|now| bucket.take(ten_a_second(), now).is_ok()));
}

#[test]
fn one_who_is_refused_is_told_when_to_come_and_is_not_charged() {
    let bucket = Bucket::default();
    granted(&bucket, ten_a_second(), 0, 5);
    for _ in 0..1_000 {
        assert_eq!(bucket.take(ten_a_second(), 0), Err(Duration::from_millis(100)));
    }
    assert_eq!(bucket.take(ten_a_second(), SECOND / 10), Ok(()));
}

#[test]
fn many_are_taken_at_once_or_not_at_all() {
    let bucket = Bucket::default();
    assert_eq!(bucket.take_many(ten_a_second(), 4, 0), Ok(()));
    assert_eq!(bucket.left(ten_a_second(), 0), 1);
    assert_eq!(bucket.take_many(ten_a_second(), 2, 0), Err(Duration::from_millis(100)));
    assert_eq!(bucket.take_many(ten_a_second(), 1, 0), Ok(()));
    assert_eq!(bucket.left(ten_a_second(), SECOND / 10 - 1), 0);
    assert_eq!(bucket.left(ten_a_second(), SECOND / 10 * 2), 2);
    assert_eq!(bucket.left(ten_a_second(), 3_600 * SECOND), 5);
    assert!(bucket.take_many(ten_a_second(), 6, 3_600 * SECOND).is_err(), "more than a burst");
    assert!(bucket.take_many(ten_a_second(), u64::MAX, 3_600 * SECOND).is_err());
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
