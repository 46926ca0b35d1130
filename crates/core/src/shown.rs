//! How text from outside appears in our messages (D39): nothing raw that could rewrite a line, and no endless line.

use crate::path::is_deceptive;

const MAX_SHOWN_CHARS: usize = 300;

/// Text with control and invisible characters escaped, and cut where it gets long.
pub fn shown_text(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == MAX_SHOWN_CHARS {
            shown.push('…');
            break;
        }
        if is_deceptive(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped_and_long_text_is_cut() {
        assert_eq!(shown_text("a\u{202e}b\r\n\u{1b}[1m"), "a\\u{202e}b\\u{d}\\u{a}\\u{1b}[1m");
        assert_eq!(shown_text(&"ü".repeat(5_000)).chars().count(), MAX_SHOWN_CHARS + 1);
    }
}
