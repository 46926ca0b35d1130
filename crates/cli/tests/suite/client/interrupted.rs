//! A download that is interrupted: nothing is left, under any name.

use std::{process::Child, process::Command, process::Stdio, time::Duration, time::Instant};

use crate::support::fake_forge::{Asset, ForgeAnswer, ForgeWorld, Kind};
use crate::support::{alice, client::Computer, client::Ran};

const PATIENCE: Duration = Duration::from_secs(30);

fn send(child: &Child, signal: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &id]).status().expect("`kill` is there").success());
}

/// Starts a download whose second half never comes, and waits until the first half has a place on disk.
#[track_caller]
fn interrupt(signal: &str) -> (Computer, Ran) {
    let forge = ForgeWorld::with_project(Kind::Forgejo);
    let content = vec![7; 2_000_000];
    let url = forge.forge.put_release("acme/app", "v1", &[Asset::new("app", content.clone())]);
    forge.register_release(&url).ok();
    forge.world.sign_all(&forge.forge.index_path("acme/app", "v1"), &[&alice()]);
    let target = forge.forge.asset_target("acme/app", "v1", "app");
    let (answer, keeper) = ForgeAnswer::bytes(content).held();
    forge.forge.set(&target, answer);

    let computer = Computer::of(&forge.world.server);
    let mut command = computer.command(&["download", &forge.forge.url(&target)]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    keeper.await_request();
    let started = Instant::now();
    while computer.listing().is_empty() {
        assert!(started.elapsed() < PATIENCE, "nothing arrives");
        std::thread::yield_now();
    }
    assert!(!computer.path("app").exists(), "what is not verified has not the final name");
    send(&child, signal);
    let ran = Ran::from(child.wait_with_output().expect("it ends"));
    keeper.open();
    (computer, ran)
}

#[test]
fn an_interrupt_from_the_keyboard_leaves_nothing_and_says_so() {
    let (computer, ran) = interrupt("INT");
    assert_eq!(computer.listing(), [""; 0], "{ran:?}");
    ran.failed(1).says(&["interrupted"]);
}

#[test]
fn a_request_to_end_leaves_nothing_either() {
    let (computer, ran) = interrupt("TERM");
    assert_eq!(computer.listing(), [""; 0], "{ran:?}");
    assert_ne!(ran.code, 0);
}

#[test]
fn what_was_interrupted_can_be_downloaded_again() {
    let forge = ForgeWorld::with_project(Kind::GitHub);
    let url = forge.forge.put_release("acme/app", "v1", &[Asset::new("app", "content")]);
    forge.register_release(&url).ok();
    forge.world.sign_all(&forge.forge.index_path("acme/app", "v1"), &[&alice()]);
    let target = forge.forge.asset_target("acme/app", "v1", "app");
    let computer = Computer::of(&forge.world.server);
    forge.forge.set(&target, ForgeAnswer::broken_off("conte"));
    computer.download(&forge.forge.url(&target)).failed(5);
    assert_eq!(computer.listing(), [""; 0]);
    forge.forge.set(&target, ForgeAnswer::bytes("content"));
    computer.download(&forge.forge.url(&target)).ok();
    assert_eq!(computer.read("app"), b"content");
}
