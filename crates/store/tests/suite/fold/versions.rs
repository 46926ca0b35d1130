//! Versions of a file or a directory, as they come by in a fold.

use countersign_store::{objects::pack::MAX_CHAIN, writer::fold::MAX_VERSION_BYTES, writer::fold::Versions};
use gix::objs::Kind;

/// A signatures file: a line for each key, and a long one for its signature.
fn set(file: &str, keys: impl Iterator<Item = usize>) -> Vec<u8> {
    let entry = |n: usize| {
        format!("    \"svc-pub:{n:043}\": {{\n      \"signature\": \"{file:>43}{n:043}==\"\n    }},\n")
    };
    keys.map(entry).collect::<String>().into_bytes()
}

/// A directory, with names in this order.
fn tree(names: impl Iterator<Item = usize>) -> Vec<u8> {
    let entry = |n: usize| [format!("100644 {n:0100}\0").into_bytes(), vec![n as u8; 20]].concat();
    names.flat_map(entry).collect()
}

#[test]
fn versions_of_a_directory_are_known_whichever_entry_is_another_one() {
    let mut versions = Versions::default();
    is_shortened(&mut versions, Kind::Tree, &tree(200..300));
    // Each time there is another first name.
    let grown = (1..=100).map(|n| tree(200 - n..300));
    let shortened = grown.filter(|tree| is_shortened(&mut versions, Kind::Tree, tree)).count();
    assert!((70..=99).contains(&shortened), "{shortened}");
}

fn is_shortened(versions: &mut Versions, kind: Kind, content: &[u8]) -> bool {
    static PLACE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(12);
    let place = PLACE.fetch_add(1_000, std::sync::atomic::Ordering::Relaxed);
    versions.shorten(kind, content.to_vec(), place, 0).is_some()
}

#[test]
fn versions_are_known_wherever_a_line_was_added() {
    let mut versions = Versions::default();
    is_shortened(&mut versions, Kind::Blob, &set("a", 100..200));
    // From the middle outwards, so that beginning and end change each time.
    let grown = (1..=100).map(|n| set("a", 100 - n..200 + n));
    let shortened = grown.filter(|set| is_shortened(&mut versions, Kind::Blob, set)).count();
    // By chance, a few have another line chosen; and a chain ends.
    assert!((70..=99).contains(&shortened), "{shortened}");
}

#[test]
fn chains_of_differences_end_where_they_would_become_too_long() {
    let content = set("a", 0..100);
    for height in [0, 1, MAX_CHAIN - 1, MAX_CHAIN] {
        let mut versions = Versions::default();
        let shorten =
            |n: u64| versions.shorten(Kind::Blob, content.clone(), 12 + 1_000 * n, height).is_some();
        let shortened: Vec<bool> = (0..200).map(shorten).collect();
        let longest = shortened.split(|is_shortened| !is_shortened).map(<[_]>::len).max();
        assert_eq!(longest, Some(MAX_CHAIN - height), "upon each there are {height}");
    }
}

#[test]
fn sets_of_the_same_keys_on_different_files_do_not_come_between_each_other() {
    let mut versions = Versions::default();
    let mut shortened = 0;
    for n in 100..116 {
        for file in ["signers", "metadata"] {
            shortened += usize::from(is_shortened(&mut versions, Kind::Blob, &set(file, 0..n)));
        }
    }
    assert!(shortened >= 24, "{shortened}");
    assert!(versions.newest.len() <= 8);
}

#[test]
fn a_difference_is_to_an_object_of_its_own_kind() {
    let mut versions = Versions::default();
    let same = tree(0..100);
    assert!(!is_shortened(&mut versions, Kind::Blob, &same));
    assert!(!is_shortened(&mut versions, Kind::Tree, &same));
    assert!(is_shortened(&mut versions, Kind::Blob, &same));
    assert!(is_shortened(&mut versions, Kind::Tree, &same));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut versions = Versions::default();
    for n in 0..100 {
        let unlike = set(&n.to_string(), 0..5_000);
        assert!(unlike.len() > 800_000);
        is_shortened(&mut versions, Kind::Blob, &unlike);
        assert!(versions.bytes <= MAX_VERSION_BYTES + unlike.len());
        assert_eq!(
            versions.bytes,
            versions.newest.values().map(|version| version.content.len()).sum::<usize>()
        );
    }
    assert!(versions.newest.len() < 100);
}
