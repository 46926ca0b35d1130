//! How text from outside appears in messages (D39).

use countersign_core::values::shown::{shown_count, shown_text};

#[test]
fn invisible_characters_are_escaped_and_long_text_is_cut() {
    assert_eq!(shown_text("a\u{202e}b\r\n\u{1b}[1m"), "a\\u{202e}b\\u{d}\\u{a}\\u{1b}[1m");
    assert_eq!(shown_text(&"ü".repeat(5_000)).chars().count(), 301);
}

#[test]
fn counts_have_separators_for_thousands() {
    for (count, shown) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
        assert_eq!(shown_count(count), shown);
    }
}
