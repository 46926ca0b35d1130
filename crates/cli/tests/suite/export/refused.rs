//! Releases that are not exported, and directories that are not written to.

use std::{fs, os::unix::fs::symlink};

use countersign_core::values::digest::Sha512;

use super::scene::{Scene, assert_verified, signers, tools};
use crate::support::{client::Computer, client::Ran, person};

fn export(computer: &Computer, index: &str, more: &[&str]) -> Ran {
    computer.run(&[&["export", index, "-o", "out", "--for", "openssl"], more].concat())
}

#[test]
fn releases_without_signatures_digests_or_the_accepted_signers_are_refused() {
    let scene = Scene::collecting(&signers());
    let (world, computer) = (&scene.world, Computer::of(&scene.world.server));
    scene.sign("alice", &[]).ok();
    let bundle = computer.run(&["bundle", &scene.index, "-o", "b.json"]).failed(3);
    let refused = export(&computer, &scene.index, &[]).failed(3);
    assert_eq!(refused.stderr, bundle.stderr, "as by bundle");
    scene.sign("bob", &[]).ok();
    let wrong = format!("sha512:{}", Sha512::of(b"another file"));
    let foreign = export(&computer, &scene.index, &["--signers-digest", &wrong]).failed(3);
    foreign.says(&["--signers-digest"]);
    world.revoke(&person("alice"), &scene.index).ok();
    export(&computer, &scene.index, &[]).failed(4).says(&["REVOKED", "key leaked"]);
    let path = "/acme/app/2.0/SHA512SUMS";
    world.files.put(path, format!("{}  app.tar.gz\n", Sha512::of(b"the archive")));
    world.register_assets(&person("alice"), &[&world.files.url(path)]).ok();
    let index = world.index_path("acme/app/2.0");
    world.sign_all(&index, &[&person("alice"), &person("bob")]);
    export(&computer, &index, &[]).failed(1).says(&["SHA-256", "app.tar.gz", "countersign bundle"]);
    assert!(computer.listing().is_empty(), "{:?}", computer.listing());
    // A tool must be named and known.
    for more in [&["-o", "out"][..], &["-o", "out", "--for", "gpg"], &["--for", "openssl"]] {
        computer.run(&[&["export", "acme/app", "1.0"], more].concat()).failed_as_usage();
    }
}

#[test]
fn what_is_there_is_replaced_only_with_force_and_nothing_is_written_through_a_link() {
    let scene = Scene::complete();
    let computer = &scene.computer;
    scene.export("openssl");
    let script = computer.read("openssl/verify.sh");
    computer.write("openssl/mine", "precious");
    computer.write("openssl/SHA256SUMS", "changed");
    let again = scene.try_export("openssl", "openssl", &[]).failed(2);
    again.says(&["openssl is not empty", "--force"]);
    assert_eq!(computer.read("openssl/SHA256SUMS"), b"changed");
    let force = |out: &str| scene.try_export("openssl", out, &["--force"]);
    force("openssl").ok();
    assert_eq!(computer.read("openssl/verify.sh"), script);
    assert_eq!(computer.read("openssl/mine"), b"precious");
    if tools().contains(&"openssl") {
        assert_verified(scene.verify("sh", &computer.path("openssl")));
    }
    // A file is no directory, and an empty directory is as good as none.
    computer.write("file", "");
    scene.try_export("openssl", "file", &[]).failed(1).says(&["file"]);
    fs::create_dir(computer.path("empty")).unwrap();
    scene.try_export("openssl", "empty", &[]).ok();

    computer.write("elsewhere/precious", "kept");
    for name in ["keys", "signatures", "SHA256SUMS", "keys/signer-1.pem", "verify.sh"] {
        let (path, kept) = (computer.path(&format!("openssl/{name}")), computer.path("kept"));
        let target = if path.is_dir() { "elsewhere" } else { "elsewhere/precious" };
        fs::rename(&path, &kept).unwrap();
        symlink(computer.path(target), &path).unwrap();
        force("openssl").failed(2).says(&[&format!("openssl/{name} is a symbolic link"), "-o DIR"]);
        fs::remove_file(&path).unwrap();
        fs::rename(&kept, &path).unwrap();
    }
    symlink(computer.path("elsewhere"), computer.path("link")).unwrap();
    for out in ["link", "link/", "link/."] {
        force(out).failed(2).says(&["link is a symbolic link"]);
    }
    // Nor does a download leave its directory.
    fs::create_dir(computer.path("got")).unwrap();
    symlink(computer.path("elsewhere"), computer.path("got/dir")).unwrap();
    let got = computer.run(&["download", &scene.index, "-o", "got"]).failed(2);
    got.says(&["got/dir is a symbolic link"]);
    assert_eq!(computer.read("elsewhere/precious"), b"kept");
    assert_eq!(fs::read_dir(computer.path("elsewhere")).unwrap().count(), 1);
    assert_eq!(computer.read("openssl/verify.sh"), script, "what is refused changes nothing");
    force("openssl").ok();
}
