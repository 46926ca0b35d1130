//! How the client speaks: exit codes, hints, JSON errors, `--quiet`, colours.

use std::thread;

use crate::support::client::{Computer, NO_SERVER, Ran, add_files, put_release, text};
use crate::support::{Person, SignersFile, World, alice};

const ESCAPE: char = '\u{1b}';

/// A project with a signed release, and the URL of its file.
#[track_caller]
fn released() -> (World, Computer, String, String) {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice()]);
    let computer = Computer::of(&world.server);
    let url = world.files.url("/acme/app/1.0/app");
    (world, computer, index, url)
}

#[test]
fn exit_codes_tell_failures_apart_in_text_and_in_json() {
    let (world, computer, index, url) = released();
    let unsigned = put_release(&world.files, "acme/app/2.0", &[("app", b"new")]);
    computer.run_as("alice", &["release", "--checksums", &unsigned]).ok();
    let revoked = add_files(&world, "acme/app/0.9", &[("app", b"old")], &[&alice()]);
    world.revoke(&alice(), &revoked).ok();
    let (unsigned, revoked) = (world.files.url("/acme/app/2.0/app"), world.files.url("/acme/app/0.9/app"));
    let missing = world.files.url("/acme/app/1.0/other");
    let nowhere = world.index_path("acme/app/3.0");
    let cases: [(i32, &str, &[&str]); 14] = [
        (1, "other", &["status", &nowhere]),
        (1, "other", &["register", &world.files.url("/acme/app/svc.signers.json")]),
        (1, "other", &["trust", "remove", "http/127.0.0.1/80/unknown", "--yes"]),
        (1, "other", &["signers", "check", "gone.json"]),
        (2, "usage", &["sign", &world.index_path("acme/app/2.0")]),
        (2, "usage", &["status", "http/127.0.0.1/80/plain.txt"]),
        (2, "usage", &["download", "not a url"]),
        (2, "usage", &["ping", "--server", "ftp://example.org"]),
        (3, "verification", &["download", &unsigned]),
        (3, "verification", &["download", &missing]),
        (3, "verification", &["verify", "wrong", "--url", &url]),
        (4, "revoked", &["download", &revoked]),
        (4, "revoked", &["bundle", &revoked, "-o", "b.json"]),
        (5, "unreachable", &["status", &index, "--server", NO_SERVER]),
    ];
    computer.write("wrong", "not the content");
    for (code, kind, args) in cases {
        computer.run_as("alice", args).failed(code);
        let error = computer.run_as("alice", &[args, &["--json"]].concat()).json_error(code);
        assert_eq!(error["kind"], kind, "{args:?}");
    }
    computer.download(&url).ok();
}

#[test]
fn a_server_that_is_not_there_is_code_5_for_every_command_that_asks_the_server() {
    let computer = Computer::offline();
    let (path, url) = ("http/127.0.0.1/80/acme/svc.index.json", "http://127.0.0.1:9/acme/app");
    computer.write("file", "content");
    let commands: [&[&str]; 14] = [
        &["register", "http://127.0.0.1:9/acme/svc.signers.json"],
        &["update", "http://127.0.0.1:9/acme/svc.signers.json"],
        &["release", "http://127.0.0.1:9/acme/app/releases/tag/v1"],
        &["release", "--checksums", "http://127.0.0.1:9/acme/SHA256SUMS"],
        &["pending"],
        &["sign", path, "--yes"],
        &["sign", "--all", "--yes"],
        &["status", path],
        &["revoke", path, "--reason", "x", "--yes"],
        &["download", url],
        &["verify", "file", "--url", url],
        &["bundle", url, "-o", "b.json"],
        &["chain", path],
        &["ping"],
    ];
    computer.key_of("alice");
    let computer = &computer;
    // Each tries for a second, so they do it at once.
    thread::scope(|scope| {
        for args in commands {
            scope.spawn(move || computer.run_as("alice", args).failed(5).says(&[NO_SERVER, "--server"]));
            scope.spawn(move || computer.run_as("alice", &[args, &["--json"]].concat()).json_error(5));
        }
    });
    assert_eq!(computer.listing(), ["file"], "nothing is written");
}

#[test]
fn a_file_that_its_server_does_not_give_is_code_5_and_a_wrong_one_code_3() {
    let (world, computer, _, url) = released();
    world.files.set("/acme/app/1.0/app", crate::support::Answer::HungUp);
    computer.download(&url).failed(5);
    world.files.put("/acme/app/1.0/app", "another content");
    computer.download(&url).failed(3);
    assert_eq!(computer.listing(), [""; 0]);
}

#[test]
fn wrong_usage_is_code_2_with_nothing_on_standard_output() {
    let computer = Computer::offline();
    let url = "http://127.0.0.1:9/acme/app";
    let commands: [&[&str]; 23] = [
        &["bogus"],
        &["--bogus", "ping"],
        &["keygen"],
        &["signers"],
        &["signers", "check"],
        &["register"],
        &["update"],
        &["release"],
        &["release", url, "--checksums", url],
        &["sign"],
        &["sign", "--all", "http/127.0.0.1/80/svc.index.json"],
        &["sign", "a/../b/svc.index.json"],
        &["sign", "--detached", "x.json"],
        &["sign", "--all", "--submit", "x.json"],
        &["sign", "--all", "--require-match"],
        &["status"],
        &["download"],
        &["download", url, "--signers-digest", "sha512:abc"],
        &["verify", "file", "--url", url, "--bundle", "b.json"],
        &["bundle", url],
        &["trust"],
        &["trust", "remove"],
        &["completions", "tcl"],
    ];
    for args in commands {
        computer.run_as("alice", args).failed_as_usage();
    }
}

#[test]
fn an_output_file_without_detached_is_refused_instead_of_ignored() {
    let (world, computer, ..) = released();
    let sums = put_release(&world.files, "acme/app/2.0", &[("app", b"new")]);
    computer.run_as("alice", &["release", "--checksums", &sums]).ok();
    // A user who names a file for the signatures does not mean to submit them.
    computer.run_as("alice", &["sign", "--all", "--yes", "-o", "signatures.json"]).failed_as_usage();
    assert_eq!(world.pending(&alice()), [world.index_path("acme/app/2.0")]);
}

#[test]
fn wrong_usage_is_json_too_where_json_is_asked_for() {
    let computer = Computer::offline();
    let commands: [&[&str]; 5] = [
        &["--json", "bogus"],
        &["--json", "download"],
        &["download", "--json"],
        &["sign", "--all", "--require-match", "--json"],
        &["verify", "--json"],
    ];
    for args in commands {
        let error = computer.run(args).json_error(2);
        assert_eq!(error["kind"], "usage", "{args:?}");
    }
}

#[test]
fn commands_that_sign_say_which_option_names_the_key() {
    let computer = Computer::offline();
    for args in
        [&["pending"][..], &["sign", "--all", "--yes"], &["register", "http://127.0.0.1:9/svc.signers.json"]]
    {
        computer.run(args).failed(2).says(&["--key", "COUNTERSIGN_KEY"]);
    }
}

#[test]
fn options_win_over_the_environment() {
    let (world, computer, ..) = released();
    let server = format!("http://{}", world.server.address());
    let elsewhere = Computer::offline();
    elsewhere.run(&["ping", "--server", &server]).ok().says(&[&server]);
    elsewhere.run(&["--server", &format!("{server}/"), "ping"]).ok();
    let bob = computer.key_of("bob");
    let answer = computer.json_as("alice", &["ping", "--key", text(&bob)]);
    assert_eq!(answer["auth"]["public_key"], Person::named("bob").key().as_str());
}

#[test]
fn help_names_the_default_server_and_every_command() {
    let computer = Computer::offline();
    let help = computer.run(&["--help"]).ok();
    assert_eq!(help.stderr, "");
    let help = help.says(&["countersign config", "COUNTERSIGN_SERVER", "COUNTERSIGN_KEY", "Exit codes"]);
    let commands = [
        "keygen",
        "signers",
        "register",
        "update",
        "release",
        "pending",
        "sign",
        "status",
        "revoke",
        "download",
        "verify",
        "bundle",
        "chain",
        "trust",
        "ping",
        "demo",
        "completions",
    ];
    for command in commands {
        assert!(help.stdout.contains(&format!("  {command} ")), "{command}");
        computer.run(&[command, "--help"]).ok().says(&["Usage: countersign", "--server <URL>", "--json"]);
    }
}

#[test]
fn quiet_leaves_errors_and_what_was_asked_for() {
    let (world, computer, index, url) = released();
    let quiet = |args: &[&str]| computer.run_as("alice", &[args, &["--quiet"]].concat());
    let silent = |ran: Ran| {
        let ran = ran.ok();
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    };
    silent(quiet(&["download", &url]));
    silent(quiet(&["verify", "app", "--url", &url]));
    silent(quiet(&["bundle", &url, "-o", "b.json"]));
    silent(quiet(&["keygen", "--out", "k", "--no-password"]));
    let sums = put_release(&world.files, "acme/app/2.0", &[("app", b"new")]);
    silent(quiet(&["release", "--checksums", &sums]));
    assert_eq!(quiet(&["pending"]).ok().stdout, format!("{}\n", world.index_path("acme/app/2.0")));
    quiet(&["status", &index]).ok().says(&["complete"]);
    quiet(&["trust", "list"]).ok().says(&["acme/app"]);
    quiet(&["chain", &index]).ok().says(&["acme/app"]);
    quiet(&["download", &world.files.url("/acme/app/2.0/app")]).failed(3);
    quiet(&["sign", "acme/app", "2.0", "--yes"]).ok();
    silent(quiet(&["pending"]));
}

#[test]
fn without_a_terminal_nothing_is_coloured_unless_it_is_asked_for() {
    let (world, computer, index, url) = released();
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
    computer.run(&["ping", "--color", "sometimes"]).failed_as_usage();
}

#[test]
fn texts_from_outside_are_shown_escaped() {
    let (world, computer, index, url) = released();
    let reason = "bad\u{1b}[2J\u{202e}thing\u{200b}\nnext";
    computer
        .run_as("alice", &["revoke", &index, "--yes", "--reason", reason])
        .ok()
        .says_nothing_of(&["\u{1b}"]);
    let raw = ["\u{1b}", "\u{202e}", "\u{200b}", "\nnext"];
    computer.download(&url).failed(4).says(&["bad", "thing"]).says_nothing_of(&raw);
    computer.run(&["status", &index]).ok().says(&["bad", "thing"]).says_nothing_of(&raw);
    computer.run(&["trust", "list"]).ok().says(&["bad", "thing"]).says_nothing_of(&raw);
    let status = computer.json(&["status", &index]);
    assert_eq!(status["reason"], reason, "a program gets the text itself");
    drop(world);
}
