//! A disk without room: the limit on the size of a file makes every longer write fail in the running server.

use std::process::Command;

use countersign_core::values::digest::Sha512;

use crate::support::{Person, Reply, Request, SignersFile, World, metrics, world::checksums};

/// Enough for a small change, and for the nonces of a few requests.
const LITTLE: &str = "49152";
/// So many digests, with names like digests, are more than that, however they are compressed.
const LARGE: usize = 1_000;
const SMALL_DISK: usize = 4 << 20;
const FULL: &str = "the server's disk is full: ";
/// Far more requests than the log of the nonces has room for.
const MANY: usize = 200;

#[test]
fn a_full_disk_refuses_changes_keeps_what_was_acknowledged_and_makes_no_nonce_new() {
    if Command::new("prlimit").arg("--version").output().is_err() {
        eprintln!("skipped: there is no `prlimit` here");
        return;
    }
    let alice = Person::named("alice");
    let mut world = World::start_with(|launch, _| launch.arg("--dev").surviving_file_limit());
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    // Begins the log of the nonces anew.
    world.server.restart();
    world.server.limit_files(LITTLE);

    // The repository has no room.
    let large = world.publish_checksums("acme/app/large", &large_checksums(0));
    let refused = world.register_assets(&alice, &[&large]);
    refused.refused(507, FULL);
    assert!(!refused.text().contains(world.server.data_dir().to_str().unwrap()), "{}", refused.text());
    assert!(!world.exists(&world.index_path("acme/app/large")));
    let commits = world.git().commit_count();
    world.git().assert_sound();

    // The nonces have no room.
    let mut made = Vec::new();
    let unlucky = loop {
        assert!(made.len() < MANY, "there was room for every nonce");
        let dir = format!("acme/app/v{}", made.len());
        let url = world.publish_checksums(&dir, &checksums(&dir));
        let body = serde_json::json!({ "csum_files": [url] });
        let request = alice.sign(Request::post("/v1/assets", &body));
        let reply = world.server.send(&request);
        if reply.status >= 500 {
            assert_told(&world, &reply);
            break request;
        }
        reply.ok();
        made.push((world.index_path(&dir), request));
    };
    assert!(!made.is_empty(), "there was room for a few");
    assert_told(&world, &world.server.send(&unlucky));
    for (_, request) in &made {
        let reply = world.server.send(request);
        assert!(reply.status == 401 || reply.status >= 500, "{}", reply.text());
    }
    assert_eq!(
        world.git().commit_count(),
        commits + made.len(),
        "no request went on without a nonce on disk"
    );
    assert_eq!(world.server.get("/v1/ping").status, 200, "reads go on");

    world.server.limit_files("unlimited");
    world.register_assets(&alice, &[&large]).ok();
    for stop in [false, true] {
        if stop {
            world.server.crash_and_restart();
        }
        for (index, request) in &made {
            assert!(world.exists(index));
            world.server.send(request).refused(401, "nonce");
        }
        assert!(world.exists(&world.index_path("acme/app/large")));
    }
    world.add_signed_release("acme/app/last", &[&alice]);
    world.git().assert_sound();
}

fn large_checksums(seed: usize) -> String {
    let lines = (seed * LARGE..(seed + 1) * LARGE).map(|n| {
        let digest = Sha512::of(&n.to_le_bytes()).to_string();
        format!("{}  {}.zip\n", &digest[..64], &digest[64..])
    });
    lines.collect()
}

#[test]
fn a_disk_that_is_really_full_is_announced_and_refuses_changes_with_507() {
    let dir = tempfile::TempDir::new().unwrap();
    let mount = ["--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", dir.path().to_str().unwrap()];
    if !Command::new("unshare").args(mount).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: nothing can be mounted here");
        return;
    }
    let alice = Person::named("alice");
    let address = metrics::free_address();
    let mut world = World::start_with(|launch, _| {
        launch.args(["--dev", "--metrics-listen", &address.to_string()]).on_small_disk(SMALL_DISK)
    });
    world.server.await_log("the disk of the data directory is nearly full", 1);
    let page = metrics::Page::read(address);
    assert_eq!(page.value("countersign_disk_size_bytes"), SMALL_DISK as f64);
    let free = page.value("countersign_disk_free_bytes");
    assert!(free > 0.0 && free < SMALL_DISK as f64, "{free}");

    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let mut made = Vec::new();
    let full = loop {
        assert!(made.len() < MANY, "there was room for everything");
        let dir = format!("acme/app/v{}", made.len());
        let url = world.publish_checksums(&dir, &large_checksums(made.len()));
        let reply = world.register_assets(&alice, &[&url]);
        if reply.status != 200 {
            break reply;
        }
        made.push(world.index_path(&dir));
    };
    full.refused(507, FULL);
    assert_eq!(full.header("retry-after"), Some("60"));
    assert!(made.iter().all(|index| world.exists(index)), "reads go on");
    assert_eq!(metrics::Page::read(address).value("countersign_ready"), 0.0);
    world.server.get("/readyz").refused(503, FULL);
    let log = world.server.stop_and_read_log();
    assert_eq!(log.matches("nearly full").count(), 1, "{log}");
    let id = full.header("x-request-id").unwrap();
    assert!(
        log.lines().any(|line| line.contains(id) && line.contains("ERROR") && line.contains("507")),
        "{log}"
    );
}

/// The client learns what is the matter, and nothing about the server's directories.
#[track_caller]
fn assert_told(world: &World, reply: &Reply) {
    reply.refused(500, "its disk may be full");
    let text = reply.text();
    let data_dir = world.server.data_dir();
    assert!(!text.contains("nonce") && !text.contains(data_dir.to_str().unwrap()), "{text}");
}

#[test]
fn the_log_says_what_could_not_be_written() {
    if Command::new("prlimit").arg("--version").output().is_err() {
        eprintln!("skipped: there is no `prlimit` here");
        return;
    }
    let alice = Person::named("alice");
    let mut world = World::start_with(|launch, _| launch.arg("--dev").surviving_file_limit());
    world.server.limit_files("0");
    assert_told(&world, &world.server.send(&alice.sign(Request::get("/v1/pending_signatures"))));
    world.server.limit_files("unlimited");
    let log = world.server.stop_and_read_log();
    let line =
        log.lines().find(|line| line.contains("its disk may be full")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("ERROR") && line.contains("the nonce could not be stored: "), "{line}");
}
