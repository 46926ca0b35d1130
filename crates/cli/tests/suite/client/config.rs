//! `countersign config`: the file that it keeps, and what is missing without one. The rest is text (`client_config.txt`).

use std::fs;

use crate::support::client::{Computer, Ran};

fn run(computer: &Computer, args: &[&str]) -> Ran {
    Ran::of(&mut computer.newcomer(args))
}

#[test]
fn a_mistake_in_the_file_is_told_with_its_line_and_what_is_right_keeps_its_comments() {
    let computer = Computer::offline();
    fs::create_dir_all(computer.config()).unwrap();
    let file = computer.config().join("config.toml");
    for (wrong, words) in [
        ("# mine\nserverr = \"x\"\n", &["line 2, `serverr = ", "Did you mean `server`?"][..]),
        ("server = \n", &["line 1"]),
        ("server = 7\n", &[]),
        ("[projects]\n\"https/a.org/443/b\" = 3\n", &["line 2", "the address of a server, or a table"]),
        ("[projects.\"not a path\"]\nserver = \"x\"\n", &[]),
        ("[[", &[]),
    ] {
        fs::write(&file, wrong).unwrap();
        for command in ["config", "ping"] {
            let ran = run(&computer, &[command]).failed(2).says(&["config.toml", "cannot be used"]);
            ran.says(words).says_nothing_of(&["\\u{a}"]);
        }
        run(&computer, &["config", "set", "key", "/keys/alice"]).failed(2);
        assert_eq!(fs::read_to_string(&file).unwrap(), wrong);
    }
    let mine = "# mine\nserver = \"https://a.example\" # for now\n\n[servers]\n\"github.com\" = \"https://c.example\"\n";
    fs::write(&file, mine).unwrap();
    run(&computer, &["config", "set", "server", "b.example"]).failed(2).says(&["https://HOST"]);
    run(&computer, &["config", "set", "server", "https://b.example"]).ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), mine.replace("a.example", "b.example"));
    run(&computer, &["config", "set", "key", "/keys/alice", "--host", "github.com"]).ok();
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.contains("# mine") && after.contains("# for now"), "{after}");
    run(&computer, &["config"]).ok().says(&["https://c.example", "/keys/alice", "github.com"]);
}

/// Nothing says whom to ask: not even a server on this machine is asked (D79).
#[test]
fn without_a_server_the_client_says_what_is_missing() {
    let computer = Computer::offline();
    computer.write("app", "content");
    for args in [&["verify", "app"][..], &["download", "acme/app"], &["download", "acme/app", "1.0"]] {
        run(&computer, args).failed(2).says(&["no server is set", "--server", "config set server"]);
    }
    // Only a project on this machine has a server on this machine by default.
    let far = "https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json";
    run(&computer, &["status", far]).failed(2).says(&["no server is set", "--host github.com"]);
    let page = "https://github.com/acme/app/releases/tag/v1.0";
    run(&computer, &["release", page]).failed(2).says(&["no server is set"]);
}
