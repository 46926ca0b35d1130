//! The format of a log line.

use std::{fmt, fmt::Write as _};

use countersign_core::values::shown::shown_within;
use tracing::{Level, field::Field, field::Visit};
use tracing_subscriber::fmt::{format::Writer, time::FormatTime as _, time::SystemTime};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Text,
    /// Text with colours for a terminal.
    Coloured,
    Json,
}

/// The name and the fields of the span in which an event happened.
type Around<'a> = Option<(&'a str, &'a Fields)>;

/// One line, with its end.
pub(crate) fn write(style: Style, level: Level, around: Around<'_>, event: &Fields) -> String {
    let mut time = String::new();
    // Works before 1970 too.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    match style {
        Style::Text => text(&time, &format!("{:>5}", level.as_str()), around, event),
        Style::Coloured => {
            let level = format!("{}{:>5}\x1b[0m", colour(level), level.as_str());
            text(&format!("\x1b[2m{time}\x1b[0m"), &level, around, event)
        }
        Style::Json => json(&time, level, around, event),
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[35m",
    }
}

fn text(time: &str, level: &str, around: Around<'_>, event: &Fields) -> String {
    let mut line = format!("{time} {level} ");
    if let Some((name, fields)) = around {
        line.push_str(name);
        line.push('{');
        put_texts(&mut line, fields);
        line.push_str("}: ");
    }
    line.push_str(&event.message);
    if !event.message.is_empty() && !event.others.is_empty() {
        line.push(' ');
    }
    put_texts(&mut line, event);
    line.push('\n');
    line
}

fn put_texts(line: &mut String, fields: &Fields) {
    let is_in_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:+".contains(&byte);
    for (i, (name, value)) in fields.others.iter().enumerate() {
        let space = if i == 0 { "" } else { " " };
        // A single word needs no quotation marks.
        let shown = match value {
            Value::Text(value) if value.is_empty() || !value.bytes().all(is_in_word) => &quote(value),
            Value::Plain(value) | Value::Text(value) => value,
        };
        // Writing to a string cannot fail.
        let _ = write!(line, "{space}{name}={shown}");
    }
}

/// The text between the quotation marks is already escaped otherwise.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', r#"\""#))
}

fn json(time: &str, level: Level, around: Around<'_>, event: &Fields) -> String {
    let mut line = format!(r#"{{"timestamp":"{time}","level":"{level}""#);
    if !event.message.is_empty() {
        let _ = write!(line, r#","message":{}"#, quote(&event.message));
    }
    put_members(&mut line, event);
    if let Some((name, fields)) = around {
        let _ = write!(line, r#","span":{{"name":"{name}""#);
        put_members(&mut line, fields);
        line.push('}');
    }
    line.push_str("}\n");
    line
}

fn put_members(line: &mut String, fields: &Fields) {
    for (name, value) in &fields.others {
        let _ = match value {
            Value::Plain(value) => write!(line, r#","{name}":{value}"#),
            Value::Text(value) => write!(line, r#","{name}":{}"#, quote(value)),
        };
    }
}

// The values of a log line: escaped, and cut when they are long (D39, D48).

/// The most characters of a path, a URL, or anything else from outside.
pub(crate) const MAX_VALUE_CHARS: usize = 256;
/// The most characters of our own sentences, which can contain values from outside.
pub(crate) const MAX_SENTENCE_CHARS: usize = 1_024;
/// The most bytes of all values of an event, and again of its span, including escapes.
pub(crate) const MAX_VALUES_BYTES: usize = 1_792;

/// Values by name, in order of arrival.
#[derive(Debug)]
pub(crate) struct Fields {
    pub(crate) message: String,
    pub(crate) others: Vec<(&'static str, Value)>,
    room: usize,
}

#[derive(Debug)]
pub(crate) enum Value {
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
    pub(crate) fn of<const N: usize>(message: String, others: [(&'static str, Option<String>); N]) -> Self {
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

/// The length of the text with a backslash before each quotation mark and backslash.
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
