//! The format of a log line.

use std::fmt::Write as _;

use tracing::Level;
use tracing_subscriber::fmt::{
    format::Writer,
    time::{FormatTime as _, SystemTime},
};

use super::fields::{Fields, Value};

/// Longer than any line: two sets of values, their names, the time and the level.
#[cfg(test)]
pub(super) const MAX_LINE_BYTES: usize = 4_096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Text,
    /// For a terminal.
    Coloured,
    Json,
}

/// One line, with its end. `around` is the span in which the event happened.
pub(super) fn write(style: Style, level: Level, around: Option<(&str, &Fields)>, event: &Fields) -> String {
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

fn text(time: &str, level: &str, around: Option<(&str, &Fields)>, event: &Fields) -> String {
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

fn json(time: &str, level: Level, around: Option<(&str, &Fields)>, event: &Fields) -> String {
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::Value as Json;
    use tracing::{Event, Subscriber, span};
    use tracing_subscriber::{
        Layer,
        layer::{Context, SubscriberExt as _},
        registry::LookupSpan,
    };

    use super::*;
    use crate::observe::fields::{MAX_SENTENCE_CHARS, MAX_VALUE_CHARS};

    /// What `work` logs in this style within one span.
    fn logged(style: Style, work: impl FnOnce()) -> String {
        struct Written(Style, Arc<Mutex<String>>);
        impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Written {
            fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
                let mut fields = Fields::default();
                attributes.record(&mut fields);
                context.span(id).unwrap().extensions_mut().insert(fields);
            }

            fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
                let mut fields = Fields::default();
                event.record(&mut fields);
                let span = context.event_span(event);
                let extensions = span.as_ref().map(|span| span.extensions());
                let around = extensions.as_ref().and_then(|extensions| extensions.get::<Fields>());
                let around = around.map(|fields| ("request", fields));
                self.1.lock().unwrap().push_str(&write(self.0, Level::INFO, around, &fields));
            }
        }
        let text = Arc::default();
        let subscriber = tracing_subscriber::registry().with(Written(style, Arc::clone(&text)));
        tracing::subscriber::with_default(subscriber, work);
        std::mem::take(&mut text.lock().unwrap())
    }

    fn log_path(path: &str) {
        let _entered = tracing::info_span!("request", method = %"POST", path).entered();
        tracing::info!(status = 404_u16, ms = 1.5, "answered");
    }

    #[test]
    fn a_line_says_when_how_bad_which_request_and_what() {
        let text = logged(Style::Text, || log_path("/v1/assets"));
        let (time, rest) = text.split_once(' ').unwrap();
        assert!(time.ends_with('Z') && time.len() == "2026-01-01T00:00:00.000000Z".len(), "{time}");
        assert_eq!(rest, " INFO request{method=POST path=/v1/assets}: answered status=404 ms=1.5\n");
        let json: Json = serde_json::from_str(&logged(Style::Json, || log_path("/v1/assets"))).unwrap();
        assert_eq!((&json["level"], &json["message"]), (&"INFO".into(), &"answered".into()));
        assert_eq!((&json["status"], &json["ms"]), (&404.into(), &1.5.into()));
        assert_eq!(
            json["span"],
            serde_json::json!({ "name": "request", "method": "POST", "path": "/v1/assets" })
        );
    }

    #[test]
    fn text_from_outside_makes_neither_a_line_nor_a_value_of_its_own() {
        let path = "/a\nstatus=200 \"b\" \\ \u{202e}\u{1b}[1m";
        let text = logged(Style::Text, || log_path(path));
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(r#"path="/a\\u{a}status=200 \"b\" \\ \\u{202e}\\u{1b}[1m"}: "#), "{text}");
        let json: Json = serde_json::from_str(&logged(Style::Json, || log_path(path))).unwrap();
        assert_eq!(json["span"]["path"], r#"/a\u{a}status=200 "b" \ \u{202e}\u{1b}[1m"#);
    }

    #[test]
    fn a_value_is_cut_at_its_bound_and_not_before() {
        for (length, is_cut) in [(MAX_VALUE_CHARS, false), (MAX_VALUE_CHARS + 1, true), (65_000, true)] {
            let json = logged(Style::Json, || log_path(&"x".repeat(length)));
            let json: Json = serde_json::from_str(&json).unwrap();
            let path = json["span"]["path"].as_str().unwrap();
            assert_eq!(path.ends_with('…'), is_cut, "{length}");
            assert_eq!(path.trim_end_matches('…').len(), MAX_VALUE_CHARS);
        }
        for (length, is_cut) in [(MAX_SENTENCE_CHARS, false), (MAX_SENTENCE_CHARS + 1, true)] {
            let text = logged(Style::Text, || tracing::info!("{}", "x".repeat(length)));
            assert_eq!(text.contains('…'), is_cut, "{length}");
        }
    }

    #[test]
    fn no_line_is_longer_than_its_bound_whatever_is_in_it() {
        for piece in ["x", "\"", "\\", "\u{202e}", "𝄞", "\0"] {
            let long = piece.repeat(65_000);
            for style in [Style::Text, Style::Coloured, Style::Json] {
                let text = logged(style, || {
                    let (id, method) = (&long, &long);
                    let _entered = tracing::info_span!("request", id, %method, path = long).entered();
                    let (error, source, url, name) = (&long, &long, &long, &long);
                    tracing::error!(%error, source, url, %name, status = 500_u16, "{long}");
                });
                assert_eq!(text.lines().count(), 1);
                assert!(text.len() <= MAX_LINE_BYTES, "{style:?} {piece:?}: {}", text.len());
                assert!(style != Style::Json || serde_json::from_str::<Json>(&text).is_ok(), "{text}");
            }
        }
    }
}
