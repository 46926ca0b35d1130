//! Questions on a real pseudo-terminal, by way of `script` of util-linux: only a yes signs.

use countersign_core::values::digest::Sha256;

use crate::support::client::{Computer, put_release, text};
use crate::support::{SignersFile, Terminal, World, alice};

/// The client on a terminal, with alice's key.
fn start(computer: &Computer, args: &[&str]) -> Option<Terminal> {
    start_with(computer, "", args)
}

/// `no_color`: the value of NO_COLOR.
fn start_with(computer: &Computer, no_color: &str, args: &[&str]) -> Option<Terminal> {
    Terminal::start(args, |command| {
        computer.settle(command);
        command.env("NO_COLOR", no_color).env("COUNTERSIGN_KEY", text(&computer.key_of("alice")));
    })
}

/// A project of alice with two unsigned releases; their indexes.
fn unsigned() -> (World, Computer, [String; 2]) {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    let indexes = [("acme/app/1.0", &b"content"[..]), ("acme/app/2.0", b"new")].map(|(dir, content)| {
        let sums = put_release(&world.files, dir, &[("app", content)]);
        world.register_assets(&alice(), &[&sums]).ok();
        world.index_path(dir)
    });
    let computer = Computer::of(&world.server);
    (world, computer, indexes)
}

#[test]
fn anything_but_yes_signs_nothing() {
    let (world, computer, indexes) = unsigned();
    let index = &indexes[0];
    // The last one is an interrupt from the keyboard.
    for answer in ["n\n", "\n", "yess\n", "no\n", "\u{4}", "\u{3}"] {
        let Some(mut terminal) = start(&computer, &["sign", index]) else { return };
        terminal.answer("[y/N]", answer);
        let (code, seen) = terminal.end();
        assert_ne!(code, 0, "{answer:?}: {seen}");
        assert!(answer == "\u{3}" || (code == 1 && seen.contains("hint")), "{answer:?}: {seen}");
    }
    // The question says how a comparison went.
    for (content, words) in [("content", "All files are the same"), ("Content", "NOT all files")] {
        computer.write("built/app", content);
        let Some(mut terminal) = start(&computer, &["sign", index, "--files", "built"]) else { return };
        terminal.answer("[y/N]", "n\n");
        let seen = terminal.seen();
        assert!(seen.contains(words) && !seen.contains("been compared"), "{seen}");
        assert_eq!(terminal.end().0, 1);
    }
    assert_eq!(world.pending(&alice()), indexes);
    // Whether `--json` refuses or asks: what is to be signed must have been seen before a `y` counts.
    let Some(mut terminal) = start(&computer, &["sign", index, "--json"]) else { return };
    terminal.press("y\n");
    let (_, seen) = terminal.end();
    let is_signed = world.pending(&alice()).len() < 2;
    let shown = seen.split("[y/N]").next().unwrap();
    assert!(!is_signed || shown.contains("sha256"), "signed without having been shown: {seen}");
}

#[test]
fn yes_signs_what_was_shown_before_the_question_and_each_file_by_itself() {
    let (world, computer, [first, second]) = unsigned();
    let Some(mut terminal) = start(&computer, &["sign", "--all"]) else { return };
    terminal.answer("[y/N]", "y\n");
    let shown = terminal.seen().split("[y/N]").next().unwrap().to_owned();
    for part in [&first, &world.id("acme/app"), "app", &Sha256::of(b"content").to_string()] {
        assert!(shown.contains(part), "`{part}` is missing: {shown}");
    }
    assert!(shown.to_lowercase().contains("not been compared"), "{shown}");
    terminal.wait_for(&second);
    terminal.answer("[y/N]", "n\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, 1, "{seen}");
    assert_eq!(world.pending(&alice()), [second.as_str()], "the first one is signed");
    let Some(mut terminal) = start(&computer, &["sign", "--all"]) else { return };
    terminal.answer("[y/N]", "YES\n");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(world.pending(&alice()), [""; 0]);

    // A revocation and forgetting a project are asked about too.
    computer.download(&world.files.url("/acme/app/1.0/app")).ok();
    let Some(mut terminal) = start(&computer, &["revoke", &first, "--reason", "a bad build"]) else { return };
    terminal.answer("[y/N]", "n\n");
    let (code, seen) = terminal.end();
    assert!(code == 1 && seen.contains("a bad build") && seen.contains("app"), "{code}: {seen}");
    assert!(world.is_complete(&alice(), &first));
    let project = world.id("acme/app");
    for (answer, code) in [("n\n", 1), ("y\n", 0)] {
        let Some(mut terminal) = start(&computer, &["trust", "remove", &project]) else { return };
        terminal.answer("[y/N]", answer);
        assert_eq!(terminal.end().0, code);
        assert_eq!(computer.pins()["projects"][&project].is_object(), code == 1);
    }
}

#[test]
fn a_terminal_gets_colours_unless_the_user_wants_none() {
    let (_world, computer, [index, _]) = unsigned();
    for (no_color, more, is_coloured) in
        [("", &[][..], true), ("1", &[], false), ("", &["--color", "never"], false), ("", &["--json"], false)]
    {
        let args = [&["status", &index], more].concat();
        let Some(terminal) = start_with(&computer, no_color, &args) else { return };
        let seen = terminal.end().1;
        assert_eq!(seen.contains('\u{1b}'), is_coloured, "{no_color:?} {more:?}: {seen:?}");
    }
}
