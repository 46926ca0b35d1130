//! `countersign sign --files`: the comparison with one's own files. The rest of `sign` is text (`client_sign.txt`).

use std::{fs, os::unix::fs::symlink};

use crate::support::{SignersFile, World, client::Computer, client::put_release, person};

const FILES: [(&str, &[u8]); 3] = [("app", b"content"), ("sub/lib", b"library"), ("notes", b"")];

/// A project of alice and bob, both needed, with an unsigned release; its index.
#[track_caller]
fn unsigned() -> (World, Computer, String) {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let sums = put_release(&world.files, "acme/app/1.0", &FILES);
    let computer = Computer::of(&world.server);
    computer.run_as("alice", &["release", "--checksums", &sums]).ok();
    let index = world.index_path("acme/app/1.0");
    (world, computer, index)
}

/// The release as it was built at home, in the directory `built`.
fn build(computer: &Computer) {
    let _ = fs::remove_dir_all(computer.path("built"));
    for (name, bytes) in FILES {
        computer.write(&format!("built/{name}"), bytes);
    }
}

#[test]
fn own_files_are_compared_and_a_match_can_be_required() {
    let (world, computer, index) = unsigned();
    let args = ["sign", &index, "--files", "built", "--require-match", "--yes"];
    computer.run_as("alice", &args).failed(2).says(&["built"]);
    type Change = fn(&Computer);
    let changes: [(&str, Change, &str); 7] = [
        ("app", |computer| drop(computer.write("built/app", "Content")), "1 differ"),
        ("app", |computer| fs::remove_file(computer.path("built/app")).unwrap(), "1 missing"),
        ("sub/lib", |computer| fs::remove_file(computer.path("built/sub/lib")).unwrap(), "1 missing"),
        ("notes", |computer| drop(computer.write("built/notes", " ")), "1 differ"),
        // A directory or a link in the place of a file, and a file in the place of a directory.
        (
            "app",
            |computer| {
                fs::remove_file(computer.path("built/app")).unwrap();
                fs::create_dir(computer.path("built/app")).unwrap();
            },
            "1 differ",
        ),
        (
            "app",
            |computer| {
                fs::remove_file(computer.path("built/app")).unwrap();
                symlink("nowhere", computer.path("built/app")).unwrap();
            },
            "1 missing",
        ),
        (
            "sub/lib",
            |computer| {
                fs::remove_dir_all(computer.path("built/sub")).unwrap();
                computer.write("built/sub", "a file");
            },
            "2 match",
        ),
    ];
    for (name, change, count) in changes {
        build(&computer);
        change(&computer);
        let refused = computer.run_as("alice", &args).failed(3).says(&["2 match", count]);
        let line = refused.stderr.lines().find(|line| line.trim_start().starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("{name}: {refused:?}")).to_lowercase();
        assert!(line.contains("differ") || line.contains("missing"), "{line}");
    }
    computer.run_as("alice", &[&args[..], &["--json"]].concat()).json_error(3);
    assert_eq!(world.pending(&person("alice")), [index.as_str()]);
    build(&computer);
    computer.run_as("alice", &args).ok().says(&["3 match", "0 differ", "0 missing"]);
    // Without --require-match the signer decides. What --files asks for is told, and nothing else where no one is asked.
    computer.write("built/app", "Content");
    let quiet = computer.run_as("bob", &["sign", &index, "--yes", "--quiet", "--files", "built"]).ok();
    quiet.says(&["app DIFFERS"]);
}
