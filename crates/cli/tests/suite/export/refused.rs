//! Releases that are not exported, and directories that are not written to.

use std::{fs, os::unix::fs::symlink};

use countersign_core::values::digest::Sha512;

use super::scene::{Exported, FILES, OPENSSL, assert_verified, project, shells};
use crate::support::{SignersFile, World, client::Computer, client::Ran, client::add_files, person};

fn export(computer: &Computer, index: &str) -> Ran {
    computer.run(&[&["export", index, "-o", "out"][..], &OPENSSL].concat())
}

#[test]
fn a_release_that_collects_signatures_is_refused_as_by_bundle() {
    let world = project();
    let index = world.add_release(&person("alice"), "acme/app/1.0");
    world.sign(&person("alice"), &index).ok();
    let computer = Computer::of(&world.server);
    let bundle = computer.run(&["bundle", &index, "-o", "b.json"]).failed(3);
    let refused = export(&computer, &index).failed(3);
    assert_eq!(refused.stderr, bundle.stderr);
    assert!(computer.listing().is_empty(), "{:?}", computer.listing());
}

#[test]
fn a_revoked_release_is_refused() {
    let world = project();
    let index = add_files(&world, "acme/app/1.0", &FILES, &[&person("alice"), &person("bob")]);
    let computer = Computer::of(&world.server);
    world.revoke(&person("alice"), &index).ok();
    export(&computer, &index).failed(4).says(&["REVOKED", "key leaked"]);
    assert!(computer.listing().is_empty(), "{:?}", computer.listing());
}

#[test]
fn a_begun_revocation_is_told_by_export_and_bundle() {
    let (alice, rita, ron) = (person("alice"), person("rita"), person("ron"));
    let file = SignersFile::of(1, &[&alice]).revocation(2, &[&rita, &ron]);
    let world = World::with_project(&file, &[&alice, &rita, &ron]);
    let index = add_files(&world, "acme/app/1.0", &FILES, &[&alice]);
    let computer = Computer::of(&world.server);
    export(&computer, &index).ok().says_nothing_of(&["revocation was begun"]);
    computer.run_as("rita", &["revoke", &index, "--reason", "key leaked", "--yes"]).ok();
    let again = computer.run(&[&["export", &index, "-o", "again"][..], &OPENSSL].concat()).ok();
    again.says(&["its revocation was begun", "key leaked"]);
    let bundle = computer.run(&["bundle", &index, "-o", "b.json"]).ok();
    bundle.says(&["its revocation was begun", "key leaked", "Bundled"]);
}

#[test]
fn signers_that_are_not_the_accepted_ones_are_refused() {
    let world = project();
    let index = add_files(&world, "acme/app/1.0", &FILES, &[&person("alice"), &person("bob")]);
    let computer = Computer::of(&world.server);
    let wrong = format!("sha512:{}", Sha512::of(b"another file"));
    computer
        .run(&[&["export", &index, "-o", "out", "--signers-digest", &wrong][..], &OPENSSL].concat())
        .failed(3)
        .says(&["--signers-digest"]);
    assert!(computer.listing().is_empty(), "{:?}", computer.listing());
}

#[test]
fn a_release_without_sha256_says_which_file_lacks_it() {
    let world = project();
    let path = "/acme/app/1.0/SHA512SUMS";
    world.files.put(path, format!("{}  app.tar.gz\n", Sha512::of(b"the archive")));
    world.register_assets(&person("alice"), &[&world.files.url(path)]).ok();
    let index = world.index_path("acme/app/1.0");
    world.sign_all(&index, &[&person("alice"), &person("bob")]);
    let computer = Computer::of(&world.server);
    export(&computer, &index).failed(1).says(&["SHA-256", "app.tar.gz", "countersign bundle"]);
    assert!(computer.listing().is_empty(), "{:?}", computer.listing());
}

#[test]
fn a_tool_must_be_named_and_known() {
    let computer = Computer::offline();
    computer.run(&["export", "acme/app", "1.0", "-o", "out"]).failed_as_usage();
    computer.run(&["export", "acme/app", "1.0", "-o", "out", "--for", "gpg"]).failed_as_usage();
    computer.run(&["export", "acme/app", "1.0", "--for", "openssl"]).failed_as_usage();
}

#[test]
fn what_is_there_is_replaced_only_with_force() {
    let exported = Exported::new();
    let Exported { computer, index, .. } = &exported;
    let script = computer.read("out/verify.sh");
    computer.write("out/mine", "precious");
    computer.write("out/SHA256SUMS", "changed");
    export(computer, index).failed(2).says(&["out is not empty", "--force"]);
    assert_eq!(computer.read("out/SHA256SUMS"), b"changed");
    computer.run(&[&["export", index, "-o", "out", "--force"][..], &OPENSSL].concat()).ok();
    assert_eq!(computer.read("out/verify.sh"), script);
    assert_eq!(computer.read("out/mine"), b"precious");
    for shell in shells() {
        assert_verified(exported.verify(shell, &exported.dir()));
    }
    // A file is no directory, and an empty directory is as good as none.
    computer.write("file", "");
    computer.run(&[&["export", index, "-o", "file"][..], &OPENSSL].concat()).failed(1).says(&["file"]);
    fs::create_dir(computer.path("empty")).unwrap();
    computer.run(&[&["export", index, "-o", "empty"][..], &OPENSSL].concat()).ok();
}

#[test]
fn nothing_is_written_through_a_link() {
    let exported = Exported::new();
    let Exported { computer, index, .. } = &exported;
    let force = |out: &str| computer.run(&[&["export", index, "-o", out, "--force"][..], &OPENSSL].concat());
    fs::create_dir(computer.path("elsewhere")).unwrap();
    computer.write("elsewhere/precious", "kept");
    let script = computer.read("out/verify.sh");
    for name in ["keys", "signatures"] {
        let (dir, kept) = (computer.path(&format!("out/{name}")), computer.path("kept"));
        fs::rename(&dir, &kept).unwrap();
        symlink(computer.path("elsewhere"), &dir).unwrap();
        force("out").failed(2).says(&[&format!("out/{name} is a symbolic link"), "-o DIR"]);
        fs::remove_file(&dir).unwrap();
        fs::rename(&kept, &dir).unwrap();
    }
    for name in ["SHA256SUMS", "keys/signer-1.pem", "verify.sh"] {
        let path = computer.path(&format!("out/{name}"));
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        symlink(computer.path("elsewhere/precious"), &path).unwrap();
        force("out").failed(2).says(&[&format!("out/{name} is a symbolic link")]);
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    symlink(computer.path("elsewhere"), computer.path("link")).unwrap();
    for out in ["link", "link/", "link/."] {
        force(out).failed(2).says(&["link is a symbolic link"]);
    }
    assert_eq!(computer.read("elsewhere/precious"), b"kept");
    assert_eq!(fs::read_dir(computer.path("elsewhere")).unwrap().count(), 1);
    assert_eq!(computer.read("out/verify.sh"), script, "what is refused changes nothing");
    force("out").ok();
}

#[test]
fn a_download_does_not_leave_its_directory_by_a_link() {
    let exported = Exported::new();
    let Exported { computer, index, .. } = &exported;
    fs::create_dir(computer.path("elsewhere")).unwrap();
    fs::create_dir(computer.path("got")).unwrap();
    symlink(computer.path("elsewhere"), computer.path("got/dir")).unwrap();
    computer.run(&["download", index, "-o", "got"]).failed(2).says(&["got/dir is a symbolic link"]);
    assert_eq!(fs::read_dir(computer.path("elsewhere")).unwrap().count(), 0);
}
