//! Caches that are whole, gone, cut off or damaged: the log is the same after each start.

use std::fs;

use countersign_core::log::checkpoint::Checkpoint;
use countersign_testing::log_reader::{derive_leaves, root_of};

use crate::support::{Fixture, publish};

/// The log of a filled repository, stopped.
fn filled() -> (Fixture, Checkpoint) {
    let fixture = Fixture::new();
    let log = fixture.start_log();
    fixture.fill();
    let newest = fixture.wait_for_all(&log);
    (fixture, newest.checkpoint().clone())
}

/// After a start, the log has this checkpoint and goes on from it as `git` says.
fn check_start(fixture: &Fixture, before: &Checkpoint, case: &str) {
    let log = fixture.start_log();
    let newest = fixture.wait_for_all(&log);
    assert_eq!(newest.checkpoint(), before, "{case}");
    assert!(log.trouble().is_none(), "{case}");
}

#[test]
fn a_start_with_whole_caches_derives_nothing_again() {
    let (fixture, before) = filled();
    let changed = |name| fs::metadata(fixture.log_dir().join(name)).unwrap().modified().unwrap();
    let written = (changed("leaves"), changed("records"));
    check_start(&fixture, &before, "whole");
    assert_eq!((changed("leaves"), changed("records")), written, "what is derived is written");
    fixture.commit(publish("https/a.example/443/two/releases/v6"));
    let log = fixture.start_log();
    let newest = fixture.wait_for_all(&log);
    assert_eq!(root_of(&derive_leaves(&fixture.repository())), newest.checkpoint().root);
}

#[test]
fn caches_that_end_anywhere_give_the_same_log() {
    let (fixture, before) = filled();
    for name in ["leaves", "records"] {
        let whole = fs::read(fixture.log_dir().join(name)).unwrap();
        for end in [0, 1, 115, 116, whole.len() / 2, whole.len() - 1] {
            fs::write(fixture.log_dir().join(name), &whole[..end]).unwrap();
            check_start(&fixture, &before, &format!("{name} ends at {end}"));
        }
        fs::remove_file(fixture.log_dir().join(name)).unwrap();
        check_start(&fixture, &before, &format!("without {name}"));
        let mut longer = fs::read(fixture.log_dir().join(name)).unwrap();
        longer.extend([0xff; 300]);
        fs::write(fixture.log_dir().join(name), longer).unwrap();
        check_start(&fixture, &before, &format!("{name} with a torn tail"));
    }
}

#[test]
fn caches_with_a_wrong_bit_anywhere_give_the_same_log() {
    let (fixture, before) = filled();
    for name in ["leaves", "records"] {
        let length = fs::metadata(fixture.log_dir().join(name)).unwrap().len() as usize;
        for step in 0..40 {
            fixture.flip(name, (length - 1) * step / 39);
            check_start(&fixture, &before, &format!("{name}, the bit {step}"));
        }
    }
}

#[test]
fn caches_of_another_repository_are_not_used() {
    let (fixture, _) = filled();
    let other = Fixture::new();
    other.commit(publish("https/b.example/443/x/releases/v1"));
    for name in ["leaves", "records"] {
        fs::create_dir_all(other.log_dir()).unwrap();
        fs::copy(fixture.log_dir().join(name), other.log_dir().join(name)).unwrap();
    }
    let log = other.start_log();
    let newest = other.wait_for_all(&log);
    assert_eq!(root_of(&derive_leaves(&other.repository())), newest.checkpoint().root);
}
