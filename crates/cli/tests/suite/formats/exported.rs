//! `export --for ssh` and `--for minisign`, and what the real programs and the script make of it.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use countersign_core::values::{digest::Sha256, digest::Sha512, key::decode_base64};

use super::scene::{Scene, list, shells, signers, tools};
use crate::support::keys::{installed, run_tool};
use crate::support::{client::Ran, person, scripts::assert_whole_or_nothing};

#[track_caller]
fn assert_verified(ran: Ran) -> Ran {
    let ran = ran.ok();
    assert!(ran.stdout.lines().last().is_some_and(|line| line.starts_with("VERIFIED: ")), "{ran:?}");
    ran
}

#[track_caller]
fn assert_refused(ran: &Ran, what: &str) {
    assert_eq!(ran.code, 1, "{what}: {ran:?}");
    assert!(ran.stderr.contains("NOT VERIFIED") && !ran.stdout.contains("VERIFIED"), "{what}: {ran:?}");
}

#[test]
fn ssh_keygen_and_minisign_verify_what_was_signed_in_one_act() {
    let scene = Scene::complete();
    for tool in tools() {
        scene.export(tool).ok().says(&["verify.sh"]);
        let dir = scene.computer.path(&format!("out-{tool}"));
        for id in ["signer-1", "signer-2"] {
            let mut command = Command::new("sh");
            let line = match tool {
                "ssh" => format!(
                    "ssh-keygen -Y verify -f allowed_signers -I {id} -n file -s signatures/{id}.sig <SHA256SUMS"
                ),
                _ => format!("minisign -V -H -p keys/{id}.pub -m SHA256SUMS -x signatures/{id}.minisig"),
            };
            let said = run_tool(command.args(["-c", &line]).current_dir(&dir));
            let expected = if tool == "ssh" { "Good \"file\" signature" } else { &scene.index };
            assert!(said.contains(expected), "{said}");
        }
        for shell in shells() {
            let ran = assert_verified(scene.verify(shell, &dir));
            ran.says(&["Group 1: 2 signed, 2 needed.", "Group 2: 1 signed", "3 of its 3 files"]);
        }
        assert!(!dir.join("pwned").exists());
    }
}

#[test]
fn shellcheck_has_nothing_to_say() {
    if !installed("shellcheck") {
        return;
    }
    let scene = Scene::complete();
    for tool in ["ssh", "minisign"] {
        scene.export(tool).ok();
        let script = scene.computer.path(&format!("out-{tool}/verify.sh"));
        for dialect in ["sh", "dash", "bash"] {
            assert_eq!(run_tool(Command::new("shellcheck").args(["-s", dialect]).arg(&script)), "");
        }
    }
}

#[test]
fn a_script_that_was_cut_off_never_succeeds_and_opens_no_pipes() {
    let scene = Scene::complete();
    let files = scene.computer.path("files");
    for tool in tools() {
        scene.export(tool).ok();
        let dir = scene.computer.path(&format!("out-{tool}"));
        assert_whole_or_nothing(&fs::read(dir.join("verify.sh")).unwrap(), &[], &[&files]);
        for name in list(&dir).into_iter().filter(|name| name != "verify.sh") {
            let copy = scene.copy(tool);
            fs::remove_file(copy.path().join(&name)).unwrap();
            run_tool(Command::new("mkfifo").arg(copy.path().join(&name)));
            for shell in shells() {
                assert_refused(&scene.verify(shell, copy.path()), &name);
            }
        }
    }
}

/// Bytes in every part of each file, line breaks as well. The script itself is what the user must trust.
#[test]
fn a_changed_byte_anywhere_is_refused_for_ssh() {
    tamper("ssh");
}

#[test]
fn a_changed_byte_anywhere_is_refused_for_minisign() {
    tamper("minisign");
}

fn tamper(tool: &'static str) {
    if !tools().contains(&tool) {
        return;
    }
    let scene = Scene::complete();
    scene.export(tool).ok();
    let copy = scene.copy(tool);
    let names = list(copy.path());
    for name in names.iter().filter(|name| *name != "verify.sh") {
        let path = copy.path().join(name);
        let content = fs::read(&path).unwrap();
        for position in spots(&content) {
            let mut changed = content.clone();
            // A line break becomes a space, which tools that read base64 skip.
            changed[position] = if content[position] == b'\n' { b' ' } else { content[position] ^ 1 };
            fs::write(&path, changed).unwrap();
            assert_refused(&scene.verify("sh", copy.path()), &format!("{tool} {name} {position}"));
        }
        fs::remove_file(&path).unwrap();
        assert_refused(&scene.verify("sh", copy.path()), &format!("{tool} without {name}"));
        fs::write(&path, content).unwrap();
    }
    // Where the script is told the digest of a changed file, the tool still refuses it.
    for name in names.iter().filter(|name| *name == "SHA256SUMS" || name.starts_with("signatures/")) {
        let (path, script) = (copy.path().join(name), copy.path().join("verify.sh"));
        let (content, told) = (fs::read(&path).unwrap(), fs::read(&script).unwrap());
        let mut changed = content.clone();
        changed[content.len() / 2] ^= 1;
        fs::write(&path, changed).unwrap();
        tell(copy.path(), name);
        assert_refused(&scene.verify("sh", copy.path()), &format!("{tool} is told of {name}"));
        fs::write(&path, content).unwrap();
        fs::write(&script, told).unwrap();
    }
    assert_verified(scene.verify("sh", copy.path()));
    scene.computer.write("files/app.tar.gz", "another");
    assert_refused(&scene.verify("sh", copy.path()), "a wrong file");
}

/// The first byte, the last, some between them, and a line break inside.
fn spots(content: &[u8]) -> BTreeSet<usize> {
    let last = content.len() - 1;
    let inside = content[..last].iter().position(|byte| *byte == b'\n');
    [0, last / 3, 2 * last / 3, last].into_iter().chain(inside).collect()
}

/// Writes the digest that a file has now into the script.
fn tell(dir: &Path, name: &str) {
    let script = fs::read_to_string(dir.join("verify.sh")).unwrap();
    let mut lines: Vec<String> = script.lines().map(str::to_owned).collect();
    let is_line = |line: &&mut String| line.starts_with("    expect ") && line.ends_with(&format!(" {name}"));
    let line = lines.iter_mut().find(is_line).unwrap_or_else(|| panic!("{name} is not in {script}"));
    *line = format!("    expect {} {name}", Sha256::of(&fs::read(dir.join(name)).unwrap()));
    fs::write(dir.join("verify.sh"), lines.join("\n") + "\n").unwrap();
}

fn edit(dir: &Path, from: &str, to: &str) {
    let path = dir.join("verify.sh");
    let script = fs::read_to_string(&path).unwrap();
    assert!(script.contains(from), "{from}");
    fs::write(path, script.replace(from, to)).unwrap();
}

#[test]
fn one_signer_does_not_count_twice() {
    let scene = Scene::complete();
    for tool in tools() {
        scene.export(tool).ok();
        let suffix = if tool == "ssh" { "sig" } else { "minisig" };
        let copy = scene.copy(tool);
        let of = |id: &str| copy.path().join(format!("signatures/{id}.{suffix}"));
        fs::copy(of("signer-1"), of("signer-2")).unwrap();
        tell(copy.path(), &format!("signatures/signer-2.{suffix}"));
        assert_refused(&scene.verify("sh", copy.path()), "the signature of another");
        // A script that names a signer twice counts one.
        let copy = scene.copy(tool);
        edit(copy.path(), "    signature signer-2\n", "");
        assert_refused(&scene.verify("sh", copy.path()), "one signature");
        edit(copy.path(), "    signature signer-1\n", "    signature signer-1\n    signature signer-1\n");
        edit(copy.path(), "group 2 signer-1 signer-2 signer-3", "group 2 signer-1 signer-1 signer-1");
        assert_refused(&scene.verify("sh", copy.path()), "one signer three times");
    }
}

#[test]
fn too_few_signatures_in_a_format_are_not_exported() {
    let scene = Scene::collecting(&signers());
    scene.sign("alice", &["--also", "ssh"]).ok();
    scene.sign("bob", &[]).ok().says(&["complete"]);
    scene.export("ssh").failed(1).says(&["too few have signed", "for ssh: 1", "--for openssl"]);
    scene.export("minisign").failed(1).says(&["for minisign: 0"]);
    scene.export("openssl").ok();
}

/// Our own signature is one that signify makes: of the 64 bytes of the digest as a file. So is minisign's legacy kind, which
/// is why that is refused.
#[test]
fn signify_verifies_our_own_signature_over_the_bytes_of_the_digest() {
    if !installed("signify-openbsd") {
        return;
    }
    let scene = Scene::complete();
    let bytes = scene.world.read(&scene.index);
    let alice = person("alice");
    let encode = |bytes: &[u8]| countersign_core::values::key::encode_base64(bytes);
    let (kind, id) = (b"Ed".as_slice(), [7; 8].as_slice());
    let key = decode_base64(&alice.body_key()).unwrap();
    let signature = decode_base64(&alice.sign_bytes(&bytes)).unwrap();
    let file = |comment: &str, content: &[u8]| format!("untrusted comment: {comment}\n{}\n", encode(content));
    scene.computer.write("alice.pub", file("alice public key", &[kind, id, &key].concat()));
    scene.computer.write("digest.sig", file("verify with alice.pub", &[kind, id, &signature].concat()));
    scene.computer.write("digest", Sha512::of(&bytes).as_bytes());
    let mut command = Command::new("signify-openbsd");
    command.args(["-V", "-p", "alice.pub", "-x", "digest.sig", "-m", "digest"]);
    assert!(run_tool(command.current_dir(scene.computer.path(""))).contains("Verified"));
}
