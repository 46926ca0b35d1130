//! What the exported script accepts, says and needs.

use std::{fs, os::unix::fs::PermissionsExt as _, os::unix::fs::symlink, path::Path, process::Command};

use super::scene::{
    Exported, FILES, OPENSSL, assert_refused, assert_verified, project, run_script, shell_command, shells,
};
use crate::support::client::{Computer, Ran, add_files};
use crate::support::{keys::installed, keys::run_tool, person};

#[test]
fn it_verifies_the_release_and_runs_nothing_that_a_name_says() {
    let exported = Exported::new();
    for shell in shells() {
        let ran = assert_verified(exported.verify(shell, &exported.dir()));
        let counts = ["Group 1: 2 signed, 2 needed.", "Group 2: 1 signed, 1 needed."];
        let ran = ran.says(&counts).says(&["signer-1 has signed.", "7 of its 7 files", "revoked since"]);
        for (name, _) in FILES {
            assert!(ran.stdout.lines().any(|line| line == format!("{name}: OK")), "{name}: {ran:?}");
        }
    }
    for dir in ["out/pwned", "files/pwned", "pwned"] {
        assert!(!exported.computer.path(dir).exists());
    }
}

#[test]
fn shellcheck_has_nothing_to_say() {
    if !installed("shellcheck") {
        return;
    }
    let exported = Exported::new();
    for dialect in ["sh", "dash", "bash"] {
        let script = exported.dir().join("verify.sh");
        assert_eq!(run_tool(Command::new("shellcheck").args(["-s", dialect]).arg(script)), "");
    }
}

#[test]
fn files_that_are_not_there_are_named_and_one_must_be() {
    let exported = Exported::new();
    for shell in shells() {
        let files = tempfile::TempDir::new().unwrap();
        let args = [files.path().to_str().unwrap()];
        let none = assert_refused(run_script(shell, &exported.dir(), &args), "no file");
        none.says(&["app.tar.gz: not there, not checked", "none of the 7 files"]);
        fs::write(files.path().join("app.tar.gz"), "the archive").unwrap();
        fs::write(files.path().join("another file"), "which the release does not list").unwrap();
        let ran = assert_verified(run_script(shell, &exported.dir(), &args));
        ran.says(&["1 of its 7 files", "-rf: not there", "app.tar.gz: OK"])
            .says_nothing_of(&["another file"]);
        // The right one does not excuse a wrong one.
        fs::write(files.path().join("-rf"), "another content").unwrap();
        assert_refused(run_script(shell, &exported.dir(), &args), "a wrong file")
            .says(&["-rf is not the file"]);
        fs::remove_file(files.path().join("-rf")).unwrap();
        symlink("nowhere", files.path().join("-rf")).unwrap();
        assert_refused(run_script(shell, &exported.dir(), &args), "a link to nowhere")
            .says(&["-rf cannot be read"]);
        fs::remove_file(files.path().join("-rf")).unwrap();
        fs::create_dir(files.path().join("-rf")).unwrap();
        assert_refused(run_script(shell, &exported.dir(), &args), "a directory")
            .says(&["-rf cannot be read"]);
    }
}

/// A release can list names that the export has as well.
#[test]
fn files_of_the_export_are_not_taken_for_files_of_the_release() {
    let world = project();
    let files: [(&str, &[u8]); 3] =
        [("SHA256SUMS", b"of the project"), ("app", b"the app"), ("verify.sh", b"another script")];
    let index = add_files(&world, "acme/app/1.0", &files, &[&person("alice"), &person("bob")]);
    let computer = Computer::of(&world.server);
    computer.run(&[&["export", &index, "-o", "out"][..], &OPENSSL].concat()).ok();
    computer.write("out/app", "the app");
    for (name, content) in files {
        computer.write(&format!("files/{name}"), content);
    }
    for shell in shells() {
        for args in [&[][..], &["."], &["../out"], &["../out/keys/.."]] {
            let ran = assert_verified(run_script(shell, &computer.path("out"), args));
            ran.says(&["SHA256SUMS: a file of the export is here instead", "app: OK", "1 of its 3 files"]);
        }
        let ran = assert_verified(run_script(shell, &computer.path("out"), &["../files"]));
        ran.says(&["SHA256SUMS: OK", "verify.sh: OK", "3 of its 3 files"]);
        computer.write("files/SHA256SUMS", "another");
        assert_refused(run_script(shell, &computer.path("out"), &["../files"]), "a wrong SHA256SUMS");
        computer.write("files/SHA256SUMS", files[0].1);
    }
}

#[test]
fn it_is_found_from_anywhere_and_takes_any_directory() {
    let exported = Exported::new();
    let copy = exported.copy();
    for name in ["-n", "a b", "$(id)", "!", "'\"", "*"] {
        let dir = copy.path().join(name);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("app.tar.gz"), "the archive").unwrap();
    }
    for shell in shells() {
        for name in ["-n", "a b", "$(id)", "!", "'\"", "*"] {
            assert_verified(run_script(shell, copy.path(), &[name]));
            // From the directory of the files, which is the default, by a relative path.
            let dir = copy.path().join(name);
            let mut command = shell_command(shell, Path::new(".."), &[]);
            assert_verified(Ran::of(command.current_dir(dir)));
        }
        // From its own directory, by its name alone.
        let mut command = Command::new(shell);
        command.args(["verify.sh", "a b"]).current_dir(copy.path());
        assert_verified(Ran::of(&mut command));
        assert_refused(run_script(shell, copy.path(), &["not there"]), "no directory")
            .says(&["not a directory"]);
        assert_refused(run_script(shell, copy.path(), &[""]), "no name").says(&["not a directory"]);
        assert_refused(run_script(shell, copy.path(), &["a b", "a b"]), "two directories").says(&["usage"]);
    }
}

#[test]
fn it_says_if_openssl_is_missing_too_old_or_another_program() {
    let exported = Exported::new();
    for (number, version) in
        ["OpenSSL 1.1.1w  11 Sep 2023", "LibreSSL 3.3.6", "OpenSSL 30", ""].into_iter().enumerate()
    {
        let program =
            exported.computer.write(&format!("openssl-{number}"), format!("#!/bin/sh\necho '{version}'\n"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        for shell in shells() {
            let mut command = shell_command(shell, &exported.dir(), &["../files"]);
            let ran = Ran::of(command.env("OPENSSL", &program));
            assert_refused(ran, version).says(&["OpenSSL 3", version]);
        }
    }
    for shell in shells() {
        let mut command = shell_command(shell, &exported.dir(), &["../files"]);
        let ran = Ran::of(command.env("OPENSSL", "no-such-openssl"));
        assert_refused(ran, "no openssl").says(&["no-such-openssl does not run", "OpenSSL 3"]);
    }
}

/// A program that agrees with everything does not make a digest right.
#[test]
fn a_program_that_only_says_yes_is_not_enough() {
    let exported = Exported::new();
    let program = exported.computer.write("yes-openssl", "#!/bin/sh\necho 'OpenSSL 3.0.0'\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for shell in shells() {
        let mut command = shell_command(shell, &exported.dir(), &["../files"]);
        assert_refused(Ran::of(command.env("OPENSSL", &program)), "yes");
    }
}
