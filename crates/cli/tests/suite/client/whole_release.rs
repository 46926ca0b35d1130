//! `countersign verify --whole`: the files of a release, all of them and nothing else. The rest is text (`client_whole.txt`).

use crate::support::{SignersFile, World, alice, client::Computer, client::Ran, client::add_files};

const FILES: [(&str, &[u8]); 3] =
    [("app-linux", b"for linux"), ("app-mac", b"for mac"), ("doc/manual", b"read me")];

fn released() -> (World, Computer) {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    add_files(&world, "acme/app/1.0", &FILES, &[&alice()]);
    let computer = Computer::of(&world.server);
    (world, computer)
}

/// A directory with the whole release, and what `verify --whole` says of it.
struct Whole {
    world: World,
    computer: Computer,
}

impl Whole {
    fn downloaded() -> Self {
        let (world, computer) = released();
        computer.run(&["download", &world.id("acme/app"), "1.0", "-o", "out"]).ok();
        Self { world, computer }
    }

    #[track_caller]
    fn verify(&self, files: &[&str]) -> Ran {
        let index = self.world.index_path("acme/app/1.0");
        self.computer.run(&[&["verify", "--whole", "--release", &index, "--"], files].concat())
    }

    #[track_caller]
    fn refuses(&self, files: &[&str], words: &[&str]) {
        self.verify(files).failed(3).says(words);
    }
}

#[test]
fn whole_means_files_only_each_in_its_place_and_once() {
    let whole = Whole::downloaded();
    whole.verify(&["out"]).ok();
    let path = |name: &str| whole.computer.path(name);
    for (name, target) in [("out/link", "app-linux"), ("out/link", "no/such/file"), ("out/doc/link", "..")] {
        std::os::unix::fs::symlink(target, path(name)).unwrap();
        whole.refuses(&["out"], &["link", "neither a file nor a directory"]);
        // What is not looked at is not called verified, whether or not all files must be there.
        let index = whole.world.index_path("acme/app/1.0");
        whole.computer.run(&["verify", "out", "--release", &index]).failed(3);
        whole.computer.run(&["verify", "out"]).failed(3);
        std::fs::remove_file(path(name)).unwrap();
    }
    let made = std::process::Command::new("mkfifo").arg(path("out/pipe")).status().unwrap();
    assert!(made.success());
    whole.refuses(&["out"], &["pipe"]);
    std::fs::remove_file(path("out/pipe")).unwrap();
    // The right bytes behind a link are refused as well: the link can lead elsewhere later.
    std::fs::rename(path("out/app-mac"), path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", path("out/app-mac")).unwrap();
    whole.refuses(&["out"], &["app-mac"]);
    std::fs::rename(path("elsewhere"), path("out/app-mac")).unwrap();
    std::os::unix::fs::symlink("out", path("other")).unwrap();
    for given in ["other", "other/"] {
        whole.refuses(&[given], &["other"]);
    }
    whole.verify(&["out/"]).ok();

    let moves = [
        ("out/app-mac", "out/app-windows"),
        ("out/app-mac", "out/doc/app-mac"),
        ("out/doc/manual", "out/manual"),
        ("out/doc", "out/docs"),
    ];
    for (from, to) in moves {
        std::fs::rename(path(from), path(to)).unwrap();
        whole.refuses(&["out"], &["is not a file of"]);
        std::fs::rename(path(to), path(from)).unwrap();
    }
    // Two names that exchange their content.
    std::fs::rename(path("out/app-mac"), path("kept")).unwrap();
    std::fs::copy(path("out/app-linux"), path("out/app-mac")).unwrap();
    whole.refuses(&["out"], &["app-mac"]);
    std::fs::rename(path("kept"), path("out/app-mac")).unwrap();
    whole.refuses(&["out", "out"], &["twice"]);
    whole.refuses(&["out", "out/app-mac"], &["twice"]);
    std::fs::copy(path("out/app-mac"), path("out/app-mac (1)")).unwrap();
    whole.refuses(&["out"], &["app-mac (1)"]);
    std::fs::remove_file(path("out/app-mac (1)")).unwrap();
    // A file that is named has no directory to be relative to.
    whole.refuses(&["out/app-linux", "out/app-mac", "out/doc/manual"], &["manual"]);
    whole.verify(&["out"]).ok();

    // The URL of a file puts results out too.
    let Whole { world, computer } = whole;
    computer.write("mine", FILES[0].1);
    let url = world.files.url("/acme/app/1.0/app-linux");
    computer.run(&["verify", "--url", &url, "--outputs", "results", "mine"]).ok();
    let index = world.index_path("acme/app/1.0");
    let expected = format!("COUNTERSIGN_INDEX={index}\nCOUNTERSIGN_STATE=verified\n");
    assert_eq!(String::from_utf8(computer.read("results")).unwrap(), expected);
    computer.write("mine", "another");
    computer.run(&["verify", "--url", &url, "--outputs", "none", "mine"]).failed(3);
    assert!(!computer.path("none").exists());
}
