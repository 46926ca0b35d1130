//! `countersign download`: where the file goes, what it is checked against, and that nothing else is left behind.

use std::{fs, os::unix::fs::PermissionsExt as _};

use countersign_core::values::digest::{Sha256, Sha512};
use serde_json::json;

use crate::support::client::{Computer, add_files, put_release, text};
use crate::support::{Answer, Person, SignersFile, World, alice};

fn project() -> World {
    World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()])
}

/// A project with one release `1.0` of these files.
fn released(files: &[(&str, &[u8])]) -> (World, Computer) {
    let world = project();
    add_files(&world, "acme/app/1.0", files, &[&alice()]);
    let computer = Computer::of(&world.server);
    (world, computer)
}

fn url(world: &World, name: &str) -> String {
    world.files.url(&format!("/acme/app/1.0/{name}"))
}

#[test]
fn the_file_goes_into_the_working_directory_under_its_own_name() {
    let (world, computer) = released(&[("app.tar.gz", b"content")]);
    computer.download(&url(&world, "app.tar.gz")).ok().says(&["app.tar.gz"]);
    assert_eq!(computer.listing(), ["app.tar.gz"]);
    assert_eq!(computer.read("app.tar.gz"), b"content");
    let mode = fs::metadata(computer.path("app.tar.gz")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0, "a download is not executable: {mode:o}");
    assert_ne!(mode & 0o400, 0, "{mode:o}");
}

#[test]
fn it_may_go_to_a_named_file_or_into_a_directory() {
    let (world, computer) = released(&[("app", b"content")]);
    computer.write("dir/keep", "");
    let url = url(&world, "app");
    computer.run(&["download", &url, "-o", "renamed"]).ok().says(&["renamed"]);
    computer.run(&["download", &url, "--output", "dir"]).ok().says(&["dir/app"]);
    computer.run(&["download", &url, "-o", "dir/other"]).ok();
    for name in ["renamed", "dir/app", "dir/other"] {
        assert_eq!(computer.read(name), b"content", "{name}");
    }
    assert_eq!(computer.listing(), ["dir", "renamed"]);
    computer.run(&["download", &url, "-o", "absent/app"]).failed(1).says(&["absent"]);
    computer.run(&["download", &url, "-o", "-"]).failed(2);
    assert_eq!(computer.listing(), ["dir", "renamed"]);
}

#[test]
fn an_existing_file_is_replaced_only_by_a_verified_one() {
    let (world, computer) = released(&[("app", b"content")]);
    computer.write("app", "precious");
    let url = url(&world, "app");
    let forced = || computer.run(&["download", &url, "--force"]);
    world.files.put("/acme/app/1.0/app", "tampered with");
    forced().failed(3).says(&["app"]);
    assert_eq!(computer.read("app"), b"precious");
    world.files.set("/acme/app/1.0/app", Answer::BrokenOff(b"conte".to_vec()));
    forced().failed(5);
    assert_eq!(computer.read("app"), b"precious");
    assert_eq!(computer.listing(), ["app"], "no remains");
    world.files.put("/acme/app/1.0/app", "content");
    computer.download(&url).failed(1).says(&["--force"]);
    assert_eq!(computer.read("app"), b"precious");
    forced().ok();
    assert_eq!(computer.read("app"), b"content");
}

#[test]
fn a_special_file_in_the_place_of_the_target_is_not_replaced_unseen() {
    let (world, computer) = released(&[("app", b"content")]);
    let made = std::process::Command::new("mkfifo").arg(computer.path("pipe")).status();
    assert!(made.expect("`mkfifo` is there").success());
    // As `-o /dev/null`, which root would otherwise turn into a plain file.
    let ran = computer.run(&["download", &url(&world, "app"), "-o", "pipe"]);
    let kind = fs::symlink_metadata(computer.path("pipe")).unwrap().file_type();
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&kind), "the pipe was replaced: {ran:?}");
    assert_ne!(ran.code, 0, "{ran:?}");
}

#[test]
fn a_link_to_another_place_leaves_that_place_alone() {
    let (world, computer) = released(&[("app", b"content")]);
    computer.write("elsewhere", "precious");
    std::os::unix::fs::symlink("elsewhere", computer.path("app")).unwrap();
    computer.run(&["download", &url(&world, "app"), "--force"]).ok();
    assert_eq!(computer.read("elsewhere"), b"precious");
    assert_eq!(computer.read("app"), b"content");
}

#[test]
fn a_file_of_the_same_length_with_other_bytes_is_not_kept() {
    let (world, computer) = released(&[("app", b"content")]);
    world.files.put("/acme/app/1.0/app", "Content");
    computer.download(&url(&world, "app")).failed(3).says(&["not the file that was signed"]);
    assert_eq!(computer.listing(), [""; 0]);
}

#[test]
fn empty_files_and_large_ones_arrive_whole() {
    let large: Vec<u8> = (0..5_000_003_u32).map(|position| (position % 251) as u8).collect();
    let (world, computer) = released(&[("empty", b""), ("large", &large)]);
    let report = computer.json(&["download", &url(&world, "empty")]);
    assert_eq!(report["size"], 0);
    assert_eq!(computer.read("empty"), b"");
    let report = computer.json(&["download", &url(&world, "large")]);
    assert_eq!(report["size"], large.len());
    assert_eq!(report["digests"]["sha256"], Sha256::of(&large).to_string());
    assert!(computer.read("large") == large);
    computer.run(&["verify", "large", "--url", &url(&world, "large")]).ok();
    computer.write("large", &large[1..]);
    computer.run(&["verify", "large", "--url", &url(&world, "large")]).failed(3);
    computer.write("empty", " ");
    computer.run(&["verify", "empty", "--url", &url(&world, "empty")]).failed(3);
}

#[test]
fn names_in_sub_directories_are_found_by_the_index_above() {
    let (world, computer) = released(&[("linux/x64/app", b"for linux"), ("mac/app", b"for mac")]);
    computer.download(&url(&world, "linux/x64/app")).ok();
    assert_eq!(computer.read("app"), b"for linux");
    computer.run(&["download", &url(&world, "mac/app"), "-o", "mac-app"]).ok();
    assert_eq!(computer.read("mac-app"), b"for mac");
    // Only exactly this file counts, not one with the same last name.
    computer.download(&url(&world, "windows/app")).failed(3).says(&["not signed"]);
}

#[test]
fn the_index_of_the_own_directory_counts_only_if_it_lists_the_file() {
    let world = project();
    add_files(&world, "acme/app/1.0", &[("sub/app", b"above")], &[&alice()]);
    add_files(&world, "acme/app/1.0/sub", &[("other", b"beside")], &[&alice()]);
    let computer = Computer::of(&world.server);
    computer.download(&url(&world, "sub/app")).ok();
    assert_eq!(computer.read("app"), b"above");
    computer.download(&url(&world, "sub/other")).ok();
}

#[test]
fn escaped_names_are_the_names_in_the_index() {
    let (world, computer) = released(&[("my app+ü.txt", b"content")]);
    world.files.put("/acme/app/1.0/my%20app+%C3%BC.txt", "content");
    world.files.put("/acme/app/1.0/my%20app%2B%C3%BC.txt", "content");
    computer.download(&url(&world, "my%20app+%C3%BC.txt")).ok().says(&["my app+ü.txt"]);
    assert_eq!(computer.listing(), ["my app+ü.txt"]);
}

#[test]
fn a_sha512_alone_is_enough() {
    let world = project();
    world.files.put("/acme/app/1.0/app", "content");
    world.files.put("/acme/app/1.0/SHA512SUMS", format!("{}  app\n", Sha512::of(b"content")));
    world.register_assets(&alice(), &[&url(&world, "SHA512SUMS")]).ok();
    world.sign_all(&world.index_path("acme/app/1.0"), &[&alice()]);
    let computer = Computer::of(&world.server);
    let report = computer.json(&["download", &url(&world, "app")]);
    assert_eq!(report["digests"], json!({ "sha256": null, "sha512": Sha512::of(b"content").to_string() }));
    world.files.put("/acme/app/1.0/app", "Content");
    computer.run(&["download", &url(&world, "app"), "-o", "again"]).failed(3);
    assert_eq!(computer.listing(), ["app"]);
}

#[test]
fn releases_that_are_not_or_not_fully_signed_are_refused() {
    let (bob, computer_dir) = (Person::named("bob"), "acme/app/1.0");
    let world = World::with_project(&SignersFile::of(2, &[&alice(), &bob]), &[&alice(), &bob]);
    let computer = Computer::of(&world.server);
    let sums = put_release(&world.files, computer_dir, &[("app", b"content")]);
    computer.download(&url(&world, "app")).failed(3).says(&["not signed"]);
    computer.run_as("alice", &["release", "--checksums", &sums]).ok();
    computer.download(&url(&world, "app")).failed(3);
    computer.run_as("alice", &["sign", "--all", "--yes"]).ok();
    computer.download(&url(&world, "app")).failed(3).says(&["1 of 2 signatures"]);
    computer.run_as("bob", &["sign", "--all", "--yes"]).ok();
    computer.download(&url(&world, "app")).ok();
}

#[test]
fn the_latest_release_is_refused_with_the_form_to_use() {
    let computer = Computer::offline();
    for url in [
        "https://github.com/acme/app/releases/latest/download/app.tar.gz",
        "https://codeberg.org/acme/app/releases/latest",
        "https://gitlab.com/acme/app/-/releases/permalink/latest/downloads/app.tar.gz",
    ] {
        computer.download(url).failed(2).says(&["latest", "TAG"]);
        computer.run(&["download", url, "--json"]).json_error(2);
        computer.run(&["bundle", url, "-o", "b.json"]).failed(2);
    }
}

#[test]
fn urls_that_name_no_file_are_usage_errors() {
    let computer = Computer::offline();
    for url in [
        "",
        "app.tar.gz",
        "ftp://example.org/app",
        "file:///etc/passwd",
        "http://127.0.0.1:9/",
        "http://u@h/x",
    ] {
        computer.download(url).failed(2);
    }
}

#[test]
fn two_downloads_at_once_keep_both_pins() {
    let world = World::start();
    let projects = ["acme/app", "beta/tool", "gamma/lib", "delta/kit"];
    for project in projects {
        world.activate(project, &SignersFile::of(1, &[&alice()]), &[&alice()]);
        add_files(&world, &format!("{project}/1.0"), &[("file", b"content")], &[&alice()]);
    }
    let computer = Computer::of(&world.server);
    std::thread::scope(|scope| {
        for (number, project) in projects.iter().enumerate() {
            let (computer, world) = (&computer, &world);
            scope.spawn(move || {
                let url = world.files.url(&format!("/{project}/1.0/file"));
                computer.run(&["download", &url, "-o", &format!("file{number}")]).ok();
            });
        }
    });
    let pins = computer.pins();
    for project in projects {
        assert!(pins["projects"][world.id(project)].is_object(), "{project}: {pins}");
    }
    assert_eq!(computer.listing(), ["file0", "file1", "file2", "file3"]);
}

#[test]
fn several_groups_are_each_named_with_their_threshold() {
    let (bob, carol) = (Person::named("bob"), Person::named("carol"));
    let file = SignersFile::of(1, &[&alice(), &bob]).artifact(1, &[&carol]);
    let world = World::with_project(&file, &[&alice(), &bob, &carol]);
    add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&bob, &carol]);
    let computer = Computer::of(&world.server);
    computer.download(&url(&world, "app")).ok().says(&["1 of 2", "1 of 1", &bob.key(), &carol.key()]);
    let report = computer.json(&["verify", text(&computer.path("app")), "--url", &url(&world, "app")]);
    let group = |size| json!({ "threshold": 1, "size": size, "signed": 1 });
    assert_eq!(report["thresholds"], json!([group(2), group(1)]));
}
