//! Tiles and entries, read by their specification alone.

use std::{cell::Cell, io::Read as _, sync::Arc};

use countersign_core::log::tile::TileName;
use countersign_core::values::{bounds::PACKED_BUNDLES_BYTES, digest::Sha256};
use countersign_log::{NoTile, PackedBundles, TransparencyLog};
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
        "0/001", "0/001.p/45", "0/002.p/1", "1/000", "1/000.p/2", "2/000.p/1", "63/000.p/1", "entries/001",
        "entries/001.p/45", "0/x999/x999/x999/x999/x999/999",
    ] {
        assert!(matches!(tile(&log, name), Err(NoTile::NotCovered)), "{name}");
    }
    // A full bundle is compressed once, and a partial one each time.
    let packed = |name| log.packed_bundle(&TileName::parse(name).unwrap()).unwrap();
    for (name, is_kept) in [("entries/000", true), ("entries/001.p/44", false), ("entries/000.p/255", false)]
    {
        let (first, second) = (packed(name), packed(name));
        assert_eq!(unpack(&first), tile(&log, name).unwrap(), "{name}");
        assert_eq!(first, second);
        assert_eq!(Arc::ptr_eq(&first, &second), is_kept, "{name}");
        assert!(first.len() * 100 < tile(&log, name).unwrap().len() * 55, "{name}: {} bytes", first.len());
    }
    for name in ["entries/001", "entries/001.p/45", "entries/002.p/1"] {
        let refused = log.packed_bundle(&TileName::parse(name).unwrap());
        assert!(matches!(refused, Err(NoTile::NotCovered)), "{name}");
    }
}

fn unpack(gzip: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(gzip).read_to_end(&mut plain).unwrap();
    plain
}

#[test]
fn compressed_bundles_take_no_more_memory_than_their_bound() {
    let (bundles, made) = (PackedBundles::default(), Cell::new(0));
    let noise: Vec<u8> = (0..2_048_u32).flat_map(|n| *Sha256::of(&n.to_be_bytes()).as_bytes()).collect();
    let ask = |number: u32| {
        let read = || {
            made.set(made.get() + 1);
            Ok(noise.clone())
        };
        bundles.find(Some(Sha256::of(&number.to_be_bytes())), read).unwrap()
    };
    assert_eq!((ask(0), made.get()), (ask(0), 1));
    let most = u32::try_from(PACKED_BUNDLES_BYTES / noise.len()).unwrap();
    for number in 0..4 * most {
        ask(number);
        assert!(bundles.bytes() <= PACKED_BUNDLES_BYTES as u64);
    }
    assert!(bundles.bytes() > PACKED_BUNDLES_BYTES as u64 / 2, "it is used: {}", bundles.bytes());
    assert_eq!(made.get(), 4 * most);
}

#[test]
fn a_tile_has_one_name() {
    for name in ["0/000", "63/x001/x234/067.p/255", "entries/x001/000", "entries/999.p/1"] {
        assert!(TileName::parse(name).is_some(), "{name}");
    }
    for name in [
        "", "0", "0/", "/000", "00/000", "+0/000", "64/000", "-1/000", "x/000", "0/0", "0/0000",
        "0/x000/001", "0/001/002", "0/x001", "0/x001/x002", "0/000.p/0", "0/000.p/256", "0/000.p/01",
        "0/000.p/", "0/000.p", "0/000.p/1/", "0/000/", "entries", "entries/", "Entries/000", "0/ 00",
        "0/+00", "0/٠٠٠", "0/x001/x000/x000/x000/x000/x000/000",
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
