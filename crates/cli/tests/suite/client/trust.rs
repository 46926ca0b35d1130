//! The root of trust: a project that begins anew, and two commands at once. The rest is text (`client_download.txt`).

use std::process::{Child, Stdio};

use countersign_core::values::digest::Sha512;

use crate::support::client::{Computer, Ran, add_files};
use crate::support::files::{FileServer, Keeper};
use crate::support::{Answer, Person, SignersFile, TestServer, World, alice};

/// A signed release of a project of alice; the URL of its file and the digest of the signers file.
fn released() -> (World, String, String) {
    let file = SignersFile::of(1, &[&alice()]);
    let world = World::with_project(&file, &[&alice()]);
    add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice()]);
    let url = world.files.url("/acme/app/1.0/app");
    (world, url, Sha512::of(&file.bytes()).to_prefixed())
}

const SIGNERS: &str = "/acme/app/svc.signers.json";

#[test]
fn a_project_that_begins_anew_under_the_same_name_is_refused_until_it_is_forgotten() {
    let (world, url, _) = released();
    let computer = Computer::of(&world.server);
    computer.download(&url).ok();
    // Another signing server, on which someone else has registered the same place.
    let mallory = Person::named("mallory");
    let other = TestServer::start();
    let impostor = World { server: other, files: world.files };
    impostor.activate("acme/app", &SignersFile::of(1, &[&mallory]), &[&mallory]);
    add_files(&impostor, "acme/app/1.0", &[("app", b"evil")], &[&mallory]);
    let server = format!("http://{}", impostor.server.address());
    let args = ["download", &url, "--server", &server, "-o", "new"];
    computer.run(&args).failed(3).says(&["trust remove"]);
    computer.run(&["signers", "history", &impostor.id("acme/app"), "--server", &server]).failed(3);
    assert_eq!(computer.listing(), ["app"]);
    computer.run(&["trust", "remove", &impostor.id("acme/app"), "--yes"]).ok();
    computer.run(&args).ok();
}

/// A first download that has read the pins, and waits for the project's signers file.
fn begin(computer: &Computer, files: &FileServer, signers: &SignersFile, args: &[&str]) -> (Child, Keeper) {
    let (held, keeper) = Answer::held(signers.bytes());
    files.set(SIGNERS, held);
    let mut command = computer.command(&[&["download"], args].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    keeper.await_request();
    (child, keeper)
}

/// Both find that this computer has not accepted the project yet. Only one of two pasts can become the one that it
/// knows.
#[test]
fn two_first_downloads_at_once_do_not_accept_two_pasts() {
    let (World { server, files }, url, digest) = released();
    let computer = Computer::of(&server);
    let mallory = Person::named("mallory");
    let theirs = SignersFile::of(1, &[&mallory]);
    let impostor = World { server: TestServer::start(), files };
    impostor.activate("acme/app", &theirs, &[&mallory]);
    add_files(&impostor, "acme/app/2.0", &[("app", b"evil")], &[&mallory]);
    let other_url = impostor.files.url("/acme/app/2.0/app");
    let other_server = format!("http://{}", impostor.server.address());
    let args = [other_url.as_str(), "--server", &other_server, "-o", "other"];
    let (second, keeper) = begin(&computer, &impostor.files, &theirs, &args);
    computer.run(&["download", &url, "--signers-digest", &digest]).ok();
    let pins = computer.pins();
    keeper.release();
    Ran::from(second.wait_with_output().unwrap()).failed(3).says(&["THE PAST DOES NOT MATCH"]);
    assert_eq!(computer.listing(), ["app"]);
    assert_eq!(computer.pins(), pins);
}

#[test]
fn a_revocation_that_another_command_has_seen_meanwhile_counts() {
    let (world, url, digest) = released();
    let computer = Computer::of(&world.server);
    let signers = SignersFile::of(1, &[&alice()]);
    let (second, keeper) = begin(&computer, &world.files, &signers, &[&url]);
    world.revoke(&alice(), &world.index_path("acme/app/1.0")).ok();
    computer.run(&["download", &url, "--signers-digest", &digest]).failed(4);
    keeper.release();
    Ran::from(second.wait_with_output().unwrap()).failed(4).says(&["REVOKED", "has seen before"]);
    assert_eq!(computer.listing(), [""; 0]);
}
