//! `countersign config`: which server and key are used, and what the client remembers by itself.

use std::fs;

use serde_json::json;

use crate::support::client::{Computer, NO_SERVER, Ran, add_files, text};
use crate::support::{SignersFile, World, alice};

fn released() -> World {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice()]);
    world
}

fn address(world: &World) -> String {
    format!("http://{}", world.server.address())
}

fn run(computer: &Computer, args: &[&str]) -> Ran {
    Ran::of(&mut computer.newcomer(args))
}

fn config_text(computer: &Computer) -> String {
    fs::read_to_string(computer.config().join("config.toml")).expect("a configuration file")
}

#[test]
fn without_settings_it_says_how_to_set_one() {
    let computer = Computer::offline();
    run(&computer, &["config"]).ok().says(&["config.toml", "Nothing is set", "config set server"]);
    let shown = Ran::of(&mut computer.newcomer(&["config", "show", "--json"])).ok().json();
    assert_eq!(shown["settings"], json!([]));
}

#[test]
fn settings_are_kept_by_scope_and_the_nearest_one_counts() {
    let world = released();
    let computer = Computer::offline();
    let project = world.id("acme/app");
    run(&computer, &["config", "set", "server", NO_SERVER]).ok();
    run(&computer, &["config", "set", "server", "http://127.0.0.1:1", "--host", "127.0.0.1"]).ok();
    run(&computer, &["config", "set", "server", &address(&world), "--project", &project]).ok();
    let shown = Ran::of(&mut computer.newcomer(&["config", "--json"])).ok().json();
    assert_eq!(
        shown["settings"],
        json!([
            {"setting": "server", "value": NO_SERVER, "host": null, "project": null},
            {"setting": "server", "value": "http://127.0.0.1:1", "host": "127.0.0.1", "project": null},
            {"setting": "server", "value": address(&world), "host": null, "project": project},
        ])
    );
    let index = world.index_path("acme/app/1.0");
    run(&computer, &["status", &index]).ok().says(&["complete"]);
    run(&computer, &["config", "unset", "server", "--project", &project]).ok();
    run(&computer, &["status", &index]).failed(5).says(&["127.0.0.1:1"]);
    run(&computer, &["config", "unset", "server", "--host", "127.0.0.1"]).ok();
    run(&computer, &["status", &index]).failed(5).says(&[NO_SERVER]);
}

#[test]
fn flags_and_the_environment_beat_the_file() {
    let world = released();
    let computer = Computer::of(&world.server);
    let index = world.index_path("acme/app/1.0");
    run(&computer, &["config", "set", "server", NO_SERVER]).ok();
    computer.run(&["status", &index]).ok();
    run(&computer, &["status", &index, "--server", &address(&world)]).ok();
    computer.run(&["status", &index, "--server", NO_SERVER]).failed(5);
}

#[test]
fn a_set_key_signs_and_can_be_for_one_project() {
    let world = released();
    let computer = Computer::of(&world.server);
    world.add_release(&alice(), "acme/app/2.0");
    let (own, other) = (computer.key_of("alice"), computer.key_of("bob"));
    run(&computer, &["config", "set", "key", text(&other)]).ok();
    run(&computer, &["config", "set", "key", text(&own), "--project", &world.id("acme/app")]).ok();
    computer.run(&["sign", &world.index_path("acme/app/2.0"), "--yes"]).ok().says(&["complete"]);
}

#[test]
fn a_file_of_the_users_own_keeps_its_comments() {
    let computer = Computer::offline();
    fs::create_dir_all(computer.config()).unwrap();
    let written = "# mine\nserver = \"http://127.0.0.1:9\" # for now\n\n[servers]\n\"github.com\" = \"https://a.example\"\n";
    fs::write(computer.config().join("config.toml"), written).unwrap();
    run(&computer, &["config", "set", "key", "/keys/alice", "--host", "github.com"]).ok();
    let after = config_text(&computer);
    assert!(after.contains("# mine") && after.contains("# for now"), "{after}");
    run(&computer, &["config"]).ok().says(&["https://a.example", "/keys/alice", "github.com"]);
}

#[test]
fn a_file_that_cannot_be_read_names_the_line_and_nothing_is_changed() {
    let computer = Computer::offline();
    fs::create_dir_all(computer.config()).unwrap();
    for wrong in [
        "sever = \"https://a.example\"\n",
        "server = 7\n",
        "[projects.\"not a path\"]\nserver = \"x\"\n",
        "[[",
    ] {
        fs::write(computer.config().join("config.toml"), wrong).unwrap();
        run(&computer, &["ping"]).failed(2).says(&["config.toml", "cannot be used"]);
        run(&computer, &["config", "set", "key", "/keys/alice"]).failed(2);
        assert_eq!(config_text(&computer), wrong);
    }
    run(&computer, &["config", "set", "server", "sign.example.org"]).failed(2).says(&["https://HOST"]);
}

#[test]
fn the_server_of_a_project_is_remembered_at_its_first_use() {
    let world = released();
    let computer = Computer::of(&world.server);
    let url = world.files.url("/acme/app/1.0/app");
    run(&computer, &["download", &url]).failed(2).says(&["no server is set", "config set server"]);
    computer.download(&url).ok();
    run(&computer, &["download", &url, "--force"]).ok().says(&["Verified"]);
    run(&computer, &["config"]).ok().says(&[&world.id("acme/app"), &address(&world)]);
    // It stays, whatever is asked later.
    computer.run(&["download", &url, "--server", NO_SERVER]).failed(5);
    run(&computer, &["download", &url]).ok();
}

/// Nothing says whom to ask: not even a server on this machine is asked (D79).
#[test]
fn a_downloader_without_a_server_is_told_what_is_missing() {
    let computer = Computer::offline();
    computer.write("app", "content");
    for args in [&["verify", "app"][..], &["download", "acme/app"], &["download", "acme/app", "1.0"]] {
        let ran = Ran::of(&mut computer.newcomer(args)).failed(2);
        ran.says(&["no server is set", "--server", "config set server"]);
    }
}

#[test]
fn only_a_project_on_this_machine_has_a_server_on_this_machine_by_default() {
    let computer = Computer::offline();
    let far = "https/github.com/443/acme/app/releases/tag/v1.0/svc.index.json";
    run(&computer, &["status", far]).failed(2).says(&["no server is set", "--host github.com"]);
    run(&computer, &["release", "https://github.com/acme/app/releases/tag/v1.0"])
        .failed(2)
        .says(&["no server is set"]);
}

#[test]
fn a_mistake_in_the_file_is_told_with_its_line() {
    let computer = Computer::offline();
    std::fs::create_dir_all(computer.config()).unwrap();
    let file = computer.config().join("config.toml");
    for (text, words) in [
        ("# mine\nserverr = \"x\"\n", &["line 2, `serverr = ", "Did you mean `server`?"][..]),
        ("server = \n", &["line 1"]),
        ("[projects]\n\"https/a.org/443/b\" = 3\n", &["line 2", "the address of a server, or a table"]),
    ] {
        std::fs::write(&file, text).unwrap();
        computer.run(&["config"]).failed(2).says(words).says_nothing_of(&["\\u{a}"]);
    }
}

#[test]
fn comments_stay_where_they_are() {
    let computer = Computer::offline();
    std::fs::create_dir_all(computer.config()).unwrap();
    let file = computer.config().join("config.toml");
    std::fs::write(&file, "# ours\nserver = \"https://a.example.org\" # since 2026\n").unwrap();
    computer.run(&["config", "set", "server", "https://b.example.org"]).ok();
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, "# ours\nserver = \"https://b.example.org\" # since 2026\n");
}
