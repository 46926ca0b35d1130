//! The values of a log line: escaped, and cut when they are long (D39, D48).

use std::fmt::{self, Write as _};

use countersign_core::values::shown::shown_within;
use tracing::field::{Field, Visit};

/// For a path, a URL, or anything else from outside.
pub(super) const MAX_VALUE_CHARS: usize = 256;
/// For our own sentences, which can contain such values.
pub(super) const MAX_SENTENCE_CHARS: usize = 1_024;
/// For all values of an event, and again of its span, including escapes.
pub(super) const MAX_VALUES_BYTES: usize = 1_792;

/// Values by name, in order of arrival.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) message: String,
    pub(super) others: Vec<(&'static str, Value)>,
    room: usize,
}

#[derive(Debug)]
pub(super) enum Value {
    /// A number or a boolean, which JSON writes as it is.
    Plain(String),
    Text(String),
}

impl Default for Fields {
    fn default() -> Self {
        Self { message: String::new(), others: Vec::new(), room: MAX_VALUES_BYTES }
    }
}

impl Fields {
    /// A line of our own.
    pub(super) fn of<const N: usize>(message: String, others: [(&'static str, Option<String>); N]) -> Self {
        let mut fields = Self::default();
        fields.put_text("message", &message);
        for (name, value) in others.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            fields.put_text(name, value);
        }
        fields
    }

    fn put_text(&mut self, name: &'static str, text: &str) {
        let is_sentence = matches!(name, "message" | "error" | "reason" | "source");
        let max_chars = if is_sentence { MAX_SENTENCE_CHARS } else { MAX_VALUE_CHARS };
        let mut shown = shown_within(text, max_chars);
        if quoted_length(&shown) > self.room {
            cut(&mut shown, self.room);
        }
        self.room = self.room.saturating_sub(quoted_length(&shown));
        match name {
            "message" => self.message = shown,
            _ => self.others.push((name, Value::Text(shown))),
        }
    }

    fn put_plain(&mut self, field: &Field, value: impl fmt::Display) {
        let text = value.to_string();
        self.room = self.room.saturating_sub(text.len());
        self.others.push((field.name(), Value::Plain(text)));
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.put_plain(field, value);
        } else {
            self.put_text(field.name(), &value.to_string());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put_plain(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put_plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put_plain(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut start = Start::default();
        // What does not fit is left out; nothing else can fail.
        let _ = write!(start, "{value:?}");
        self.put_text(field.name(), &start.0);
    }
}

/// The first part of a text, longer than what a line shows.
#[derive(Default)]
struct Start(String);

impl fmt::Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let enough = 4 * (MAX_SENTENCE_CHARS + 1);
        let left = enough.saturating_sub(self.0.len());
        let end =
            text.char_indices().map(|(start, c)| start + c.len_utf8()).take_while(|end| *end <= left).last();
        self.0.push_str(&text[..end.unwrap_or(0)]);
        Ok(())
    }
}

/// With a backslash before each quotation mark and backslash.
fn quoted_length(text: &str) -> usize {
    text.len() + text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

fn cut(text: &mut String, room: usize) {
    let room = room.saturating_sub('…'.len_utf8());
    let mut length = 0;
    let end = text.char_indices().find(|(_, c)| {
        length += c.len_utf8() + usize::from(matches!(c, '"' | '\\'));
        length > room
    });
    if let Some((end, _)) = end {
        text.truncate(end);
    }
    text.push('…');
}
