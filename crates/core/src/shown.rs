//! How text from outside appears in our messages (D39): nothing raw that could rewrite a line, and no endless line.

use crate::path::is_deceptive;

const MAX_SHOWN_CHARS: usize = 300;

/// Text with control and invisible characters escaped, and cut where it gets long.
pub fn shown_text(text: &str) -> String {
    let (mut shown, mut count) = (String::new(), 0);
    for c in text.chars() {
        let escaped = is_deceptive(c).then(|| c.escape_unicode());
        count += escaped.as_ref().map_or(1, ExactSizeIterator::len);
        if count > MAX_SHOWN_CHARS {
            shown.push('…');
            break;
        }
        match escaped {
            Some(escaped) => shown.extend(escaped),
            None => shown.push(c),
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
