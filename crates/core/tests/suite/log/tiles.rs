//! Names of tiles are those of the specification, and are read back.

use countersign_core::log::tile::{TileKind, TileName};
use proptest::prelude::*;

#[test]
fn tiles_have_the_names_of_the_specification() {
    let names = [
        (0, 1, "000.p/1"),
        (0, 255, "000.p/255"),
        (0, 256, "000"),
        (1, 256, "001"),
        (1, 300, "001.p/44"),
        (999, 256_000, "999"),
        (1_000, 256_001, "x001/000.p/1"),
        (1_234_067, 1_234_067 * 256 + 8, "x001/x234/067.p/8"),
    ];
    for (number, there, name) in names {
        let entries = TileName::new(TileKind::Entries, number, there);
        assert_eq!(entries.to_string(), format!("entries/{name}"));
        let hashes = TileName::new(TileKind::Hashes { level: 7 }, number, there);
        assert_eq!(hashes.to_string(), format!("7/{name}"));
    }
}

#[test]
fn a_tile_needs_the_leaves_below_it_and_has_one_spelling() {
    let needed = |kind, number, there| TileName::new(kind, number, there).needed();
    assert_eq!(needed(TileKind::Entries, 2, 517), Some(517));
    assert_eq!(needed(TileKind::Hashes { level: 1 }, 2, 517), Some(517 * 256));
    assert_eq!(needed(TileKind::Hashes { level: 8 }, 0, 1), None, "more than numbers can count");
    for other in ["entries/000.p/0", "entries/00", "entries/0000", "entries/0a1", "64/000", "x/000"] {
        assert_eq!(TileName::parse(other), None, "{other}");
    }
}

proptest! {
    #![proptest_config(countersign_testing::steady())]

    #[test]
    fn a_name_is_read_back_as_it_was_written(number in 0..10_u64.pow(15), filled in 0..300_u64, level in 0..64_u8) {
        let there = number * 256 + filled;
        for kind in [TileKind::Entries, TileKind::Hashes { level }] {
            let name = TileName::new(kind, number, there);
            prop_assert_eq!(TileName::parse(&name.to_string()), Some(name));
            prop_assert_eq!(name.range().start, number * 256);
        }
    }
}
