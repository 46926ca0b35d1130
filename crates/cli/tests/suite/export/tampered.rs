//! Every exported file, changed in every way: the script refuses.

use std::{fs, os::unix::fs::symlink, path::Path, path::PathBuf, process::Command};

use countersign_core::values::{digest::Sha256, digest::Sha512, key::decode_base64};
use tempfile::TempDir;

use super::scene::{Exported, assert_refused, assert_verified, run_script, shells};
use crate::support::{client::text, keys::run_tool, person, scripts::assert_whole_or_nothing};

/// Everything that the script reads, but the script itself.
const EXPORTED: [&str; 10] = [
    "SHA256SUMS",
    "keys/signer-1.pem",
    "keys/signer-2.pem",
    "keys/signer-3.pem",
    "keys/signer-4.pem",
    "signatures/signer-1.sig",
    "signatures/signer-2.sig",
    "svc.index.json",
    "svc.index.json.sha512",
    "svc.signers.json",
];

/// One file of each kind.
const KINDS: [&str; 6] = [
    "SHA256SUMS",
    "keys/signer-1.pem",
    "signatures/signer-1.sig",
    "svc.index.json",
    "svc.index.json.sha512",
    "svc.signers.json",
];
/// In so many places of each file a bit is flipped: from the first byte to the last.
const SPOTS: usize = 4;

/// Changes a file, runs the script, and puts the file back.
struct Tampering<'a> {
    exported: &'a Exported,
    shell: &'a str,
    copy: &'a Path,
}

impl Tampering<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.copy.join(name)
    }

    #[track_caller]
    fn refuses(&self, name: &str, bytes: impl AsRef<[u8]>, what: &str) {
        let path = self.path(name);
        let before = fs::read(&path).unwrap();
        assert_ne!(before, bytes.as_ref(), "{name}: {what}");
        fs::write(&path, bytes).unwrap();
        let ran = self.exported.verify(self.shell, self.copy);
        assert_refused(ran, &format!("{}: {name}: {what}", self.shell));
        fs::write(&path, before).unwrap();
    }

    #[track_caller]
    fn refuses_flips(&self, name: &str, positions: impl Iterator<Item = usize>) {
        let bytes = fs::read(self.path(name)).unwrap();
        for position in positions {
            let mut changed = bytes.clone();
            changed[position] ^= 1 << (position % 8);
            self.refuses(name, changed, &format!("byte {position}"));
        }
    }

    #[track_caller]
    fn accepts(&self) {
        assert_verified(self.exported.verify(self.shell, self.copy));
    }
}

fn tamper(check: impl Fn(&Tampering<'_>)) {
    let shells = shells();
    if shells.is_empty() {
        return;
    }
    let exported = Exported::new();
    for shell in shells {
        let copy = exported.copy();
        let tampering = Tampering { exported: &exported, shell, copy: copy.path() };
        tampering.accepts();
        check(&tampering);
        // What was put back is whole: each refusal had its own cause.
        tampering.accepts();
    }
}

#[test]
fn a_flipped_bit_anywhere_in_any_file_is_refused() {
    tamper(|tampering| {
        for name in EXPORTED {
            let length = fs::read(tampering.path(name)).unwrap().len();
            let spread = (0..SPOTS).map(|part| part * (length - 1) / (SPOTS - 1));
            tampering.refuses_flips(name, spread);
        }
    });
}

#[test]
fn every_byte_of_a_signature_counts() {
    let Some(shell) = shells().into_iter().next() else { return };
    let exported = Exported::new();
    let copy = exported.copy();
    Tampering { exported: &exported, shell, copy: copy.path() }
        .refuses_flips("signatures/signer-1.sig", 0..64);
}

#[test]
fn a_file_that_is_cut_emptied_longer_or_gone_is_refused() {
    tamper(|tampering| {
        for name in KINDS {
            let bytes = fs::read(tampering.path(name)).unwrap();
            tampering.refuses(name, &bytes[..bytes.len() - 1], "without its last byte");
            tampering.refuses(name, &bytes[..bytes.len() / 2], "half of it");
            tampering.refuses(name, [], "empty");
            tampering.refuses(name, [&bytes[..], b"\n"].concat(), "one byte more");
            tampering.refuses(name, [&bytes[..], b"\0"].concat(), "a zero more");
            let (path, aside) = (tampering.path(name), tampering.path("aside"));
            fs::rename(&path, &aside).unwrap();
            let ran = || tampering.exported.verify(tampering.shell, tampering.copy);
            assert_refused(ran(), &format!("{name} is gone"));
            fs::create_dir(&path).unwrap();
            assert_refused(ran(), &format!("{name} is a directory"));
            fs::remove_dir(&path).unwrap();
            fs::rename(&aside, &path).unwrap();
        }
    });
}

#[test]
fn files_in_the_place_of_others_are_refused() {
    tamper(|tampering| {
        for name in EXPORTED {
            for other in EXPORTED.into_iter().filter(|other| *other != name) {
                // One pair in each direction of each kind is enough: the rest fail by the same digest.
                if Path::new(name).extension() == Path::new(other).extension() {
                    tampering.refuses(name, fs::read(tampering.path(other)).unwrap(), other);
                }
            }
        }
    });
}

#[test]
fn a_signature_by_another_key_or_on_another_text_is_refused() {
    tamper(|tampering| {
        let index = fs::read(tampering.path("svc.index.json")).unwrap();
        for (signer, text, what) in [
            ("carol", &index[..], "by another signer of the group"),
            ("mallory", &index[..], "by a stranger"),
            ("alice", b"another index", "on another text"),
        ] {
            let signature = decode_base64(&person(signer).sign_bytes(text)).unwrap();
            tampering.refuses("signatures/signer-1.sig", signature, what);
        }
    });
}

#[test]
fn a_changed_index_with_its_right_digest_is_refused() {
    tamper(|tampering| {
        let index = fs::read_to_string(tampering.path("svc.index.json")).unwrap();
        let changed = index.replacen("app.tar.gz", "app.tar.xz", 1);
        let digest = Sha512::of(changed.as_bytes());
        let before = fs::read(tampering.path("svc.index.json.sha512")).unwrap();
        fs::write(tampering.path("svc.index.json.sha512"), digest.as_bytes()).unwrap();
        tampering.refuses("svc.index.json", &changed, "with its digest");
        // Even where the script is told of it: no one has signed it.
        let script = fs::read_to_string(tampering.path("verify.sh")).unwrap();
        let old = Sha512::of(index.as_bytes()).to_string();
        let told = script.replacen(&old, &digest.to_string(), 1);
        fs::write(tampering.path("svc.index.json"), &changed).unwrap();
        tampering.refuses("verify.sh", told, "with the digest of another index");
        fs::write(tampering.path("svc.index.json"), index).unwrap();
        fs::write(tampering.path("svc.index.json.sha512"), before).unwrap();
    });
}

/// As if it had come from another release: the digests of files must stand in what was signed.
#[test]
fn sums_that_the_signed_index_does_not_have_are_refused() {
    tamper(|tampering| {
        let sums = fs::read_to_string(tampering.path("SHA256SUMS")).unwrap();
        let digest = Sha256::of(b"the archive").to_string();
        let changed = sums.replace(&digest, &Sha256::of(b"malware").to_string());
        assert_ne!(changed, sums);
        let script = fs::read_to_string(tampering.path("verify.sh")).unwrap();
        let of = |text: &str| Sha256::of(text.as_bytes()).to_string();
        let told = script.replace(&of(&sums), &of(&changed));
        fs::write(tampering.path("SHA256SUMS"), changed).unwrap();
        fs::write(tampering.path("verify.sh"), told).unwrap();
        let files = TempDir::new().unwrap();
        fs::write(files.path().join("app.tar.gz"), "malware").unwrap();
        let ran = run_script(tampering.shell, tampering.copy, &[text(files.path())]);
        assert_refused(ran, "other sums")
            .says(&["the signed index has no file with the digest of app.tar.gz"]);
        fs::write(tampering.path("verify.sh"), script).unwrap();
        fs::write(tampering.path("SHA256SUMS"), sums).unwrap();
    });
}

/// The script counts: it does not take the word of the program that wrote it.
#[test]
fn keys_are_counted_against_every_threshold() {
    tamper(|tampering| {
        let script = fs::read_to_string(tampering.path("verify.sh")).unwrap();
        let first = "group 2 signer-1 signer-2 signer-3\n";
        let replace = |from: &str, to: &str| {
            assert_eq!(script.matches(from).count(), 1, "{from}: {script}");
            script.replace(from, to)
        };
        for (to, what) in [
            ("group 3 signer-1 signer-2 signer-3\n", "three are needed, two have signed"),
            ("group 2 signer-1 signer-1 signer-3\n", "one signer counts once"),
            ("group 2 signer-1 signer-3 signer-9\n", "a signer without a key"),
            ("group 0 signer-1\n", "no threshold"),
            ("group 2\n", "no members"),
            ("group '' signer-1\n", "a threshold that is no number"),
        ] {
            tampering.refuses("verify.sh", replace(first, to), what);
        }
        tampering.refuses(
            "verify.sh",
            replace("group 1 signer-4 signer-1\n", "group 1 signer-4\n"),
            "the second group",
        );
        tampering.refuses("verify.sh", replace("    signature signer-2\n", ""), "one signature less");
        tampering.refuses(
            "verify.sh",
            replace("    signature signer-2\n", "    signature signer-3\n"),
            "no such signature",
        );
        let groups = script.lines().filter(|line| line.starts_with("    group ")).count();
        assert_eq!(groups, 2);
        let without: String = script
            .lines()
            .filter(|line| !line.starts_with("    group "))
            .map(|line| format!("{line}\n"))
            .collect();
        tampering.refuses("verify.sh", without, "no group at all");
    });
}

/// One person under two names would count twice.
#[test]
fn a_key_under_two_names_is_refused() {
    tamper(|tampering| {
        let script = fs::read_to_string(tampering.path("verify.sh")).unwrap();
        let word = |id: &str| {
            let line = script.lines().find(|line| line.starts_with(&format!("    key {id} "))).unwrap();
            line.rsplit(' ').next().unwrap().to_owned()
        };
        let changed = script.replace(&word("signer-2"), &word("signer-1"));
        for kind in ["keys/signer-2.pem", "signatures/signer-2.sig"] {
            let first = fs::read(tampering.path(&kind.replace('2', "1"))).unwrap();
            fs::rename(tampering.path(kind), tampering.path(&format!("{kind}.kept"))).unwrap();
            fs::write(tampering.path(kind), first).unwrap();
        }
        tampering.refuses("verify.sh", changed, "the same key twice");
        for kind in ["keys/signer-2.pem", "signatures/signer-2.sig"] {
            fs::rename(tampering.path(&format!("{kind}.kept")), tampering.path(kind)).unwrap();
        }
    });
}

/// Nothing in it runs before the shell has read it to its end, in which not even a line end can be missing.
#[test]
fn a_script_that_was_cut_off_never_succeeds() {
    let exported = Exported::new();
    let script = fs::read(exported.dir().join("verify.sh")).unwrap();
    assert!(script.ends_with(b"\nexit 0\n}"));
    assert_whole_or_nothing(&script, &[], &[&exported.files()]);
}

/// A pipe would be read for ever, and a device could be anything.
#[test]
fn what_is_not_a_plain_file_is_not_opened() {
    tamper(|tampering| {
        for name in EXPORTED {
            let (path, kept) = (tampering.path(name), tampering.path("kept"));
            fs::rename(&path, &kept).unwrap();
            run_tool(Command::new("mkfifo").arg(&path));
            let ran = tampering.exported.verify(tampering.shell, tampering.copy);
            assert_refused(ran, "a pipe").says(&[name, "cannot be read"]);
            fs::remove_file(&path).unwrap();
            for other in ["/dev/zero", "/dev/null", "."] {
                symlink(other, &path).unwrap();
                let ran = tampering.exported.verify(tampering.shell, tampering.copy);
                assert_refused(ran, other).says(&[name, "cannot be read"]);
                fs::remove_file(&path).unwrap();
            }
            fs::rename(&kept, &path).unwrap();
        }
        let pipe = tampering.exported.files().join("app.tar.gz");
        let kept = fs::read(&pipe).unwrap();
        fs::remove_file(&pipe).unwrap();
        run_tool(Command::new("mkfifo").arg(&pipe));
        let ran = tampering.exported.verify(tampering.shell, tampering.copy);
        assert_refused(ran, "a file of the release").says(&["app.tar.gz cannot be read"]);
        fs::remove_file(&pipe).unwrap();
        fs::write(&pipe, kept).unwrap();
    });
}

/// The script cannot see that it was changed itself. Its digest shows it.
#[test]
fn a_lowered_threshold_shows_in_the_digest_of_the_script() {
    let exported = Exported::new();
    let script = fs::read_to_string(exported.dir().join("verify.sh")).unwrap();
    let printed = exported.report["script_sha256"].as_str().unwrap();
    assert_eq!(Sha256::of(script.as_bytes()).to_string(), printed);
    let lowered = script.replace("group 2 ", "group 1 ");
    assert_ne!(Sha256::of(lowered.as_bytes()).to_string(), printed);
}

/// It looks at what it names, and at nothing else.
#[test]
fn files_beside_the_exported_ones_change_nothing() {
    tamper(|tampering| {
        for name in ["keys/signer-9.pem", "signatures/signer-3.sig", "notes", "od", "openssl"] {
            fs::write(tampering.path(name), "x").unwrap();
        }
    });
}
