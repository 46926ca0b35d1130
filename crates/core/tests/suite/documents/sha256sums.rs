//! The `SHA256SUMS` that an index gives (D110).

use countersign_core::documents::index::{
    AssetName, Digests, NotInSha256Sums, PublishedFile, ReleaseIndex, render_sha256sums,
};
use countersign_core::values::{digest::Sha256, digest::Sha512};
use countersign_testing::PROJECT;
use countersign_testing::evidence::{checksums_index, file};

fn name(text: &str) -> AssetName {
    AssetName::parse(text).unwrap()
}

/// An index of files whose content is their name.
fn index(names: &[&str]) -> ReleaseIndex {
    checksums_index(PROJECT, names.iter().map(|name| file(name, "", name)).collect())
}

#[test]
fn each_file_is_a_line_as_sha256sum_prints_it() {
    let expected = format!("{}  a.zip\n{}  b\n", Sha256::of(b"a.zip"), Sha256::of(b"b"));
    assert_eq!(render_sha256sums(&index(&["a.zip", "b"])).unwrap(), expected);
}

#[test]
fn names_may_have_what_a_line_can_hold() {
    for odd in ["a b", "a  b", "dir/b", "-rf", "--", "$(id)", "it's", "\"q\"", "a*", "#a", "é", "(x) = y"] {
        let text = render_sha256sums(&index(&[odd])).unwrap();
        assert_eq!(text, format!("{}  {odd}\n", Sha256::of(odd.as_bytes())));
    }
}

#[test]
fn a_name_that_some_reader_takes_for_another_is_refused() {
    for odd in ["-", " a", "*a", "a ", " "] {
        let refusal = render_sha256sums(&index(&[odd, "z"])).unwrap_err();
        assert_eq!(refusal, NotInSha256Sums::Name(name(odd)));
        assert!(refusal.to_string().contains(&format!("\"{odd}\"")), "{refusal}");
    }
    // These cannot even be in an index.
    for odd in ["a\\b", "a\nb", "a\rb", "a\u{a0}b", "", "..", "/a"] {
        assert!(AssetName::parse(odd).is_err(), "{odd:?}");
    }
}

#[test]
fn a_file_without_a_sha256_is_refused_by_name() {
    let digests = Digests { sha256: None, sha512: Some(Sha512::of(b"b")) };
    let files = vec![file("a", "", "a"), PublishedFile { digests, ..file("b", "", "b") }];
    let refusal = render_sha256sums(&checksums_index(PROJECT, files)).unwrap_err();
    assert_eq!(refusal, NotInSha256Sums::Undigested(name("b")));
    assert_eq!(refusal.to_string(), "its index has no SHA-256 of \"b\"");
}

#[test]
fn a_release_without_files_is_refused() {
    assert_eq!(render_sha256sums(&index(&[])).unwrap_err(), NotInSha256Sums::Empty);
}
