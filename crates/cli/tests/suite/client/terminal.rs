//! Questions on a real pseudo-terminal, by way of `script` of util-linux: only a yes signs.

use crate::support::client::{Computer, add_files, put_release, text};
use crate::support::{SignersFile, Terminal, World, alice};

/// The client on a terminal, with the key of this person.
fn start(computer: &Computer, key: &str, args: &[&str]) -> Option<Terminal> {
    start_with(computer, key, "", args)
}

/// `no_color`: the value of NO_COLOR.
fn start_with(computer: &Computer, key: &str, no_color: &str, args: &[&str]) -> Option<Terminal> {
    Terminal::start(args, |command| {
        computer.settle(command);
        command.env("NO_COLOR", no_color).env("COUNTERSIGN_KEY", text(&computer.key_of(key)));
    })
}

/// A project of alice with an unsigned release; its index.
fn unsigned() -> (World, Computer, String) {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    let sums = put_release(&world.files, "acme/app/1.0", &[("app", b"content")]);
    world.register_assets(&alice(), &[&sums]).ok();
    let computer = Computer::of(&world.server);
    let index = world.index_path("acme/app/1.0");
    (world, computer, index)
}

#[test]
fn anything_but_yes_signs_nothing() {
    let (world, computer, index) = unsigned();
    for answer in ["n\n", "\n", "yess\n", "no\n", "\u{4}"] {
        let Some(mut terminal) = start(&computer, "alice", &["sign", &index]) else { return };
        terminal.answer("[y/N]", answer);
        let (code, seen) = terminal.end();
        assert_eq!(code, 1, "{answer:?}: {seen}");
        assert!(seen.contains("hint"), "{seen}");
        assert_eq!(world.pending(&alice()), [index.as_str()], "{answer:?}");
    }
}

#[test]
fn an_interrupt_at_the_question_signs_nothing() {
    let (world, computer, index) = unsigned();
    let Some(mut terminal) = start(&computer, "alice", &["sign", &index]) else { return };
    terminal.answer("[y/N]", "\u{3}");
    let (code, seen) = terminal.end();
    assert_ne!(code, 0, "{seen}");
    assert_eq!(world.pending(&alice()), [index.as_str()]);
}

#[test]
fn yes_signs_what_was_shown_before_the_question() {
    for answer in ["y\n", "YES\n"] {
        let (world, computer, index) = unsigned();
        let Some(mut terminal) = start(&computer, "alice", &["sign", "--all"]) else { return };
        terminal.answer("[y/N]", answer);
        let shown = terminal.seen().split("[y/N]").next().unwrap().to_owned();
        let digest = countersign_core::values::digest::Sha256::of(b"content").to_string();
        for part in [index.as_str(), &world.id("acme/app"), "app", &digest] {
            assert!(shown.contains(part), "`{part}` is missing: {shown}");
        }
        assert!(shown.to_lowercase().contains("not been compared"), "{shown}");
        let (code, seen) = terminal.end();
        assert_eq!(code, 0, "{seen}");
        assert_eq!(world.pending(&alice()), [""; 0]);
    }
}

#[test]
fn the_question_says_how_the_comparison_went() {
    let (_world, computer, index) = unsigned();
    for (content, words) in [("content", "All files are the same"), ("Content", "NOT all files")] {
        computer.write("built/app", content);
        let args = ["sign", &index, "--files", "built"];
        let Some(mut terminal) = start(&computer, "alice", &args) else { return };
        terminal.answer("[y/N]", "n\n");
        assert!(
            terminal.seen().contains(words) && !terminal.seen().contains("been compared"),
            "{}",
            terminal.seen()
        );
        assert_eq!(terminal.end().0, 1);
    }
}

#[test]
fn each_file_is_asked_about_by_itself() {
    let (world, computer, first) = unsigned();
    let sums = put_release(&world.files, "acme/app/2.0", &[("app", b"new")]);
    world.register_assets(&alice(), &[&sums]).ok();
    let second = world.index_path("acme/app/2.0");
    let Some(mut terminal) = start(&computer, "alice", &["sign", "--all"]) else { return };
    terminal.answer("[y/N]", "y\n");
    terminal.wait_for(&second);
    terminal.answer("[y/N]", "n\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, 1, "{seen}");
    assert_eq!(world.pending(&alice()), [second.as_str()], "the first one, {first}, is signed");
}

#[test]
fn json_on_a_terminal_never_asks_about_what_it_does_not_show() {
    let (world, computer, index) = unsigned();
    let Some(mut terminal) = start(&computer, "alice", &["sign", &index, "--json"]) else { return };
    // Whether it refuses or asks: what is to be signed must have been seen before a `y` counts.
    terminal.press("y\n");
    let (_, seen) = terminal.end();
    let shown = seen.split("[y/N]").next().unwrap();
    let is_signed = world.pending(&alice()).is_empty();
    assert!(!is_signed || shown.contains("sha256"), "signed without having been shown: {seen}");
}

#[test]
fn a_revocation_and_forgetting_a_project_are_asked_about_too() {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice()]);
    let computer = Computer::of(&world.server);
    computer.download(&world.files.url("/acme/app/1.0/app")).ok();
    let revoke = ["revoke", &index, "--reason", "a bad build"];
    let Some(mut terminal) = start(&computer, "alice", &revoke) else { return };
    terminal.answer("[y/N]", "n\n");
    let (code, seen) = terminal.end();
    assert!(code == 1 && seen.contains("a bad build") && seen.contains("app"), "{code}: {seen}");
    assert!(world.is_complete(&alice(), &index));

    let project = world.id("acme/app");
    let Some(mut terminal) = start(&computer, "alice", &["trust", "remove", &project]) else {
        return;
    };
    terminal.answer("[y/N]", "n\n");
    assert_eq!(terminal.end().0, 1);
    assert!(computer.pins()["projects"][&project].is_object());
    let Some(mut terminal) = start(&computer, "alice", &["trust", "remove", &project]) else {
        return;
    };
    terminal.answer("[y/N]", "y\n");
    assert_eq!(terminal.end().0, 0);
    assert!(computer.pins()["projects"].as_object().unwrap().is_empty());
}

#[test]
fn a_terminal_gets_colours_unless_the_user_wants_none() {
    let (_world, computer, index) = unsigned();
    let seen = |args: &[&str]| start(&computer, "alice", args).map(|terminal| terminal.end().1);
    let Some(coloured) = seen(&["status", &index]) else { return };
    assert!(coloured.contains('\u{1b}'), "{coloured:?}");
    let plain = seen(&["status", &index, "--color", "never"]).unwrap();
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    let plain = start_with(&computer, "alice", "1", &["status", &index]).unwrap().end().1;
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    let json = seen(&["status", &index, "--json"]).unwrap();
    assert!(!json.contains('\u{1b}'), "{json:?}");
}
