//! Another process holds the lock of the trust file: it is waited for, aloud, and not for ever.

use std::{fs, fs::File};

use crate::support::client::{Computer, add_files};
use crate::support::{Person, SignersFile, World, machine_clock::MachineClock, running::Running};

fn released() -> (World, String) {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice]);
    let url = world.files.url("/acme/app/1.0/app");
    (world, url)
}

/// The lock of this computer's trust file, taken.
fn take_lock(computer: &Computer) -> File {
    fs::create_dir_all(computer.config()).unwrap();
    let lock = File::create(computer.config().join("trust.lock")).unwrap();
    lock.lock().unwrap();
    lock
}

#[test]
fn a_download_says_whom_it_waits_for_and_goes_on_afterwards() {
    let (world, url) = released();
    let computer = Computer::of(&world.server);
    let lock = take_lock(&computer);
    let running = Running::start(computer.command(&["download", &url, "--quiet"]));
    let note = running.await_note("Waiting for another countersign process");
    assert!(note.contains("trust.lock"), "{note}");
    drop(lock);
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(computer.read("app"), b"content");
}

#[test]
fn a_lock_that_is_never_let_go_of_ends_the_command_with_the_way_out() {
    let (world, url) = released();
    let computer = Computer::of(&world.server);
    let _lock = take_lock(&computer);
    let Some(clock) = MachineClock::new() else { return };
    let mut command = computer.command(&["download", &url]);
    clock.lend_long_to(&mut command);
    let running = Running::start(command);
    running.await_note("Waiting for another countersign process");
    clock.set(30);
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(["trust.lock", "30 seconds", "fuser"].iter().all(|words| stderr.contains(words)), "{stderr}");
}
