//! `countersign download` of large files, and several at once. The rest is text (`client_download.txt`).

use countersign_core::values::digest::Sha256;

use crate::support::client::{Computer, add_files};
use crate::support::{SignersFile, World, alice};

/// A project with one release `1.0` of these files.
fn released(files: &[(&str, &[u8])]) -> (World, Computer) {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    add_files(&world, "acme/app/1.0", files, &[&alice()]);
    let computer = Computer::of(&world.server);
    (world, computer)
}

fn url(world: &World, name: &str) -> String {
    world.files.url(&format!("/acme/app/1.0/{name}"))
}

#[test]
fn empty_files_large_ones_and_odd_names_arrive_whole() {
    let large: Vec<u8> = (0..5_000_003_u32).map(|position| (position % 251) as u8).collect();
    let names: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("large", &large),
        ("linux/x64/app", b"for linux"),
        ("mac/app", b"for mac"),
        ("my app+ü.txt", b"escaped"),
    ];
    let (world, computer) = released(&names);
    for (name, content) in [("empty", &b""[..]), ("large", &large)] {
        let report = computer.json(&["download", &url(&world, name)]);
        assert_eq!(report["size"], content.len());
        assert_eq!(report["digests"]["sha256"], Sha256::of(content).to_string());
        assert!(computer.read(name) == content);
        computer.run(&["verify", name, "--url", &url(&world, name)]).ok();
    }
    computer.write("large", &large[1..]);
    computer.write("empty", " ");
    for name in ["large", "empty"] {
        computer.run(&["verify", name, "--url", &url(&world, name)]).failed(3);
    }
    // Names in sub-directories are found by the index above: exactly this file, not one with the same last name.
    computer.download(&url(&world, "linux/x64/app")).ok();
    assert_eq!(computer.read("app"), b"for linux");
    computer.run(&["download", &url(&world, "mac/app"), "-o", "mac-app"]).ok();
    assert_eq!(computer.read("mac-app"), b"for mac");
    computer.download(&url(&world, "windows/app")).failed(3).says(&["not signed"]);
    world.files.put("/acme/app/1.0/my%20app+%C3%BC.txt", "escaped");
    computer.download(&url(&world, "my%20app+%C3%BC.txt")).ok().says(&["my app+ü.txt"]);
    assert_eq!(computer.read("my app+ü.txt"), b"escaped");
    // The index of the file's own directory counts only if it lists the file.
    add_files(&world, "acme/app/1.0/mac", &[("other", b"beside")], &[&alice()]);
    computer.run(&["download", &url(&world, "mac/app"), "--force"]).ok();
    assert_eq!(computer.read("app"), b"for mac");
    computer.download(&url(&world, "mac/other")).ok();
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
