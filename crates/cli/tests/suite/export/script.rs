//! What the exported scripts accept, say and need, and that stock tools read the export without them.

use std::{fs, os::unix::fs::PermissionsExt as _, os::unix::fs::symlink, path::Path, process::Command};

use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{key::decode_base64, key::encode_base64};

use super::scene::{
    FILES, Scene, assert_refused, assert_verified, run_script, shell_command, shells, signers, tools,
};
use crate::support::client::{Computer, Ran, add_files};
use crate::support::{World, keys::has_openssl, keys::installed, keys::run_tool, person};

#[test]
fn it_verifies_the_release_and_runs_nothing_that_a_name_says() {
    let scene = Scene::complete();
    for tool in tools() {
        scene.export(tool);
        let dir = scene.computer.path(tool);
        for shell in shells() {
            let ran = assert_verified(scene.verify(shell, &dir));
            let counts = ["Group 1: 2 signed, 2 needed.", "Group 2: 1 signed, 1 needed."];
            let ran = ran.says(&counts).says(&["7 of its 7 files", "revoked since"]);
            for (name, _) in FILES {
                assert!(ran.stdout.lines().any(|line| line == format!("{name}: OK")), "{name}: {ran:?}");
            }
        }
        for name in ["pwned", "files/pwned", &format!("{tool}/pwned")] {
            assert!(!scene.computer.path(name).exists());
        }
        for id in ["signer-1", "signer-2"] {
            let line = match tool {
                "openssl" => format!(
                    "openssl pkeyutl -verify -pubin -inkey keys/{id}.pem -rawin -in svc.index.json.sha512 -sigfile \
                     signatures/{id}.sig"
                ),
                "ssh" => format!(
                    "ssh-keygen -Y verify -f allowed_signers -I {id} -n file -s signatures/{id}.sig <SHA256SUMS"
                ),
                "openpgp" => "gpgv --keyring ./keys.pgp SHA256SUMS.asc SHA256SUMS 2>&1".to_owned(),
                _ => format!("minisign -V -H -p keys/{id}.pub -m SHA256SUMS -x signatures/{id}.minisig"),
            };
            let said = run_tool(Command::new("sh").args(["-c", &line]).current_dir(&dir));
            let expected = match tool {
                "openssl" => "Verified Successfully",
                "ssh" => "Good \"file\" signature",
                "openpgp" => "Good signature",
                _ => &scene.index,
            };
            assert!(said.contains(expected), "{said}");
        }
        if installed("shellcheck") {
            for dialect in ["sh", "dash", "bash"] {
                let script = dir.join("verify.sh");
                assert_eq!(run_tool(Command::new("shellcheck").args(["-s", dialect]).arg(script)), "");
            }
        }
        let mut sums = Command::new("sha256sum");
        sums.args(["--strict", "-c", &format!("../{tool}/SHA256SUMS")]).current_dir(scene.files());
        assert_eq!(run_tool(&mut sums).matches(": OK").count(), FILES.len());
    }
}

/// sqv counts, and gpgv does not: the script counts for it. Either alone is enough.
#[test]
fn openpgp_programs_verify_and_count() {
    let scene = Scene::complete();
    scene.export("openpgp");
    let dir = scene.computer.path("openpgp");
    for (program, other) in [("sqv", "GPGV"), ("gpgv", "SQV")] {
        if !installed(program) {
            eprintln!("skipped: {program} is not installed");
            continue;
        }
        let run = |dir: &Path| {
            let mut script = shell_command("sh", dir, &[scene.files().to_str().unwrap()]);
            Ran::of(script.env(other, "/nowhere/program"))
        };
        assert_verified(run(&dir)).says(&["Group 1: 2 signed, 2 needed.", "Group 2: 1 signed, 1 needed."]);
        // The signature of one alone, in an export that knows of it.
        let copy = scene.copy("openpgp");
        let armored = fs::read_to_string(dir.join("SHA256SUMS.asc")).unwrap();
        let (head, rest) = armored.split_once("\n\n").unwrap();
        let (encoded, end) = rest.rsplit_once("\n=").unwrap();
        let end = &end[end.find('\n').unwrap()..];
        let packets = decode_base64(&encoded.replace('\n', "")).unwrap();
        let first = &packets[..2 + usize::from(packets[1])];
        for (what, packets) in [("one", first.to_vec()), ("one twice", [first, first].concat())] {
            let changed = format!("{head}\n\n{}{end}", encode_base64(&packets));
            fs::write(copy.path().join("SHA256SUMS.asc"), &changed).unwrap();
            let [before, after] = [&armored, &changed].map(|text| Sha256::of(text.as_bytes()).to_string());
            let script = fs::read_to_string(dir.join("verify.sh")).unwrap().replace(&before, &after);
            fs::write(copy.path().join("verify.sh"), script).unwrap();
            assert_refused(run(copy.path()), what);
        }
    }
    if installed("gpg") {
        let home = tempfile::TempDir::new().unwrap();
        let gpg = |args: &[&str]| {
            let mut gpg = Command::new("gpg");
            gpg.arg("--homedir").arg(home.path()).args(["--batch", "--no-autostart"]).args(args);
            let ran = gpg.current_dir(&dir).output().unwrap();
            String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
        };
        // Those whose armor ends without padding as well.
        let imported = gpg(&["--import", "keys.asc"]);
        assert!(imported.contains("imported: 2") && !imported.contains("invalid"), "{imported}");
        let verified = gpg(&["--verify", "SHA256SUMS.asc", "SHA256SUMS"]);
        assert_eq!(verified.matches("Good signature").count(), 2, "{verified}");
    }
    if installed("sqv") {
        let count = |needed: &str, keyring: &str| {
            let mut sqv = Command::new("sqv");
            sqv.args(["-n", needed, "--keyring", keyring, "SHA256SUMS.asc", "SHA256SUMS"]);
            sqv.current_dir(&dir).output().unwrap().status.success()
        };
        assert!(count("2", "keys.pgp") && count("2", "keys.asc") && count("2", "keys-1.pgp"));
        assert!(count("1", "keys-2.pgp") && !count("2", "keys-2.pgp") && !count("3", "keys.pgp"));
    }
}

/// Our own signature is one that signify makes: of the 64 bytes of the digest as a file. So is minisign's legacy kind,
/// which is why that is refused.
#[test]
fn signify_verifies_our_own_signature_over_the_bytes_of_the_digest() {
    if !installed("signify-openbsd") {
        return;
    }
    let (computer, alice, bytes) = (Computer::offline(), person("alice"), b"an index");
    let (kind, id) = (b"Ed".as_slice(), [7; 8].as_slice());
    let key = decode_base64(&alice.body_key()).unwrap();
    let signature = decode_base64(&alice.sign_bytes(bytes)).unwrap();
    let file =
        |comment: &str, content: &[u8]| format!("untrusted comment: {comment}\n{}\n", encode_base64(content));
    computer.write("alice.pub", file("alice public key", &[kind, id, &key].concat()));
    computer.write("digest.sig", file("verify with alice.pub", &[kind, id, &signature].concat()));
    computer.write("digest", Sha512::of(bytes).as_bytes());
    let mut command = Command::new("signify-openbsd");
    command.args(["-V", "-p", "alice.pub", "-x", "digest.sig", "-m", "digest"]);
    assert!(run_tool(command.current_dir(computer.path(""))).contains("Verified"));
}

#[test]
fn files_that_are_not_there_are_named_and_one_must_be() {
    let scene = Scene::complete();
    for tool in tools() {
        scene.export(tool);
        let files = tempfile::TempDir::new().unwrap();
        let path = |name: &str| files.path().join(name);
        let run = || run_script("sh", &scene.computer.path(tool), &[files.path().to_str().unwrap()]);
        let none = assert_refused(run(), "no file");
        none.says(&["app.tar.gz: not there, not checked", "none of the 7 files"]);
        fs::write(path("app.tar.gz"), "the archive").unwrap();
        fs::write(path("another file"), "which the release does not list").unwrap();
        let ran = assert_verified(run());
        ran.says(&["1 of its 7 files", "-rf: not there", "app.tar.gz: OK"])
            .says_nothing_of(&["another file"]);
        // The right one does not excuse a wrong one.
        fs::write(path("-rf"), "another content").unwrap();
        assert_refused(run(), "a wrong file").says(&["-rf is not the file"]);
        fs::remove_file(path("-rf")).unwrap();
        symlink("nowhere", path("-rf")).unwrap();
        assert_refused(run(), "a link to nowhere").says(&["-rf cannot be read"]);
        fs::remove_file(path("-rf")).unwrap();
        fs::create_dir(path("-rf")).unwrap();
        assert_refused(run(), "a directory").says(&["-rf cannot be read"]);
    }
}

/// A release can list names that the export has as well.
#[test]
fn files_of_the_export_are_not_taken_for_files_of_the_release() {
    if !has_openssl() {
        return;
    }
    let everyone = ["alice", "bob", "carol", "dave"].map(person);
    let world = World::with_project(&signers(), &everyone.each_ref());
    let files: [(&str, &[u8]); 3] =
        [("SHA256SUMS", b"of the project"), ("app", b"the app"), ("verify.sh", b"another script")];
    let index = add_files(&world, "acme/app/1.0", &files, &[&person("alice"), &person("bob")]);
    let computer = Computer::of(&world.server);
    computer.run(&["export", &index, "-o", "out", "--for", "openssl"]).ok();
    computer.write("out/app", "the app");
    for (name, content) in files {
        computer.write(&format!("files/{name}"), content);
    }
    for shell in shells() {
        for args in [&[][..], &["../out/keys/.."]] {
            let ran = assert_verified(run_script(shell, &computer.path("out"), args));
            ran.says(&["SHA256SUMS: a file of the export is here instead", "app: OK", "1 of its 3 files"]);
        }
        let ran = assert_verified(run_script(shell, &computer.path("out"), &["../files"]));
        ran.says(&["SHA256SUMS: OK", "verify.sh: OK", "3 of its 3 files"]);
    }
    computer.write("files/SHA256SUMS", "another");
    assert_refused(run_script("sh", &computer.path("out"), &["../files"]), "a wrong SHA256SUMS");
}

#[test]
fn it_is_found_from_anywhere_and_takes_any_directory() {
    let scene = Scene::complete();
    for (tool, shell) in tools().into_iter().zip(shells().into_iter().cycle()) {
        scene.export(tool);
        let dir = scene.computer.path(tool);
        for name in ["-n", "a b", "$(id)", "!", "'\"", "*"] {
            let inner = dir.join(name);
            fs::create_dir(&inner).unwrap();
            fs::write(inner.join("app.tar.gz"), "the archive").unwrap();
            assert_verified(run_script(shell, &dir, &[name]));
        }
        // From the directory of the files, which is the default, by a relative path; and by its name alone.
        let mut command = shell_command(shell, Path::new(".."), &[]);
        assert_verified(Ran::of(command.current_dir(dir.join("a b"))));
        let mut command = Command::new(shell);
        assert_verified(Ran::of(command.args(["verify.sh", "a b"]).current_dir(&dir)));
        assert_refused(run_script(shell, &dir, &["not there"]), "no directory").says(&["not a directory"]);
        assert_refused(run_script(shell, &dir, &[""]), "no name").says(&["not a directory"]);
        assert_refused(run_script(shell, &dir, &["a b", "a b"]), "two directories").says(&["usage"]);
    }
}

#[test]
fn it_says_if_openssl_is_missing_too_old_or_another_program() {
    if !has_openssl() {
        return;
    }
    let scene = Scene::complete();
    scene.export("openssl");
    let run = |shell: &str, program: &str| {
        let mut command = shell_command(shell, &scene.computer.path("openssl"), &["../files"]);
        Ran::of(command.env("OPENSSL", program))
    };
    // A program that agrees with everything does not make a digest right.
    let versions = ["OpenSSL 1.1.1w  11 Sep 2023", "LibreSSL 3.3.6", "OpenSSL 30", "", "OpenSSL 3.0.0"];
    for shell in shells() {
        for version in versions {
            let program = scene.computer.write("other", format!("#!/bin/sh\necho '{version}'\n"));
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let refused = assert_refused(run(shell, program.to_str().unwrap()), version);
            if version != "OpenSSL 3.0.0" {
                refused.says(&["OpenSSL 3", version]);
            }
        }
        let missing = assert_refused(run(shell, "no-such-openssl"), "no openssl");
        missing.says(&["no-such-openssl does not run", "OpenSSL 3"]);
    }
}
