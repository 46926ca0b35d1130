//! How text from outside appears in messages (D39).

use countersign_core::values::shown::{marked_name, shown_count, shown_text};

#[test]
fn invisible_characters_are_escaped_and_long_text_is_cut() {
    assert_eq!(shown_text("a\u{202e}b\r\n\u{1b}[1m"), "a\\u{202e}b\\u{d}\\u{a}\\u{1b}[1m");
    assert_eq!(shown_text(&"ü".repeat(5_000)).chars().count(), 301);
}

/// D228.
#[test]
fn a_name_with_characters_outside_ascii_says_which() {
    for name in ["acme/app", "v1.0-rc.1+build", ""] {
        assert_eq!(marked_name(name), name);
    }
    for (name, shown) in [
        ("acme/\u{430}pp", "acme/\u{430}pp (with U+0430)"),
        ("acme\u{2215}app", "acme\u{2215}app (with U+2215)"),
        ("b\u{fc}ro b\u{fc}ro", "b\u{fc}ro b\u{fc}ro (with U+00FC)"),
        ("\u{1d5ba}pp", "\u{1d5ba}pp (with U+1D5BA)"),
        ("\u{430}\u{440}\u{440}", "\u{430}\u{440}\u{440} (with U+0430, U+0440)"),
        (
            "\u{441}\u{43e}\u{430}\u{442}\u{435}",
            "\u{441}\u{43e}\u{430}\u{442}\u{435} (with U+0441, U+043E, U+0430 and 2 more)",
        ),
        // What cannot be seen is escaped anyway.
        ("a\u{200b}b", "a\\u{200b}b"),
    ] {
        assert_eq!(marked_name(name), shown);
    }
}

#[test]
fn counts_have_separators_for_thousands() {
    for (count, shown) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
        assert_eq!(shown_count(count), shown);
    }
}
