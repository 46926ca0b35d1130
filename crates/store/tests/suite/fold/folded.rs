//! When packs that were folded into another one go.

use std::{path::PathBuf, time::Duration, time::SystemTime};

use countersign_store::objects::folded::{FoldList, Folded, MAX_BYTES, MAX_PACKS};

fn folded(sizes: &[(usize, u64)]) -> Folded {
    let list = |&(packs, bytes): &(usize, u64)| FoldList {
        into: PathBuf::from("pack-0"),
        sources: vec![PathBuf::from("pack-1"); packs],
        bytes,
        since: SystemTime::UNIX_EPOCH,
    };
    Folded { lists: sizes.iter().map(list).collect() }
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn folded_packs_are_old_after_the_grace_time() {
    let few = folded(&[(16, 100), (16, 100)]);
    assert_eq!([0, 599, 600].map(|now| few.count_old(at(now))), [0, 0, 2]);
    assert_eq!(few.count_old(SystemTime::UNIX_EPOCH - Duration::from_secs(5)), 0, "the clock was set back");
}

#[test]
fn folded_packs_stay_until_there_are_too_many() {
    assert_eq!(folded(&[]).count_excess(at(0), 0), 0);
    let most = folded(&[(16, 0); MAX_PACKS / 16]);
    assert_eq!(most.count_excess(at(10_000), 0), 0, "however old they are");
    let more = folded(&[(16, 0); MAX_PACKS / 16 + 1]);
    assert_eq!(more.count_excess(at(10_000), 0), MAX_PACKS / 16 + 1, "then all old ones");
    assert_eq!(more.count_excess(at(0), 0), MAX_PACKS / 32 + 1, "and otherwise a half");
}

#[test]
fn folded_packs_stay_until_they_are_too_large() {
    let large = folded(&[(16, 400), (16, MAX_BYTES), (16, 600)]);
    assert_eq!(large.count_excess(at(0), 1_000), 0);
    assert_eq!(large.count_excess(at(0), 999), 1);
    assert_eq!(large.count_excess(at(0), 599), 2);
    assert_eq!(folded(&[(16, 5 * MAX_BYTES)]).count_excess(at(0), 5 * MAX_BYTES), 0, "all of them once");
}

#[test]
fn what_was_folded_last_stays_however_large_it_is() {
    let large = folded(&[(16, 5 * MAX_BYTES)]);
    assert_eq!([0, 599, 600].map(|now| large.count_excess(at(now), 0)), [0, 0, 1], "until it is old");
    assert_eq!(folded(&[(16, 1), (100, 5 * MAX_BYTES)]).count_excess(at(0), 0), 1);
}
