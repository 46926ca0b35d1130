//! All files of a release, the newest release of a project, and files that are verified by what they are.

use serde_json::json;

use crate::support::{Person, SignersFile, World, alice, client::Computer, client::Ran, client::add_files};

const FILES: [(&str, &[u8]); 3] =
    [("app-linux", b"for linux"), ("app-mac", b"for mac"), ("doc/manual", b"read me")];

fn released() -> (World, Computer) {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    add_files(&world, "acme/app/1.0", &FILES, &[&alice()]);
    let computer = Computer::of(&world.server);
    (world, computer)
}

#[test]
fn a_whole_release_is_downloaded_into_a_directory() {
    let (world, computer) = released();
    let report = computer.json(&["download", &world.id("acme/app"), "1.0", "-o", "out"]);
    assert_eq!(report["files"].as_array().unwrap().len(), 3);
    for (name, content) in FILES {
        assert_eq!(computer.read(&format!("out/{name}")), content, "{name}");
    }
    // Again: what is there already is not fetched anew.
    let before = world.files.asked().len();
    computer.run(&["download", &world.id("acme/app"), "1.0", "-o", "out"]).ok();
    assert_eq!(world.files.asked().len(), before);
}

#[test]
fn only_what_fits_is_downloaded() {
    let (world, computer) = released();
    computer.run(&["download", &world.id("acme/app"), "1.0", "--only", "*linux*", "--only", "doc/*"]).ok();
    assert_eq!(computer.listing(), ["app-linux", "doc"]);
    computer
        .run(&["download", &world.id("acme/app"), "1.0", "--only", "*.exe"])
        .failed(2)
        .says(&["--only", "app-linux"]);
}

/// The client, the page and its command agree on which one that is (D77).
#[test]
fn a_project_means_its_newest_release() {
    let [alice, bob] = [alice(), Person::named("bob")];
    let file = SignersFile::of(1, &[&alice]).revocation(2, &[&alice, &bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    let project = world.id("acme/app");
    computer.run(&["download", &project]).failed(1).says(&["no complete release"]);
    let url = |version: &str, file: &str| world.files.url(&format!("/acme/app/{version}/{file}"));
    let newest_is = |version: &str, file: &str| {
        computer.run(&["download", &project, "-o", version]).ok().says(&[version, "Verified", file]);
        let page = world.server.get(&format!("/p/{project}")).text();
        assert!(page.contains(&format!("countersign download {}", url(version, file))), "{page}");
    };
    add_files(&world, "acme/app/1.9", &[("app-old", b"old")], &[&alice]);
    newest_is("1.9", "app-old");
    let tenth = add_files(&world, "acme/app/1.10", &[("app-new", b"new")], &[&alice]);
    // A late fix of an old line, and one that no one has signed yet.
    add_files(&world, "acme/app/1.8.1", &[("app-fix", b"fix")], &[&alice]);
    world.add_release(&alice, "acme/app/3.0");
    newest_is("1.10", "app-new");
    world.revoke(&alice, &tenth);
    newest_is("1.9", "app-old");
}

#[test]
fn a_file_that_is_there_and_differs_is_replaced_only_with_force() {
    let (world, computer) = released();
    computer.write("app-mac", "precious");
    let all = ["download", &world.id("acme/app"), "1.0"];
    computer.run(&all).failed(1).says(&["app-mac", "--force"]);
    assert_eq!(computer.read("app-mac"), b"precious");
    computer.run(&[&all[..], &["--force"]].concat()).ok();
    assert_eq!(computer.read("app-mac"), b"for mac");
}

#[test]
fn a_file_finds_its_release_by_its_digest() {
    let (world, computer) = released();
    computer.write("renamed.bin", "for mac");
    let report = computer.json(&["verify", "renamed.bin"]);
    assert_eq!(report["index_path"], world.index_path("acme/app/1.0"));
    assert_eq!(report["file_name"], "app-mac");
    computer.write("other", "nobody's");
    computer.run(&["verify", "other"]).failed(3).says(&["other", "no complete release"]);
    computer.run(&["verify", "absent"]).failed(1).says(&["absent"]);
}

#[test]
fn many_files_and_directories_are_verified_at_once() {
    let (world, computer) = released();
    add_files(&world, "acme/app/2.0", &[("new", b"new one")], &[&alice()]);
    for (name, content) in FILES {
        computer.write(&format!("all/{name}"), content);
    }
    computer.write("new", "new one");
    let report = computer.json(&["verify", "all", "new"]);
    assert_eq!(report["releases"].as_array().unwrap().len(), 2, "{report}");
    computer.run(&["verify", "all", "--release", &world.id("acme/app"), "1.0"]).ok();
    computer.write("all/evil", "tampered");
    let error = computer.run(&["verify", "all", "new", "--json"]).json_error(3);
    assert_eq!(error["failed"][0]["file"], "all/evil", "{error}");
    assert_eq!(error["releases"].as_array().unwrap().len(), 2, "the others are told as well: {error}");
    computer.run(&["verify", "all", "new"]).says(&["NOT verified", "all/evil", "Verified"]);
}

#[test]
fn a_file_of_a_revoked_release_is_told_as_revoked() {
    let (world, computer) = released();
    world.revoke(&alice(), &world.index_path("acme/app/1.0")).ok();
    computer.write("app", "for mac");
    computer.run(&["verify", "app"]).failed(4).says(&["REVOKED"]);
}

#[test]
fn a_begun_revocation_is_told_at_the_download() {
    let [alice, bob] = [alice(), Person::named("bob")];
    let file = SignersFile::of(1, &[&alice]).revocation(2, &[&alice, &bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    add_files(&world, "acme/app/1.0", &FILES, &[&alice]);
    let computer = Computer::of(&world.server);
    assert_eq!(world.revoke(&alice, &world.index_path("acme/app/1.0")).json()["revoked"], json!(false));
    let url = world.files.url("/acme/app/1.0/app-mac");
    computer.download(&url).ok().says(&["Verified", "warning:", "revocation was begun"]);
    let waiting = computer.json_as("bob", &["pending"]);
    assert_eq!(waiting["pending"][0]["kind"], json!("revocation"), "{waiting}");
    computer.run_as("bob", &["pending"]).ok().says(&["revoke:", "1 of 2", "acme/app"]);
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
fn whole_means_files_only() {
    let whole = Whole::downloaded();
    whole.verify(&["out"]).ok();
    let path = |name: &str| whole.computer.path(name);
    for (name, target) in [
        ("out/link", "app-linux"),
        ("out/link", "/etc/passwd"),
        ("out/link", "no/such/file"),
        ("out/doc/link", ".."),
    ] {
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
}

#[test]
fn whole_means_each_file_in_its_place_and_once() {
    let whole = Whole::downloaded();
    let path = |name: &str| whole.computer.path(name);
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
}

#[test]
fn the_url_of_a_file_puts_results_out_too() {
    let (world, computer) = released();
    computer.write("mine", FILES[0].1);
    let url = world.files.url("/acme/app/1.0/app-linux");
    computer.run(&["verify", "--url", &url, "--outputs", "out", "mine"]).ok();
    let index = world.index_path("acme/app/1.0");
    let expected = format!("COUNTERSIGN_INDEX={index}\nCOUNTERSIGN_STATE=verified\n");
    assert_eq!(String::from_utf8(computer.read("out")).unwrap(), expected);
    computer.write("mine", "another");
    computer.run(&["verify", "--url", &url, "--outputs", "none", "mine"]).failed(3);
    assert!(!computer.path("none").exists());
}

#[test]
fn every_file_of_a_revoked_release_is_named() {
    let (world, computer) = released();
    for (name, content) in FILES {
        computer.write(&format!("out/{name}"), content);
    }
    world.revoke(&alice(), &world.index_path("acme/app/1.0")).ok();
    let error = computer.run(&["verify", "out", "--json"]).json_error(4);
    assert_eq!(error["failed"].as_array().unwrap().len(), 3, "{error}");
    computer.run(&["verify", "out"]).failed(4).says(&[
        "3 files are not verified",
        "app-linux",
        "app-mac",
        "manual",
    ]);
    // Whatever else is wrong, that something is revoked decides the code.
    computer.write("out/a-strange-file", b"in no release");
    let error = computer.run(&["verify", "out", "--json"]).json_error(4);
    assert_eq!(error["failed"].as_array().unwrap().len(), 4, "{error}");
}

#[test]
fn versions_that_are_skipped_are_named_with_the_reason() {
    let (alice, bob) = (alice(), Person::named("bob"));
    let file = SignersFile::of(1, &[&alice]).revocation(2, &[&alice, &bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    let (project, index) = (world.id("acme/app"), world.index_path("acme/app/1.3"));
    add_files(&world, "acme/app/1.3", &[("app", b"new")], &[&alice]);
    let document = world.revocation_of(&index, "oops");
    assert_eq!(world.revoke_with(&alice, &index, &document).json()["revoked"], json!(false));
    let begun = "1.3 is skipped: its revocation has begun, 1 of 2 signatures.";
    computer.run(&["download", &project]).failed(1).says(&["no release of", begun]);
    add_files(&world, "acme/app/1.2", &[("app", b"old")], &[&alice]);
    computer.run(&["download", &project, "-o", "out"]).ok().says(&[begun, "Verified"]);
    // A warning is read also by those who like it quiet.
    let quiet = computer.run(&["download", &project, "1.3", "-o", "quiet", "--quiet"]).ok();
    assert!(quiet.stdout.is_empty() && quiet.stderr.contains("its revocation was begun"), "{quiet:?}");
    computer.run(&["verify", "quiet/app", "--quiet"]).ok().says(&["its revocation was begun"]);
    let told = computer.json(&["verify", "quiet/app"]);
    assert_eq!(told["pending_revocation"]["reason"], "oops");
    world.revoke_with(&bob, &index, &document).ok();
    computer.run(&["download", &project, "-o", "out"]).ok().says(&["1.3 is skipped: it is revoked."]);
}
