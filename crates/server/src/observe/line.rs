//! The format of a log line.

use std::fmt::Write as _;

use tracing::Level;
use tracing_subscriber::fmt::{
    format::Writer,
    time::{FormatTime as _, SystemTime},
};

use super::fields::{Fields, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Text,
    /// For a terminal.
    Coloured,
    Json,
}

/// The span in which an event happened.
pub(super) struct Around<'a> {
    pub(super) name: &'a str,
    pub(super) fields: &'a Fields,
}

/// One line, with its end.
pub(super) fn write(style: Style, level: Level, around: Option<Around<'_>>, event: &Fields) -> String {
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

fn text(time: &str, level: &str, around: Option<Around<'_>>, event: &Fields) -> String {
    let mut line = format!("{time} {level} ");
    if let Some(Around { name, fields }) = around {
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
    for (i, (name, value)) in fields.others.iter().enumerate() {
        let space = if i == 0 { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = match value {
            Value::Plain(value) => write!(line, "{space}{name}={value}"),
            Value::Text(value) if is_word(value) => write!(line, "{space}{name}={value}"),
            Value::Text(value) => write!(line, "{space}{name}={}", quote(value)),
        };
    }
}

/// Whether the value is a single word.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:+".contains(&byte))
}

/// The text between the quotation marks is already escaped otherwise.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', r#"\""#))
}

fn json(time: &str, level: Level, around: Option<Around<'_>>, event: &Fields) -> String {
    let mut line = format!(r#"{{"timestamp":"{time}","level":"{level}""#);
    if !event.message.is_empty() {
        let _ = write!(line, r#","message":{}"#, quote(&event.message));
    }
    put_members(&mut line, event);
    if let Some(Around { name, fields }) = around {
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
