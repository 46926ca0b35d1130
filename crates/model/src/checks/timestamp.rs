//! Times (spec §5, D4), checked against a hand-written parser of RFC 3339.

use countersign_core::values::time::Timestamp;

const NANOS: i128 = 1_000_000_000;

pub fn check(data: &[u8]) {
    if let Some((number, _)) = data.split_first_chunk::<8>() {
        check_seconds(i64::from_le_bytes(*number));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let epoch = Timestamp::from_unix_seconds(0).expect("in the range of timestamps");
    let parsed = Timestamp::parse(text);
    let nanos = parsed.as_ref().ok().map(|time| time.nanos_since(epoch));
    assert_eq!(nanos, read(text), "{text:?}");
    let Ok(time) = parsed else { return };
    for spelling in [time.to_string(), time.to_header()] {
        let again = Timestamp::parse(&spelling).expect("a time can be read");
        assert_eq!((again, again.to_string()), (time, time.to_string()), "{spelling}");
    }
    let header = time.to_header();
    assert!(header.ends_with("+00:00") && !header.contains('Z'));
    assert!(!header.contains('.') || !header.trim_end_matches("+00:00").ends_with('0'), "{header}");
    assert_eq!(Timestamp::from_unix_nanos(time.nanos_since(epoch)), Ok(time));
    let whole = time.to_whole_seconds();
    assert_eq!(whole.nanos_since(epoch), time.nanos_since(epoch).div_euclid(NANOS) * NANOS);
    assert_eq!(whole.unix_seconds(), time.unix_seconds());
    assert!(time.to_whole_milliseconds() <= time && time.to_whole_milliseconds() >= whole);
}

fn check_seconds(seconds: i64) {
    let Ok(time) = Timestamp::from_unix_seconds(seconds) else { return };
    assert_eq!(time.unix_seconds(), seconds);
    assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
    assert_eq!(time.to_string().len(), "2026-01-31T10:00:00Z".len());
}

/// Nanoseconds since 1970.
fn read(text: &str) -> Option<i128> {
    let number = |text: &str| {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<i128>().ok())?
    };
    if !text.is_ascii() || text.len() < 20 {
        return None;
    }
    let (clock, rest) = text.split_at(19);
    for (at, expected) in [(4, '-'), (7, '-'), (10, 'T'), (13, ':'), (16, ':')] {
        clock[at..].starts_with(expected).then_some(())?;
    }
    let part = |from: usize, to: usize| number(&clock[from..to]);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    let zone_at = rest.find(['Z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(zone_at);
    let fraction = match fraction.strip_prefix('.') {
        // Digits beyond nanoseconds are dropped.
        Some(digits) => {
            let (kept, dropped) = digits.split_at(digits.len().min(9));
            dropped.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
            number(kept)? * 10_i128.pow(9 - kept.len() as u32)
        }
        None if fraction.is_empty() => 0,
        None => return None,
    };
    let offset = match zone.split_at(1) {
        ("Z", "") => 0,
        (sign, clock) if clock.len() == 5 && &clock[2..3] == ":" && sign != "Z" => {
            let (hours, minutes) = (number(&clock[..2])?, number(&clock[3..])?);
            (hours <= 23 && minutes <= 59).then_some(())?;
            (hours * 60 + minutes) * if sign == "-" { -60 } else { 60 }
        }
        _ => return None,
    };
    let in_range = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    (in_range && hour <= 23 && minute <= 59 && second <= 59).then_some(())?;
    let seconds = days_before(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset;
    let first = days_before(0, 1, 1) * 86_400;
    let last = days_before(10_000, 1, 1) * 86_400;
    (first..last).contains(&seconds).then_some(seconds * NANOS + fraction)
}

fn is_leap(year: i128) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i128, month: i128) -> i128 {
    match month {
        2 => 28 + i128::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to this date.
fn days_before(year: i128, month: i128, day: i128) -> i128 {
    let leap_days = |year: i128| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let years = 365 * (year - 1_970) + leap_days(year - 1) - leap_days(1_969);
    years + (1..month).map(|month| days_in(year, month)).sum::<i128>() + day - 1
}
