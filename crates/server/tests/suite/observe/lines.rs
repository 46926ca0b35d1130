//! The format of a log line.

use std::{io, sync::Arc, sync::Mutex};

use countersign_server::operate::observe::{Style, log_to};
use serde_json::Value as Json;
use tracing_subscriber::layer::SubscriberExt as _;

/// Longer than any line: two sets of values, their names, the time and the level.
const MAX_LINE_BYTES: usize = 4_096;
const MAX_VALUE_CHARS: usize = 256;
const MAX_SENTENCE_CHARS: usize = 1_024;

/// What `work` logs in this style.
fn logged(style: Style, work: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);
    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let sink = Sink::default();
    let (lines, logging) = log_to(sink.clone(), style, Arc::default()).unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), work);
    drop(logging);
    let text = sink.0.lock().unwrap().clone();
    String::from_utf8(text).unwrap()
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
