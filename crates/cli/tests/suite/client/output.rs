//! How the client speaks where no server is there, in colours, and offline. The rest is text (`client_output.txt`).

use std::thread;

use crate::support::client::{Computer, NO_SERVER, add_files};
use crate::support::{SignersFile, World, alice, days_ago, person};

const ESCAPE: char = '\u{1b}';

#[test]
fn a_server_that_is_not_there_is_code_5_for_every_command_that_asks_the_server() {
    let computer = Computer::offline();
    computer.write("file", "content");
    let list = "register http://127.0.0.1:9/acme/svc.signers.json; update http://127.0.0.1:9/acme/svc.signers.json;
        release http://127.0.0.1:9/acme/app/releases/tag/v1; release --checksums http://127.0.0.1:9/acme/SHA256SUMS;
        pending; sign PATH --yes; sign --all --yes; status PATH; revoke PATH --reason x --yes; download URL;
        verify file --url URL; bundle URL -o b.json; signers history PATH; ping";
    let list = list.replace("PATH", "http/127.0.0.1/80/acme/svc.index.json");
    let list = list.replace("URL", "http://127.0.0.1:9/acme/app");
    computer.key_of("alice");
    let computer = &computer;
    // Each tries for a second, so they do it at once.
    thread::scope(|scope| {
        for args in list.split(';') {
            let args: Vec<&str> = args.split_whitespace().collect();
            let json = [&args[..], &["--json"]].concat();
            scope.spawn(move || computer.run_as("alice", &args).failed(5).says(&[NO_SERVER, "--server"]));
            scope.spawn(move || computer.run_as("alice", &json).json_error(5));
        }
    });
    assert_eq!(computer.listing(), ["file"], "nothing is written");
}

#[test]
fn colours_are_asked_for_and_texts_from_outside_are_escaped() {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice()]);
    let (computer, url) = (Computer::of(&world.server), world.files.url("/acme/app/1.0/app"));
    let missing = world.files.url("/acme/app/1.0/other");
    let commands: [&[&str]; 4] =
        [&["download", &url], &["download", &missing], &["status", &index], &["bogus"]];
    for args in commands {
        let is_coloured = |more: &[&str]| {
            let ran = computer.run(&[args, more].concat());
            ran.stdout.contains(ESCAPE) || ran.stderr.contains(ESCAPE)
        };
        assert!(!is_coloured(&[]), "{args:?}");
        assert!(!is_coloured(&["--color", "never"]), "{args:?}");
        assert!(!is_coloured(&["--color", "always", "--json"]), "{args:?}");
        if args != ["bogus"] {
            assert!(is_coloured(&["--color", "always"]), "{args:?}");
        }
    }
    let reason = "bad\u{1b}[2J\u{202e}thing\u{200b}\nnext";
    let raw = ["\u{1b}", "\u{202e}", "\u{200b}", "\nnext"];
    let revoke = ["revoke", &index, "--yes", "--reason", reason];
    computer.run_as("alice", &revoke).ok().says_nothing_of(&raw[..1]);
    computer.download(&url).failed(4).says(&["bad", "thing"]).says_nothing_of(&raw);
    computer.run(&["status", &index]).ok().says(&["bad", "thing"]).says_nothing_of(&raw);
    computer.run(&["trust", "list"]).ok().says(&["bad", "thing"]).says_nothing_of(&raw);
    assert_eq!(computer.json(&["status", &index])["reason"], reason, "a program gets the text itself");
}

#[test]
fn a_proposal_is_shown_offline_as_it_is_online() {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice, &bob]);
    world.propose(&alice, "acme/app", &next).ok();
    let (connected, offline) = (Computer::of(&world.server), Computer::offline());
    let pending = world.pending_path("acme/app");
    connected.run_as("alice", &["sign", &pending, "--export", "export.json"]).ok();
    connected.carry(&offline, &["export.json"]);
    let offline_shown =
        offline.run_as("bob", &["sign", "--detached", "export.json", "-o", "signatures.json", "--yes"]).ok();
    let online_shown = connected.run_as("alice", &["sign", &pending, "--yes"]).ok();
    let shown: Vec<_> = online_shown.stderr.lines().filter(|line| !line.starts_with("Signed")).collect();
    assert!(shown.len() > 5, "{shown:?}");
    // All but which of them the reader is.
    let told = offline_shown.stderr.replace(" (you)", "");
    for line in shown {
        let line = line.replace(" (you)", "");
        assert!(told.contains(&line), "{line:?} is missing: {offline_shown:?}");
    }
    offline.carry(&connected, &["signatures.json"]);
    let submitted = connected.json_as("alice", &["sign", "--submit", "signatures.json"]);
    assert_eq!(submitted["signed"][0]["is_complete"], true);
}
