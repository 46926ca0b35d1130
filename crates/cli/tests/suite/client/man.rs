//! Manual pages, and digests as `sha512sum` prints them.

use crate::support::{Person, SignersFile, World, client::Computer, client::Ran, client::add_files};

#[test]
fn every_command_has_a_manual_page() {
    let computer = Computer::offline();
    computer.run(&["man"]).ok().says(&[".TH countersign 1", "Exit codes"]);
    computer.run(&["man", "pages", "--quiet"]).ok();
    for page in ["countersign.1", "countersign-sign.1", "countersign-signers-edit.1", "countersign-man.1"] {
        let text = String::from_utf8(computer.read(&format!("pages/{page}"))).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
}

#[test]
fn the_package_has_the_program_its_pages_and_its_completions() {
    let computer = Computer::offline();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/install");
    let mut command = std::process::Command::new(script);
    computer.settle(&mut command);
    command
        .env("PROGRAM", env!("CARGO_BIN_EXE_countersign"))
        .env("PREFIX", "/usr")
        .env("DESTDIR", computer.path("root"));
    Ran::of(&mut command).ok();
    let share = "root/usr/share";
    for (file, word) in [
        (format!("{share}/man/man1/countersign-download.1"), "download"),
        (format!("{share}/bash-completion/completions/countersign"), "_countersign"),
        (format!("{share}/zsh/site-functions/_countersign"), "#compdef countersign"),
        (format!("{share}/fish/vendor_completions.d/countersign.fish"), "complete -c countersign"),
    ] {
        assert!(String::from_utf8(computer.read(&file)).unwrap().contains(word), "{file}");
    }
    assert!(computer.path("root/usr/bin/countersign").is_file());
}

#[test]
fn a_digest_is_taken_as_sha512sum_prints_it() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice]);
    let url = world.files.url("/acme/app/1.0/app");
    let digest = countersign_core::values::digest::Sha512::of(&world.read(&world.active_path("acme/app")));
    let (hex, prefixed) = (digest.to_string(), digest.to_prefixed());
    let forms = [hex.clone(), hex.to_uppercase(), format!("{hex}  svc.signers.json"), prefixed];
    for form in forms {
        Computer::of(&world.server).run(&["download", &url, "--signers-digest", &form]).ok();
    }
    let other = "0".repeat(128);
    Computer::of(&world.server).run(&["download", &url, "--signers-digest", &other]).failed(3);
    for wrong in ["abc", &hex[1..], &format!("sha256:{hex}"), ""] {
        Computer::offline().run(&["download", &url, "--signers-digest", wrong]).failed_as_usage();
    }
}
