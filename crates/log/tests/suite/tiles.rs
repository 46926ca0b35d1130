//! Tiles and entries, read by their specification alone.

use countersign_core::{log::tile::TileName, values::digest::Sha256};
use countersign_log::{NoTile, TransparencyLog};
use countersign_testing::log_reader::{derive_leaves, root_of};

use crate::support::{Fixture, publish};

fn tile(log: &TransparencyLog, name: &str) -> Result<Vec<u8>, NoTile> {
    log.tile(&TileName::parse(name).unwrap_or_else(|| panic!("{name} is a name")))
}

fn entries(bundle: &[u8]) -> Vec<String> {
    let (mut rest, mut entries) = (bundle, Vec::new());
    while let Some(([high, low], after)) = rest.split_first_chunk::<2>() {
        let (entry, after) = after.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        entries.push(String::from_utf8(entry.to_vec()).unwrap());
        rest = after;
    }
    entries
}

fn leaf_hash(text: &str) -> Sha256 {
    Sha256::of(&[b"\0", text.as_bytes()].concat())
}

#[test]
fn they_hold_every_leaf_and_every_full_subtree() {
    let fixture = Fixture::in_memory();
    let log = fixture.start_log();
    for number in 0..299 {
        fixture.commit(publish(&format!("https/a.example/443/one/releases/v{number}")));
    }
    let newest = fixture.wait_for_all(&log);
    assert_eq!(newest.checkpoint().size, 300);
    let bundles = ["entries/000", "entries/001.p/44"].map(|name| entries(&tile(&log, name).unwrap()));
    let leaves = bundles.concat();
    assert_eq!(leaves, derive_leaves(&fixture.repository()));
    assert_eq!(root_of(&leaves), newest.checkpoint().root);
    for (bundle, name) in bundles.iter().zip(["0/000", "0/001.p/44"]) {
        let hashes: Vec<u8> = bundle.iter().flat_map(|leaf| *leaf_hash(leaf).as_bytes()).collect();
        assert_eq!(tile(&log, name).unwrap(), hashes, "{name}");
    }
    assert_eq!(tile(&log, "1/000.p/1").unwrap(), root_of(&bundles[0]).as_bytes());
    // Any smaller tile of a signed size stays there.
    assert_eq!(tile(&log, "0/001.p/7").unwrap(), tile(&log, "0/001.p/44").unwrap()[..7 * 32]);
    assert_eq!(entries(&tile(&log, "entries/000.p/255").unwrap()), bundles[0][..255]);
    for name in [
        "0/001",
        "0/001.p/45",
        "0/002.p/1",
        "1/000",
        "1/000.p/2",
        "2/000.p/1",
        "63/000.p/1",
        "entries/001",
        "entries/001.p/45",
        "0/x999/x999/x999/x999/x999/999",
    ] {
        assert!(matches!(tile(&log, name), Err(NoTile::NotCovered)), "{name}");
    }
}

#[test]
fn a_tile_has_one_name() {
    for name in ["0/000", "63/x001/x234/067.p/255", "entries/x001/000", "entries/999.p/1"] {
        assert!(TileName::parse(name).is_some(), "{name}");
    }
    for name in [
        "",
        "0",
        "0/",
        "/000",
        "00/000",
        "+0/000",
        "64/000",
        "-1/000",
        "x/000",
        "0/0",
        "0/0000",
        "0/x000/001",
        "0/001/002",
        "0/x001",
        "0/x001/x002",
        "0/000.p/0",
        "0/000.p/256",
        "0/000.p/01",
        "0/000.p/",
        "0/000.p",
        "0/000.p/1/",
        "0/000/",
        "entries",
        "entries/",
        "Entries/000",
        "0/ 00",
        "0/+00",
        "0/٠٠٠",
        "0/x001/x000/x000/x000/x000/x000/000",
    ] {
        assert!(TileName::parse(name).is_none(), "{name}");
    }
}

#[test]
fn before_the_first_checkpoint_there_are_none() {
    let fixture = Fixture::new();
    let options = countersign_log::LogOptions { waits_for_witnesses: true, ..fixture.options() };
    let log = TransparencyLog::start(fixture.store(), options).unwrap();
    assert!(matches!(tile(&log, "0/000.p/1"), Err(NoTile::CatchingUp)));
    assert!(log.checkpoint_note().is_none());
}
