//! The stricter rules for directories that a stranger named and under which we store files (D6).

use countersign_core::documents::{index::AssetName, signers::SignersFile};
use countersign_core::values::{path::RepoPath, shown::shown_text};
use countersign_testing::{alice, assert_mentions, signers, steady};
use proptest::prelude::*;

/// Whether a directory of this name may hold our files.
fn is_storable(name: &str) -> bool {
    RepoPath::parse(&format!("https/example.org/443/{name}/v1"))
        .is_ok_and(|dir| dir.check_storable_dir().is_ok())
}

#[track_caller]
fn assert_refused(name: &str) {
    assert!(!is_storable(name), "{name:?} is accepted");
}

/// What `git fsck --strict` (2.47) says about a *directory* of this name, after its `is_ntfs_dot_generic` and its
/// relatives in path.c and utf8.c.
fn git_fsck_rejects(name: &str) -> bool {
    let ignored_by_hfs = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let hfs: String = name.chars().filter(|c| !ignored_by_hfs(*c)).collect::<String>().to_ascii_lowercase();
    if [".git", ".gitmodules", ".gitattributes"].contains(&hfs.as_str()) {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    let ends_for_ntfs =
        |rest: &str| rest.split(':').next().is_some_and(|rest| rest.chars().all(|c| matches!(c, ' ' | '.')));
    let is_ntfs = |base: &str| lower.strip_prefix(base).is_some_and(ends_for_ntfs);
    let plain = [".git", "git~1", ".gitmodules", ".gitattributes"];
    let shortened = (1..=4).flat_map(|n| [format!("gitmod~{n}"), format!("gitatt~{n}")]);
    plain.into_iter().any(is_ntfs)
        || shortened.into_iter().any(|base| is_ntfs(&base))
        || ["gi7eba", "gi7d29"].into_iter().any(|prefix| is_ntfs_fallback(&lower, prefix, ends_for_ntfs))
}

/// The short name that NTFS falls back to: eight characters, of which the last are `~` and a number.
fn is_ntfs_fallback(lower: &str, prefix: &str, ends: impl Fn(&str) -> bool) -> bool {
    let Some((short, rest)) = lower.split_at_checked(8) else { return false };
    let Some((start, number)) = short.split_once('~') else { return false };
    let counts = number.bytes().all(|b| b.is_ascii_digit()) && !number.starts_with('0') && !number.is_empty();
    prefix.starts_with(start) && counts && ends(rest)
}

/// Names that look like the ones Git minds, with whatever around them.
fn any_name() -> impl Strategy<Value = String> {
    let start = prop_oneof![
        Just(".git"),
        Just(".gitmodules"),
        Just(".GitAttributes"),
        Just("git"),
        Just("gitmod"),
        Just("gi7eba"),
        Just("gi7eb"),
        Just("gi7d2"),
        Just("gi"),
        Just("svc"),
        Just("v1"),
        Just(""),
        Just(".mailmap"),
    ];
    let piece = prop_oneof![
        Just("~1"),
        Just("~12"),
        Just("~1234567"),
        Just("~"),
        Just("."),
        Just(" "),
        Just(":x"),
        Just("::$DATA"),
        Just("\u{200c}"),
        Just("\u{feff}"),
        Just("a"),
        Just("7"),
        Just("e\u{301}"),
    ];
    (start, prop::collection::vec(piece, 0..4))
        .prop_map(|(start, pieces)| format!("{start}{}", pieces.concat()))
}

proptest! {
    #![proptest_config(steady())]

    #[test]
    fn git_fsck_accepts_every_name_that_we_accept(name in prop_oneof![any_name(), "[gGiI7eEbBaAdD29]{0,6}~[0-9]{1,7}"]) {
        prop_assert!(!is_storable(&name) || !git_fsck_rejects(&name), "{name:?}");
    }

    #[test]
    fn any_name_is_accepted_or_refused_without_a_panic(name in any::<String>()) {
        if is_storable(&name) {
            prop_assert!(!name.ends_with(['.', ' ']) && !name.chars().any(char::is_control), "{name:?}");
            prop_assert!(name.split('/').all(|part| part.len() <= 200), "{name:?}");
        }
    }
}

#[test]
fn ordinary_names_are_accepted() {
    for name in [
        "v1.0.0", "release-2026", "1.0~rc.x", ".hidden", "Ünïcode", "日本", "svc", "svcs.x", "a~", "~a",
        "~x1",
    ] {
        assert!(is_storable(name), "{name:?} is refused");
    }
}

#[test]
fn names_that_begin_like_ours_are_refused_in_any_letter_case() {
    for name in ["svc.signers", "svc.", "SVC.index.json", "sVc.anything"] {
        assert_refused(name);
    }
    let host = RepoPath::parse("https/svc.example.org/443/pool").unwrap();
    assert_eq!(host.check_storable_dir(), Ok(()), "a host may");
}

#[test]
fn the_names_that_git_reads_are_refused_in_every_spelling() {
    for name in [".git", ".gitmodules", ".gitattributes", ".gitignore", ".mailmap"] {
        assert_refused(name);
        assert_refused(&name.to_ascii_uppercase());
        // So NTFS reads them.
        for rest in [":x", "::$INDEX_ALLOCATION", " .:x", ". .:x"] {
            assert_refused(&format!("{name}{rest}"));
        }
        // So HFS reads them.
        for ignored in "\u{200c}\u{200d}\u{200e}\u{200f}\u{202e}\u{206a}\u{206f}\u{feff}".chars() {
            assert_refused(&format!("{ignored}{name}"));
            assert_refused(&format!("{name}{ignored}"));
            assert_refused(
                &name.replace(".g", &format!(".g{ignored}")).replace(".m", &format!(".m{ignored}")),
            );
        }
    }
}

/// NTFS has a short name for each. `git fsck --strict` answers `gitmodulesBlob: non-blob found at .gitmodules` to
/// directories that are named like those it falls back to, with any number.
#[test]
fn any_name_that_ends_in_a_tilde_and_digits_is_refused() {
    for name in [
        "git", "GIT", "gitmod", "gitatt", "gitign", "mailma", "gi7eba", "gi7d29", "gi250a", "maba30", "v1",
        "",
    ] {
        for number in ["0", "1", "4", "9"] {
            assert_refused(&format!("{name}~{number}"));
        }
        assert_refused(&format!("{name}~1:x"));
        assert_refused(&format!("{name}~1 .:x"));
    }
    for name in ["gi7eb~10", "gi7e~100", "gi~12345", "~1234567", "gi7d2~10", "GI7EB~99", "gi7eb~10:x"] {
        assert_refused(name);
    }
}

#[test]
fn a_name_is_in_nfc_has_at_most_200_bytes_and_ends_in_neither_dot_nor_space() {
    for name in ["caf\u{e9}".to_owned(), "a".repeat(200), "é".repeat(100)] {
        assert!(is_storable(&name), "{name}");
    }
    for name in
        ["cafe\u{301}", "\u{212b}", "v1.", "v1 ", "v1...", "v1. ", "...", &"a".repeat(201), &"é".repeat(101)]
    {
        assert_refused(name);
    }
    for c in "\u{7f}\u{9f}\u{ad}\u{200b}\u{202e}\u{2028}\u{2029}\u{2066}\u{e0001}".chars() {
        assert_refused(&format!("v{c}1"));
    }
}

/// They are of any class: fillers are letters, joiners and variation selectors are marks, the Braille blank is a sign.
#[test]
fn characters_that_look_like_nothing_are_refused() {
    let blank = "\u{3164}\u{115f}\u{1160}\u{ffa0}\u{2800}\u{34f}\u{fe00}\u{fe0f}\u{17b4}\u{17b5}\u{1d159}\u{a0}\u{3000}\
                 \u{1680}\u{2000}\u{2007}\u{202f}\u{205f}\u{180b}\u{180e}\u{180f}\u{e0100}\u{e01ef}\u{2065}\u{fff0}\u{e0fff}";
    for c in blank.chars() {
        for name in [format!("v{c}1"), format!("{c}"), format!("v1{c}")] {
            assert_refused(&name);
            assert!(AssetName::parse(&name).is_err(), "{c:?}");
        }
        let signers = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).text();
        let named = signers.replacen("\"kind\"", &format!("\"name\": \"a{c}b\", \"kind\""), 1);
        assert!(SignersFile::parse(named.replace(c, "c").as_bytes()).is_ok(), "{named}");
        let error = SignersFile::parse(named.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("blank"), "{c:?}: {error}");
        assert!(!shown_text(&format!("a{c}b")).contains(c), "{c:?} is shown raw");
    }
    for name in ["a b", "ü", "名前", "한글", "\u{1100}\u{1161}x", "a\u{5d0}", "⠁", "v1.0-α_β+γ", "𝅘𝅥"]
    {
        assert!(AssetName::parse(name).is_ok(), "{name}");
        assert_eq!(shown_text(name), name);
    }
    for name in ["a b", "ü", "名前", "한글", "v1.0-α_β+γ"] {
        assert!(is_storable(name), "{name}");
    }
}

#[test]
fn every_segment_after_the_port_is_checked() {
    for dir in ["https/h/443/svc.x", "https/h/443/a/svc.x/b", "https/h/443/a/b/svc.x"] {
        let error = RepoPath::parse(dir).unwrap().check_storable_dir().unwrap_err();
        assert_mentions(&error.to_string(), &["svc.x"]);
    }
}
