//! Points in time and their two spellings (spec §5, D4). The vector `values/times` has those at the edges.

use countersign_core::values::time::Timestamp;
use countersign_testing::{at, shifted, steady};
use proptest::prelude::*;

fn any_time() -> impl Strategy<Value = Timestamp> {
    let seconds = -62_167_219_200_i128..=253_402_300_799;
    let nanos =
        prop_oneof![Just(0_i128), 0_i128..1_000_000_000, (0_i128..1_000).prop_map(|ms| ms * 1_000_000)];
    (seconds, nanos)
        .prop_map(|(s, n)| Timestamp::from_unix_nanos(s * 1_000_000_000 + n).expect("a year to 9999"))
}

proptest! {
    #![proptest_config(steady())]

    #[test]
    fn both_spellings_are_read_back_as_the_same_instant(time in any_time()) {
        prop_assert_eq!(Timestamp::parse(&time.to_header()), Ok(time));
        prop_assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
    }

    #[test]
    fn the_header_form_is_canonical(time in any_time()) {
        let text = time.to_header();
        let fraction = text.strip_suffix("+00:00").expect("an offset").split_once('.').map(|(_, digits)| digits);
        prop_assert!(fraction.is_none_or(|digits| !digits.ends_with('0') && !digits.is_empty()), "{text}");
        prop_assert_eq!(Timestamp::parse(&text).map(Timestamp::to_header), Ok(text));
    }

    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in prop_oneof![any::<String>(), "[0-9TZ:+.-]{18,30}", "\\PC{8,20}"]) {
        if let Ok(time) = Timestamp::parse(&text) {
            prop_assert_eq!(Timestamp::parse(&time.to_header()), Ok(time));
        }
    }
}

#[test]
fn the_header_form_has_an_offset_and_no_trailing_zeros() {
    for (text, header) in [
        ("2026-01-31T10:00:00Z", "2026-01-31T10:00:00+00:00"),
        ("2026-01-31T10:00:00.000Z", "2026-01-31T10:00:00+00:00"),
        ("2026-01-31T10:00:00.120Z", "2026-01-31T10:00:00.12+00:00"),
        ("2026-01-31T10:00:00.000000001Z", "2026-01-31T10:00:00.000000001+00:00"),
        ("2026-01-31T11:30:00+01:30", "2026-01-31T10:00:00+00:00"),
        ("2026-01-31T10:00:00-00:00", "2026-01-31T10:00:00+00:00"),
    ] {
        assert_eq!(at(text).to_header(), header);
    }
}

#[test]
fn our_own_times_end_in_z_and_have_whole_seconds() {
    let time = at("2026-01-31T10:00:00.999+00:00");
    assert_eq!(time.to_string(), "2026-01-31T10:00:00.999Z");
    assert_eq!(time.to_whole_seconds().to_string(), "2026-01-31T10:00:00Z");
}

#[test]
fn a_time_is_ahead_only_of_earlier_ones() {
    let noon = at("2026-01-31T12:00:00Z");
    assert_eq!(shifted(noon, 1).ahead_of(noon).unwrap().as_nanos(), 1);
    assert_eq!(noon.ahead_of(noon).unwrap().as_nanos(), 0);
    assert_eq!(noon.ahead_of(shifted(noon, 1)), None);
}

#[test]
fn whole_milliseconds_cut_the_rest_off() {
    let time = Timestamp::parse("2026-01-31T10:00:00.123999999Z").unwrap();
    assert_eq!(time.to_whole_milliseconds().to_string(), "2026-01-31T10:00:00.123Z");
    assert_eq!(time.to_whole_seconds().to_whole_milliseconds(), time.to_whole_seconds());
}
