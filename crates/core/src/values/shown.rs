//! How text from outside appears in our messages (D39): nothing raw that could rewrite a line, and no endless line.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

const MAX_SHOWN_CHARS: usize = 300;
/// The most characters that are marked; more of them say no more.
const MAX_MARKED_CHARS: usize = 3;

/// Shows text with control and invisible characters escaped, and cuts it where it gets long.
pub fn shown_text(text: &str) -> String {
    shown_within(text, MAX_SHOWN_CHARS)
}

/// Shows text with control and invisible characters escaped, of at most `max_chars`.
pub fn shown_within(text: &str, max_chars: usize) -> String {
    let (mut shown, mut count) = (String::new(), 0);
    for c in text.chars() {
        let escaped = is_unseen(c).then(|| c.escape_unicode());
        count += escaped.as_ref().map_or(1, ExactSizeIterator::len);
        if count > max_chars {
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

/// The name of a project, a release or a file as people read it (D228). A character outside ASCII can look like another
/// one, so its code stands behind the name, as in `acme/аpp (with U+0430)`.
pub fn marked_name(name: &str) -> String {
    let mut foreign: Vec<char> = Vec::new();
    for c in name.chars().filter(|c| !c.is_ascii() && !is_unseen(*c)) {
        if !foreign.contains(&c) {
            foreign.push(c);
        }
    }
    let codes: Vec<String> =
        foreign.iter().take(MAX_MARKED_CHARS).map(|c| format!("U+{:04X}", u32::from(*c))).collect();
    let shown = shown_text(name);
    match foreign.len().saturating_sub(MAX_MARKED_CHARS) {
        _ if foreign.is_empty() => shown,
        0 => format!("{shown} (with {})", codes.join(", ")),
        more => format!("{shown} (with {} and {more} more)", codes.join(", ")),
    }
}

/// A size in KiB, or in MiB where it is whole.
pub fn shown_bytes(bytes: usize) -> String {
    match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

/// Writes a count with separators for thousands.
pub fn shown_count(count: usize) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// The end of a noun that follows this number.
pub fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Shows text from outside between quotation marks that it cannot close itself.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", shown_text(&text.replace('\\', r"\\").replace('"', r#"\""#)))
}

/// Whether a character looks like nothing, changes what others look like, or breaks a line (D43): control and format
/// characters, every space but the plain one, what Unicode calls default-ignorable, and two that fonts draw blank.
/// No stored name has one, and shown text has them escaped.
pub fn is_unseen(c: char) -> bool {
    match c.general_category() {
        GeneralCategory::Control
        | GeneralCategory::Format
        | GeneralCategory::LineSeparator
        | GeneralCategory::ParagraphSeparator => true,
        GeneralCategory::SpaceSeparator => c != ' ',
        _ => is_ignorable(c) || is_drawn_blank(c),
    }
}

/// The property `Default_Ignorable_Code_Point`, without what is a format character anyway. It names whole ranges, so that
/// characters which later versions of Unicode put there are in it already.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2065}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The empty Braille pattern and the null note head: letters and signs by their class.
fn is_drawn_blank(c: char) -> bool {
    matches!(c, '\u{2800}' | '\u{1d159}')
}
