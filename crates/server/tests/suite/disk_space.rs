//! When a disk counts as nearly full (D57).

use countersign_server::operate::disk_space::DiskSpace;

const GIB: u64 = 1 << 30;

#[test]
fn a_disk_is_low_below_a_gibibyte_or_below_five_percent() {
    for (free, size, is_low) in [
        (GIB, 2 * GIB, false),
        (GIB - 1, 2 * GIB, true),
        (5 * GIB, 100 * GIB, false),
        (5 * GIB - 1, 100 * GIB, true),
        (0, 0, true),
    ] {
        assert_eq!(DiskSpace { free, size }.is_low(), is_low, "{free} of {size}");
    }
}

#[test]
fn a_directory_has_a_disk_with_a_size() {
    let dir = tempfile::TempDir::new().unwrap();
    let space = DiskSpace::of(dir.path()).unwrap();
    assert!(space.size > 0 && space.free <= space.size, "{space:?}");
    DiskSpace::of(&dir.path().join("none")).unwrap_err();
}
