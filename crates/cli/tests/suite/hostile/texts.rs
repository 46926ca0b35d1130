//! D39: what strangers write into a fetched file is shown escaped and cut, to callers and in the log.

use serde_json::json;

use crate::support::{Reply, SignersFile, World, alice};

const MAX_CHARS: usize = 1_000;
const HUNDRED_KB: usize = 100_000;
/// A line that looks like one of ours, an escape sequence, and text that runs backwards.
const HOSTILE: &str = "a\nFORGED line\u{1b}[2Jb\u{202e}c";

fn register_with_field(world: &World, name: &str) -> Reply {
    world.register(&alice(), "hostile", &SignersFile::of(1, &[&alice()]).with(name, json!(1)))
}

fn register_with_tag(world: &World, tag: &str) -> Reply {
    let line = format!("{tag} (app) = {}\n", "a".repeat(64));
    world.register_assets(&alice(), &[&world.publish_checksums("acme/app/v1", &line)])
}

/// A failure whose message has these words and nothing that a terminal would obey.
#[track_caller]
fn assert_safe(reply: &Reply, words: &str) {
    let message = reply.error(500);
    assert!(message.contains(words), "`{words}` is missing in: {message}");
    assert!(!message.contains(|c: char| c.is_control() || c == '\u{202e}'), "{message:?}");
    let length = message.chars().count();
    assert!(length <= MAX_CHARS, "{length} characters: {message}");
}

fn world() -> World {
    World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()])
}

#[test]
fn the_tag_of_a_checksums_line_is_shown_escaped_and_cut() {
    let world = world();
    let hostile = "MD5\r\u{1b}[2J\u{202e}";
    let escaped = r"MD5\u{d}\u{1b}[2J\u{202e}";
    assert_safe(&register_with_tag(&world, hostile), escaped);
    assert_safe(&register_with_tag(&world, &format!("{hostile}{}", "x".repeat(HUNDRED_KB))), escaped);
    assert_safe(&register_with_tag(&world, HOSTILE), "line 1");
}

#[test]
fn nothing_of_it_reaches_the_log_raw() {
    let mut world = world();
    register_with_field(&world, HOSTILE).error(500);
    register_with_tag(&world, "MD5\rFORGED\u{1b}[2J\u{202e}").error(500);
    let log = world.server.stop_and_read_log();
    assert!(log.contains("FORGED"), "the refusals are logged: {log}");
    assert!(!log.contains(['\u{202e}', '\u{1b}', '\r']), "{log:?}");
    assert!(!log.lines().any(|line| line.starts_with("FORGED")), "{log}");
}
