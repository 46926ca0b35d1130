//! Every exported file, changed in every way: the script refuses.

use std::{cell::Cell, collections::BTreeSet, fs, os::unix::fs::symlink, path::PathBuf, process::Command};

use countersign_core::values::{digest::Sha256, digest::Sha512, key::decode_base64};
use tempfile::TempDir;

use super::scene::{Scene, assert_refused, assert_verified, list, run_script, shells, tools};
use crate::support::{client::text, keys::run_tool, person, scripts::assert_whole_or_nothing};

/// An export whose files are changed, tried and put back. The shells that are here take turns.
struct Tampering<'a> {
    scene: &'a Scene,
    tool: &'static str,
    copy: TempDir,
    turn: Cell<usize>,
}

impl Tampering<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.copy.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Everything that the script reads, but the script itself.
    fn files(&self) -> Vec<String> {
        list(self.copy.path()).into_iter().filter(|name| name != "verify.sh").collect()
    }

    fn shell(&self) -> &'static str {
        self.turn.set(self.turn.get() + 1);
        let shells = shells();
        shells[self.turn.get() % shells.len()]
    }

    #[track_caller]
    fn refuses(&self, what: &str) {
        let ran = self.scene.verify(self.shell(), self.copy.path());
        assert_refused(ran, &format!("{}: {what}", self.tool));
    }

    #[track_caller]
    fn refuses_with(&self, name: &str, bytes: impl AsRef<[u8]>, what: &str) {
        let before = fs::read(self.path(name)).unwrap();
        assert_ne!(before, bytes.as_ref(), "{name}: {what}");
        fs::write(self.path(name), bytes).unwrap();
        self.refuses(&format!("{name}: {what}"));
        fs::write(self.path(name), before).unwrap();
    }

    /// Refuses the script in which this stands in the place of that.
    #[track_caller]
    fn refuses_script(&self, from: &str, to: &str, what: &str) {
        let script = self.read("verify.sh");
        assert!(script.contains(from), "{from}: {script}");
        self.refuses_with("verify.sh", script.replace(from, to), what);
    }

    #[track_caller]
    fn accepts(&self) {
        assert_verified(self.scene.verify(self.shell(), self.copy.path()));
    }
}

fn tamper(only: &[&str], check: impl Fn(&Tampering<'_>)) {
    let scene = Scene::complete();
    for tool in tools().into_iter().filter(|tool| only.contains(tool)) {
        scene.export(tool);
        let tampering = Tampering { scene: &scene, tool, copy: scene.copy(tool), turn: Cell::new(0) };
        tampering.accepts();
        check(&tampering);
        // What was put back is whole: each refusal had its own cause.
        tampering.accepts();
    }
}

const ALL: [&str; 4] = ["openssl", "ssh", "minisign", "openpgp"];

#[test]
fn a_file_that_is_changed_anywhere_cut_or_gone_is_refused() {
    tamper(&ALL, |tampering| {
        for name in tampering.files() {
            let bytes = fs::read(tampering.path(&name)).unwrap();
            for position in spots(&bytes) {
                let mut changed = bytes.clone();
                // A line break becomes a space, which tools that read base64 skip.
                changed[position] = if bytes[position] == b'\n' { b' ' } else { bytes[position] ^ 1 };
                tampering.refuses_with(&name, changed, &format!("byte {position}"));
            }
            tampering.refuses_with(&name, [], "empty");
            tampering.refuses_with(&name, [&bytes[..], b"\n"].concat(), "one byte more");
            // A pipe would be read for ever, and a device could be anything.
            let (path, aside) = (tampering.path(&name), tampering.path("aside"));
            fs::rename(&path, &aside).unwrap();
            tampering.refuses(&format!("{name} is gone"));
            fs::create_dir(&path).unwrap();
            tampering.refuses(&format!("{name} is a directory"));
            fs::remove_dir(&path).unwrap();
            run_tool(Command::new("mkfifo").arg(&path));
            tampering.refuses(&format!("{name} is a pipe"));
            fs::remove_file(&path).unwrap();
            symlink("/dev/zero", &path).unwrap();
            tampering.refuses(&format!("{name} is a device"));
            fs::remove_file(&path).unwrap();
            fs::rename(&aside, &path).unwrap();
        }
        let pipe = tampering.scene.files().join("app.tar.gz");
        let kept = fs::read(&pipe).unwrap();
        fs::remove_file(&pipe).unwrap();
        run_tool(Command::new("mkfifo").arg(&pipe));
        tampering.refuses("a file of the release is a pipe");
        fs::remove_file(&pipe).unwrap();
        fs::write(&pipe, "another").unwrap();
        tampering.refuses("a wrong file of the release");
        fs::write(&pipe, kept).unwrap();
        // It looks at what it names, and at nothing else.
        for name in ["keys/signer-9.pem", "signatures/signer-3.sig", "notes", "od", "openssl"] {
            fs::create_dir_all(tampering.path(name).parent().unwrap()).unwrap();
            fs::write(tampering.path(name), "x").unwrap();
        }
    });
}

/// The first byte, the last, one between them, and a line break inside.
fn spots(content: &[u8]) -> BTreeSet<usize> {
    let last = content.len() - 1;
    let inside = content[..last].iter().position(|byte| *byte == b'\n');
    [0, last / 2, last].into_iter().chain(inside).collect()
}

#[test]
fn a_signature_by_another_key_or_on_another_text_is_refused() {
    tamper(&["openssl"], |tampering| {
        let index = fs::read(tampering.path("svc.index.json")).unwrap();
        for (signer, text, what) in [
            ("carol", &index[..], "by another signer of the group"),
            ("mallory", &index[..], "by a stranger"),
            ("alice", b"another index", "on another text"),
        ] {
            let signature = decode_base64(&person(signer).sign_bytes(text)).unwrap();
            tampering.refuses_with("signatures/signer-1.sig", signature, what);
        }
        for (name, other) in [("keys/signer-1.pem", "keys/signer-2.pem"), ("SHA256SUMS", "svc.index.json")] {
            tampering.refuses_with(name, fs::read(tampering.path(other)).unwrap(), other);
        }
    });
}

/// Where the script is told of a change, what was signed still decides.
#[test]
fn a_change_that_the_script_is_told_of_is_refused() {
    tamper(&["openssl"], |tampering| {
        let index = tampering.read("svc.index.json");
        let changed = index.replacen("app.tar.gz", "app.tar.xz", 1);
        let digest = Sha512::of(changed.as_bytes());
        let before = fs::read(tampering.path("svc.index.json.sha512")).unwrap();
        fs::write(tampering.path("svc.index.json.sha512"), digest.as_bytes()).unwrap();
        tampering.refuses_with("svc.index.json", &changed, "with its digest");
        fs::write(tampering.path("svc.index.json"), &changed).unwrap();
        let old = Sha512::of(index.as_bytes()).to_string();
        tampering.refuses_script(&old, &digest.to_string(), "with the digest of another index");
        fs::write(tampering.path("svc.index.json"), index).unwrap();
        fs::write(tampering.path("svc.index.json.sha512"), before).unwrap();

        // As if it had come from another release: the digests of files must stand in what was signed.
        let sums = tampering.read("SHA256SUMS");
        let of = |text: &str| Sha256::of(text.as_bytes()).to_string();
        let changed = sums.replace(&of("the archive"), &of("malware"));
        let script = tampering.read("verify.sh");
        fs::write(tampering.path("SHA256SUMS"), &changed).unwrap();
        fs::write(tampering.path("verify.sh"), script.replace(&of(&sums), &of(&changed))).unwrap();
        let files = TempDir::new().unwrap();
        fs::write(files.path().join("app.tar.gz"), "malware").unwrap();
        let ran = run_script(tampering.shell(), tampering.copy.path(), &[text(files.path())]);
        let words = "the signed index has no file with the digest of app.tar.gz";
        assert_refused(ran, "other sums").says(&[words]);
        fs::write(tampering.path("verify.sh"), script).unwrap();
        fs::write(tampering.path("SHA256SUMS"), sums).unwrap();
    });
    tamper(&["ssh", "minisign", "openpgp"], |tampering| {
        let told = |name: &str| name.starts_with("SHA256SUMS") || name.starts_with("signatures/");
        for name in tampering.files().iter().filter(|name| told(name)) {
            let content = fs::read(tampering.path(name)).unwrap();
            let mut changed = content.clone();
            changed[content.len() / 2] ^= 1;
            let [from, to] = [&content, &changed].map(|bytes| format!("expect {} {name}", Sha256::of(bytes)));
            fs::write(tampering.path(name), changed).unwrap();
            tampering.refuses_script(&from, &to, &format!("it is told of {name}"));
            fs::write(tampering.path(name), content).unwrap();
        }
    });
}

/// The script counts: it does not take the word of the program that wrote it.
#[test]
fn keys_are_counted_against_every_threshold() {
    tamper(&ALL, |tampering| {
        let first = "group 2 signer-1 signer-2 signer-3\n";
        for (to, what) in [
            ("group 3 signer-1 signer-2 signer-3\n", "three are needed, two have signed"),
            ("group 2 signer-1 signer-1 signer-3\n", "one signer counts once"),
            ("group 2 signer-1 signer-3 signer-9\n", "a signer without a key"),
            ("group 0 signer-1\n", "no threshold"),
            ("group 2\n", "no members"),
            ("group '' signer-1\n", "a threshold that is no number"),
        ] {
            tampering.refuses_script(first, to, what);
        }
        let one = "    signature signer-2\n";
        tampering.refuses_script("group 1 signer-4 signer-1\n", "group 1 signer-4\n", "the second group");
        tampering.refuses_script(one, "", "one signature less");
        tampering.refuses_script(one, "    signature signer-1\n", "a signature twice");
        tampering.refuses_script(one, "    signature signer-3\n", "no such signature");
        let script = tampering.read("verify.sh");
        let is_group = |line: &&str| line.starts_with("    group ");
        assert_eq!(script.lines().filter(is_group).count(), 2);
        let without: Vec<&str> = script.lines().filter(|line| !is_group(line)).collect();
        tampering.refuses_with("verify.sh", without.join("\n") + "\n", "no group at all");
    });
}

/// One person under two names would count twice.
#[test]
fn a_key_under_two_names_is_refused() {
    tamper(&ALL, |tampering| {
        let script = tampering.read("verify.sh");
        let told = |name: &str| {
            let digest = Sha256::of(&fs::read(tampering.path(name)).unwrap());
            format!("expect {digest} {name}")
        };
        let mut changed = script.clone();
        let second: Vec<String> =
            tampering.files().into_iter().filter(|name| name.contains("signer-2")).collect();
        for name in &second {
            let before = told(name);
            fs::copy(tampering.path(name), tampering.path(&format!("{}.kept", name.replace('/', "-"))))
                .unwrap();
            fs::copy(tampering.path(&name.replace("signer-2", "signer-1")), tampering.path(name)).unwrap();
            changed = changed.replace(&before, &told(name));
        }
        if ["openssl", "openpgp"].contains(&tampering.tool) {
            let word = |id: &str| {
                let line = script.lines().find(|line| line.starts_with(&format!("    key {id} "))).unwrap();
                line.rsplit(' ').next().unwrap().to_owned()
            };
            changed = changed.replace(&word("signer-2"), &word("signer-1"));
        }
        tampering.refuses_with("verify.sh", changed, "the same key twice");
        for name in &second {
            fs::rename(tampering.path(&format!("{}.kept", name.replace('/', "-"))), tampering.path(name))
                .unwrap();
        }
    });
}

/// Nothing in it runs before the shell has read it to its end, in which not even a line end can be missing.
#[test]
fn a_script_that_was_cut_off_never_succeeds() {
    let scene = Scene::complete();
    for tool in tools() {
        scene.export(tool);
        let script = scene.computer.read(&format!("{tool}/verify.sh"));
        assert!(script.ends_with(b"\nexit 0\n}"));
        assert_whole_or_nothing(&script, &[], &[&scene.files()]);
    }
}
