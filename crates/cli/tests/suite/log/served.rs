//! What a server with a log answers, compared with what a clone gives.

use std::{collections::BTreeSet, io::Read as _};

use countersign_core::log::record::LoggedState;
use countersign_core::proof::freshness::{Freshness, LogTrust, LoggedSigners, StapleSubject};
use countersign_core::proof::{bundle::Staple, freshness};
use countersign_core::values::{digest::Sha256, digest::Sha512, path::RepoPath};
use countersign_testing::log_reader::{derive_leaves, root_of};
use flate2::read::GzDecoder;

use super::await_all;
use crate::support::metrics::{Page, await_value};
use crate::support::{
    Request, SignersFile, World, alice, bob, people::now, signers::days_ago, waiting::wait_until,
    witnesses::LogSetup, witnesses::log_key_of,
};

fn staple(world: &World, index: &str) -> Staple {
    let reply = world.server.get(&format!("/v1/proof/{index}"));
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert!(reply.body.len() < 6_000, "{} bytes", reply.body.len());
    Staple::parse(&reply.body).unwrap()
}

/// What a client learns from the staple, with the log's key from the server.
fn verify(world: &World, index: &str, signers: &[&SignersFile]) -> Freshness {
    let subject = StapleSubject {
        index_path: RepoPath::parse(index).unwrap(),
        index_digest: Sha512::of(&world.read(index)),
        project: RepoPath::parse(&world.id("acme/app")).unwrap(),
        signers: signers.iter().map(|file| Sha512::of(&file.bytes())).collect(),
        signer_keys: BTreeSet::new(),
    };
    let key = log_key_of(&world.server);
    freshness::verify(&staple(world, index), &subject, LogTrust::Key(&key), now()).unwrap()
}

#[test]
fn the_log_and_its_staples_say_what_the_repository_holds() {
    let world = LogSetup::default().start();
    let (alice, bob) = (alice(), bob());
    let first = SignersFile::of(1, &[&alice]);
    world.activate("acme/app", &first, &[&alice]);
    let one = world.add_signed_release("acme/app/1.0", &[&alice]);
    let two = world.add_signed_release("acme/app/2.0", &[&alice]);
    await_all(&world);
    assert_eq!(verify(&world, &two, &[&first]).newer, 0);
    let second = SignersFile::of(2, &[&alice, &bob]).redated(days_ago(1));
    world.rotate("acme/app", &second, &[&alice, &bob]);
    let three = world.add_signed_release("acme/app/3.0", &[&alice, &bob]);
    world.revoke(&alice, &one).ok();
    let newest = await_all(&world);

    let leaves = derive_leaves(&world.server.repository());
    assert_eq!(newest.size, leaves.len() as u64);
    assert_eq!(newest.root, root_of(&leaves));
    let proven = verify(&world, &one, &[&first, &second]);
    assert!(matches!(proven.state, LoggedState::Revoked(_)));
    assert_eq!((proven.newer, proven.signers), (2, LoggedSigners::Newest));
    let proven = verify(&world, &three, &[&first, &second]);
    assert_eq!((proven.state, proven.newer), (LoggedState::Complete, 0));
    assert_eq!(proven.checkpoint, newest);
    // An old chain of signers is noticed.
    assert_eq!(verify(&world, &two, &[&first]).signers, LoggedSigners::Replaced { history: 2 });
}

#[test]
fn tiles_and_metrics_are_those_of_a_clone() {
    let world = LogSetup::default().start();
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    let size = await_all(&world).size;
    assert_tiles(&world, size);
    assert_compressed(&world, size);
    assert_metrics(&world, size);
}

/// Tiles and entries are those of a clone, and can be kept for ever.
fn assert_tiles(world: &World, width: u64) {
    let leaves = derive_leaves(&world.server.repository());
    let hashes: Vec<u8> =
        leaves.iter().flat_map(|leaf| *Sha256::of(&[b"\0", leaf.as_bytes()].concat()).as_bytes()).collect();
    let entries: Vec<u8> = leaves
        .iter()
        .flat_map(|leaf| [&u16::try_from(leaf.len()).unwrap().to_be_bytes(), leaf.as_bytes()].concat())
        .collect();
    for (name, expected) in [("0", hashes), ("entries", entries)] {
        let reply = world.server.get(&format!("/log/tile/{name}/000.p/{width}"));
        assert_eq!((reply.status, &reply.body), (200, &expected));
        assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
        assert_eq!(reply.header("cache-control"), Some("public, max-age=31536000, immutable"));
        world.server.get(&format!("/log/tile/{name}/000.p/{}", width + 1)).refused(404, "does not cover");
        world.server.get(&format!("/log/tile/{name}/000")).refused(404, "does not cover");
        // The name is percent-decoded, and only once.
        for encoded in [
            format!("/{name}%2F%3000.p%2f{width}"),
            format!("%2F{name}%2f000.p%2F{width}"),
            format!("%2f{name}/000.p/{width}"),
        ] {
            let encoded = world.server.get(&format!("/log/tile{encoded}"));
            assert_eq!((encoded.status, &encoded.body), (200, &expected));
        }
        for odd in ["%252F0%2F000", "%2F", "%2F%2F0%2F000", "s%2F0%2F000", "%5C0%2F000"] {
            assert_eq!(world.server.get(&format!("/log/tile{odd}")).status, 404, "{odd}");
        }
        for odd in ["", "0", "000.p/0", "000.p/256", "x000/000", "000.p/", "000.p%252F1", "%ff", "..%2F000"] {
            let reply = world.server.get(&format!("/log/tile/{name}/{odd}"));
            reply.refused(404, "no tile");
        }
    }
    let reply = world.server.get("/log/checkpoint");
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(reply.header("cache-control"), Some("public, max-age=2"));
}

/// Bundles of entries are compressed for clients that accept it.
fn assert_compressed(world: &World, width: u64) {
    let target = format!("/log/tile/entries/000.p/{width}");
    let ask = |target: &str, accepted: &[&str]| {
        let request = accepted
            .iter()
            .fold(Request::get(target), |request, value| request.with_header("Accept-Encoding", value));
        world.server.send(&request)
    };
    let plain = ask(&target, &[]);
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), (None, Some("Accept-Encoding")));
    let packed = ask(&target, &["br, gzip", "identity;q=0.5"]);
    assert_eq!(
        (packed.header("content-encoding"), packed.header("vary")),
        (Some("gzip"), Some("Accept-Encoding"))
    );
    assert_eq!(packed.header("cache-control"), plain.header("cache-control"));
    assert_eq!(packed.header("content-type"), plain.header("content-type"));
    // There are two forms of the bytes, and a tag of one must not stand for the other. So there is no tag.
    assert_eq!((packed.header("etag"), plain.header("etag")), (None, None));
    let mut unpacked = Vec::new();
    GzDecoder::new(packed.body.as_slice()).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain.body);
    assert!(packed.body.len() < plain.body.len());
    for refused in
        ["gzip;q=0", "identity", "*;q=0", "br", "", "gzip;q=0.5, identity", "gzip;q=0, *", "gzip;q=2"]
    {
        let reply = ask(&target, &[refused]);
        assert_eq!((reply.header("content-encoding"), &reply.body), (None, &plain.body), "{refused}");
    }
    for accepted in ["GZIP", "x-gzip", "*", "gzip;q=0.001", "identity;q=0, *;q=0.1"] {
        assert_eq!(ask(&target, &[accepted]).body, packed.body, "{accepted}");
    }
    let head = world.server.send(&Request::head(&target).with_header("Accept-Encoding", "gzip"));
    assert_eq!((head.status, head.header("content-encoding")), (200, Some("gzip")));
    assert_eq!(head.header("content-length"), Some(packed.body.len().to_string().as_str()));
    assert!(head.body.is_empty());
    // Hashes do not become smaller.
    let hashes = ask(&format!("/log/tile/0/000.p/{width}"), &["gzip"]);
    assert_eq!((hashes.header("content-encoding"), hashes.header("vary")), (None, None));
    let missing = ask("/log/tile/entries/000", &["gzip"]);
    missing.refused(404, "does not cover");
    assert_eq!(missing.header("content-encoding"), None);
}

#[test]
fn a_release_without_a_staple_is_told_why() {
    let world = LogSetup::default().start();
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    let index = world.add_release(&alice(), "acme/app/1.0");
    await_all(&world);
    let ask = |path: &str| world.server.get(&format!("/v1/proof/{path}"));
    ask(&index).refused(404, "still collects signatures");
    ask(&world.index_path("acme/app/9.0")).refused(404, "not a release");
    ask(&world.active_path("acme/app")).refused(404, "");
    ask("../etc").refused(400, "");
    world.sign_all(&index, &[&alice()]);
    wait_until("the staple does not come", || {
        let reply = ask(&index);
        // Complete, and not in a checkpoint yet, or there.
        match reply.status {
            200 => true,
            404 => {
                reply.refused(404, "not in the log yet");
                assert!(reply.header("retry-after").is_some());
                false
            }
            other => panic!("{other}: {}", reply.text()),
        }
    });
}

/// Metrics tell how far it is.
fn assert_metrics(world: &World, size: u64) {
    let metrics = world.server.metrics_address();
    await_value(metrics, "countersign_log_signed_size", size as f64);
    let page = Page::read(metrics);
    assert_eq!(page.value("countersign_log_size"), size as f64);
    assert_eq!(page.value("countersign_log_cosigned_size"), size as f64);
    assert_eq!(page.value("countersign_log_lag_commits"), 0.0);
    assert_eq!(page.value("countersign_log_stopped"), 0.0);
    assert!(page.value("countersign_log_checkpoint_age_seconds") < 60.0);
}
