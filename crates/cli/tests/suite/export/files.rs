//! Files that signers have and sign by themselves, so that `FILE.asc` is beside each (D254).

use std::{fs, path::Path, process::Command};

use countersign_core::values::bounds::OPENPGP_FILES;
use serde_json::{Value, json};

use super::scene::{Scene, assert_refused, assert_verified, list, tools};
use crate::support::client::{Computer, Ran, put_release};
use crate::support::{SignersFile, World, keys::installed, person};

/// What a packager checks, and names that an export cannot write beside its own files.
const FILES: [(&str, &[u8]); 7] = [
    ("a b.txt", b"spaces"),
    ("app-1.0.tar.gz", b"the archive"),
    ("copy", b"the archive"),
    ("keys", b"not those of the signers"),
    ("lib.zip", b"a library"),
    ("lib.zip.asc", b"a signature by someone else"),
    ("sub/app~rc1.zip", b"in a directory"),
];
const EXPORTED: [&str; 4] = ["app-1.0.tar.gz", "copy", "lib.zip.asc", "sub/app~rc1.zip"];

fn signed_by_itself(threshold: usize, names: &[&str], files: &[(&str, &[u8])]) -> Scene {
    let people: Vec<_> = names.iter().map(|name| person(name)).collect();
    let people: Vec<_> = people.iter().collect();
    let file = SignersFile::of(threshold, &people).with("formats", json!(["openpgp"]));
    let world = World::with_project(&file, &people);
    let computer = Computer::of(&world.server);
    for (name, content) in files {
        computer.write(&format!("files/{name}"), content);
    }
    let sums = put_release(&world.files, "acme/app/1.0", files);
    computer.run_as("alice", &["release", "--checksums", &sums]).ok();
    let index = world.index_path("acme/app/1.0");
    Scene { world, computer, index }
}

fn sign(scene: &Scene, name: &str) -> Ran {
    scene.sign(name, &["--files", "files"])
}

/// What someone signs on a computer without a network.
fn sign_detached(scene: &Scene, name: &str) -> Value {
    let file = format!("{name}.json");
    scene.computer.run(&["sign", &scene.index, "--export", "export.json"]).ok();
    let detached = ["sign", "--detached", "export.json", "-o", &file, "--files", "files", "--yes"];
    scene.computer.run_as(name, &detached).ok().says(&["by themselves for openpgp"]);
    let signed: Value = serde_json::from_slice(&scene.computer.read(&file)).unwrap();
    fs::remove_file(scene.computer.path(&file)).unwrap();
    signed
}

/// The OpenPGP text of what is submitted, as its packets and its lines.
fn split(body: &Value) -> (String, Vec<String>) {
    let text = body["other_formats"]["openpgp"].as_str().unwrap();
    let end = text.find("-----END PGP SIGNATURE-----\n").unwrap() + "-----END PGP SIGNATURE-----\n".len();
    (text[..end].to_owned(), text[end..].lines().map(|line| format!("{line}\n")).collect())
}

/// Whether each stock tool that is here accepts this signature on a file, with the keyring of the export.
fn accepting(export: &Path, signature: &str, file: &Path, needed: &str) -> Vec<(&'static str, bool)> {
    let commands: [(&str, &[&str]); 2] =
        [("gpgv", &["--keyring", "./keys.pgp"]), ("sqv", &["-n", needed, "--keyring", "keys.pgp"])];
    let commands = commands.into_iter().filter(|(program, _)| installed(program));
    let ran = commands.map(|(program, args)| {
        let mut command = Command::new(program);
        let ran = command.args(args).arg(signature).arg(file).current_dir(export).output().unwrap();
        (program, ran.status.success())
    });
    ran.collect()
}

#[track_caller]
fn assert_all(accepting: Vec<(&str, bool)>, expected: bool, what: &str) {
    for (program, is_accepted) in accepting {
        assert_eq!(is_accepted, expected, "{program}: {what}");
    }
}

#[test]
fn stock_tools_check_each_file_by_itself_for_one_signer_and_for_three() {
    for names in [&["alice"][..], &["alice", "bob", "carol"]] {
        let count = names.len();
        let scene = signed_by_itself(count, names, &FILES);
        for name in names {
            let words = ["SHA256SUMS for openpgp, and 6 files by themselves", "your key signs 9 times"];
            sign(&scene, name).ok().says(&words);
        }
        let told = scene.try_export("openpgp", "openpgp", &[]).ok();
        told.says(&["no signature for keys is exported: keys.asc is the name of another file"]);
        let report = scene.try_export("openpgp", "openpgp", &["--json", "--force"]).ok().json();
        let left_out = report["left_out"].as_array().unwrap().iter().map(|left| left["file_name"].clone());
        assert_eq!(left_out.collect::<Vec<_>>(), [json!("a b.txt"), json!("keys"), json!("lib.zip")]);
        let dir = scene.computer.path("openpgp");
        let own = ["SHA256SUMS.asc", "keys.asc"].map(str::to_owned);
        let mut expected = [&own[..], &EXPORTED.map(|name| format!("{name}.asc"))].concat();
        expected.sort();
        let exported = list(&dir).into_iter().filter(|name| name.ends_with(".asc"));
        assert_eq!(exported.collect::<Vec<_>>(), expected);
        let [needed, more] = [count, count + 1].map(|number| number.to_string());
        for name in EXPORTED {
            let (signature, file) = (format!("{name}.asc"), scene.files().join(name));
            assert_all(accepting(&dir, &signature, &file, &needed), true, name);
            for other in EXPORTED.iter().map(|other| scene.files().join(other)) {
                let is_same = fs::read(&other).unwrap() == fs::read(&file).unwrap();
                assert_all(accepting(&dir, &signature, &other, &needed), is_same, "another file");
            }
            let signed_by_more = accepting(&dir, &signature, &file, &more);
            assert!(signed_by_more.iter().all(|(program, accepts)| *program == "gpgv" || !accepts));
        }
        if tools().contains(&"openpgp") {
            assert_verified(scene.verify("sh", &dir));
            fs::write(dir.join("copy.asc"), "x").unwrap();
            assert_refused(scene.verify("sh", &dir), "a changed signature on a file");
        }
    }
}

#[test]
fn only_the_signers_own_files_are_signed() {
    let scene = signed_by_itself(2, &["alice", "bob"], &FILES);
    let told = scene.sign("alice", &[]).ok().says_nothing_of(&["by themselves"]);
    told.says(&["SHA256SUMS for openpgp; your key signs 3 times"]);
    fs::write(scene.files().join("copy"), "changed").unwrap();
    sign(&scene, "bob").failed(3).says(&["not signed"]);
    fs::write(scene.files().join("copy"), "the archive").unwrap();
    sign(&scene, "bob").ok().says(&["complete"]);
    let told = scene.try_export("openpgp", "openpgp", &[]).ok();
    told.says(&["no signature for app-1.0.tar.gz", "too few have signed it by itself: it has 1 of 2"]);
    assert!(!scene.computer.path("openpgp/app-1.0.tar.gz.asc").exists());
}

#[test]
fn signers_who_disagree_about_a_file_are_named() {
    let scene = signed_by_itself(2, &["alice", "bob"], &FILES);
    let mut body = sign_detached(&scene, "alice");
    let (packets, mut lines) = split(&body["signatures"][0]);
    // Alice's program has signed the digest of another file in its place, which the server cannot see.
    let right = lines[1].clone();
    lines[1] = format!("{}{}", &right[..65], &lines[0][65..]);
    body["signatures"][0]["other_formats"]["openpgp"] = json!(packets + &lines.concat());
    scene.computer.write("mixed.json", body.to_string());
    scene.computer.run_as("alice", &["sign", "--submit", "mixed.json"]).ok();
    sign(&scene, "bob").ok().says(&["complete"]);
    let report = scene.try_export("openpgp", "openpgp", &["--json"]).ok().json();
    let content = &right[..64];
    let sums = String::from_utf8(scene.computer.read("openpgp/SHA256SUMS")).unwrap();
    let names: Vec<&str> =
        sums.lines().filter_map(|line| line.strip_prefix(content)).map(str::trim).collect();
    assert!(!names.is_empty());
    for name in names {
        let left = report["left_out"].as_array().unwrap().iter().find(|left| left["file_name"] == name);
        let reason = left.unwrap()["reason"].as_str().unwrap();
        let digests = [&lines[1], &right].map(|line| line[65..129].to_owned());
        for (digest, signer) in digests.iter().zip(["alice", "bob"]) {
            let key = person(signer).key();
            assert!(reason.contains(&format!("{digest} by {key}")), "{reason}");
        }
        assert!(!scene.computer.path(&format!("openpgp/{name}.asc")).exists());
    }
}

#[test]
fn the_server_refuses_lines_that_do_not_verify_for_the_release() {
    let scene = signed_by_itself(2, &["alice", "bob"], &FILES);
    let body = sign_detached(&scene, "alice")["signatures"][0].clone();
    let bobs = sign_detached(&scene, "bob")["signatures"][0].clone();
    let (packets, lines) = split(&body);
    let (_, bobs) = split(&bobs);
    let digest_of_another = format!("{}{}{}", &lines[0][..65], &lines[1][65..130], &lines[0][130..]);
    let of_another_release = format!("{}{}", "0".repeat(64), &lines[0][64..]);
    let wrong = [
        (vec![&lines[0], &lines[0]], "one form"),
        (vec![&lines[1], &lines[0]], "one form"),
        (vec![&digest_of_another], "does not verify for the digest"),
        (vec![&bobs[0]], "does not verify for the digest"),
        (vec![&of_another_release], "that the release does not have"),
    ];
    let with = |lines: &[&String]| {
        let lines: String = lines.iter().map(|line| line.as_str()).collect();
        let mut body = body.clone();
        body["other_formats"]["openpgp"] = json!(packets.clone() + &lines);
        scene.world.submit(&person("alice"), &body)
    };
    for (lines, words) in wrong {
        with(&lines).refused(400, words);
    }
    assert!(!scene.world.exists(&scene.formats_path()));
    // A signers file asks for no format of this kind, and lines alone are none.
    let mut alone = body.clone();
    alone["other_formats"]["openpgp"] = json!(lines.concat());
    scene.world.submit(&person("alice"), &alone).refused(400, "one form");
    with(&lines.iter().collect::<Vec<_>>()).ok();
}

#[test]
fn in_a_release_of_too_many_files_the_sums_alone_are_signed() {
    for (count, said) in [
        (OPENPGP_FILES, format!("{OPENPGP_FILES} files by themselves")),
        (OPENPGP_FILES + 1, format!("The release has more than {OPENPGP_FILES} files")),
    ] {
        let contents: Vec<(String, String)> =
            (0..count).map(|n| (format!("file-{n}"), format!("{n}"))).collect();
        let files: Vec<(&str, &[u8])> =
            contents.iter().map(|(name, content)| (name.as_str(), content.as_bytes())).collect();
        let scene = signed_by_itself(1, &["alice"], &files);
        sign(&scene, "alice").ok().says(&[&said]);
        let report = scene.try_export("openpgp", "openpgp", &["--json"]).ok().json();
        assert_eq!(report["left_out"], json!([]));
        assert_eq!(scene.computer.path("openpgp/file-63.asc").exists(), count == OPENPGP_FILES);
    }
}
