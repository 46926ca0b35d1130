//! `install.sh`: it installs what enough of the keys in it have signed, and nothing else (D114).

use std::{fs, process::Command, process::Stdio};

use serde_json::json;

use super::{ReleaseScene, VERSION, archive, packaging, program};
use crate::support::{Person, client::Ran, keys::installed};

const INDEX: &str = "svc.index.json";
const SIGNATURES: &str = "svc.index.json.signatures.json";

/// A published release, and a copy of it that an attacker holds.
struct Mirror {
    scene: ReleaseScene,
}

impl Mirror {
    fn start() -> Option<Self> {
        let scene = ReleaseScene::start()?;
        scene.publish_signed();
        Some(Self { scene })
    }

    fn path(&self, version: &str, name: &str) -> String {
        format!("mirror/{version}/{name}")
    }

    fn original(&self, name: &str) -> Vec<u8> {
        self.scene.computer.read(&format!("site/countersign/{VERSION}/{name}"))
    }

    fn reset(&self) {
        let _ = fs::remove_dir_all(self.scene.computer.path("mirror"));
        for name in self.scene.published() {
            self.put(&name, self.original(&name));
        }
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        self.scene.computer.write(&self.path(VERSION, name), bytes);
    }

    fn install_with(&self, shell: &str, settings: &[(&str, &str)]) -> Ran {
        let mut command = Command::new(shell);
        self.scene.computer.settle(&mut command);
        command.arg(self.scene.computer.path(&format!("site/countersign/{VERSION}/install.sh")));
        command.stdin(Stdio::null()).env("COUNTERSIGN_PREFIX", self.scene.computer.path("prefix"));
        Ran::of(command.envs(settings.iter().copied()))
    }

    fn install_from_mirror(&self) -> Ran {
        let mirror = self.scene.computer.path("mirror");
        self.install_with("sh", &[("COUNTERSIGN_URL", mirror.to_str().unwrap())])
    }

    #[track_caller]
    fn refuses(&self, what: &str) {
        let ran = self.install_from_mirror();
        assert_ne!(ran.code, 0, "{what}: {ran:?}");
        assert!(ran.stderr.contains("error: "), "{what}: {ran:?}");
        assert!(!self.scene.computer.path("prefix").exists(), "{what}: something was installed");
        self.reset();
    }

    /// Replaces index and signatures by an index that these people have signed.
    fn sign(&self, index: &str, people: &[&str]) {
        let entries = people.iter().map(|name| {
            let person = Person::named(name);
            let signature = person.sign_bytes(index.as_bytes());
            (person.key(), json!({ "signature": signature, "collected_at": "2026-01-01T00:00:00Z" }))
        });
        let entries: serde_json::Map<_, _> = entries.collect();
        // The field with the signature comes first, as in what servers write.
        let text = serde_json::to_string_pretty(&json!({ "entries": entries })).unwrap();
        let lines: Vec<_> = text.lines().collect();
        let mut swapped = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            if lines[at].contains("\"collected_at\"") {
                swapped.push(format!("{},", lines[at + 1]));
                swapped.push(lines[at].trim_end_matches(',').to_owned());
                at += 2;
            } else {
                swapped.push(lines[at].to_owned());
                at += 1;
            }
        }
        self.put(INDEX, index);
        self.put(SIGNATURES, swapped.join("\n"));
    }
}

#[test]
fn the_program_is_installed_with_its_pages_and_completions_whatever_is_set() {
    let Some(mirror) = Mirror::start() else { return };
    let computer = &mirror.scene.computer;
    for shell in ["sh", "dash", "bash"].into_iter().filter(|shell| installed(shell)) {
        mirror.install_with(shell, &[]).ok().says(&["Verified", "Installed countersign"]);
        for file in [
            "bin/countersign", "share/man/man1/countersign.1",
            "share/fish/vendor_completions.d/countersign.fish",
        ] {
            assert!(computer.path("prefix").join(file).is_file(), "{file} with {shell}");
        }
        // The date of the release, which its commit has.
        let page = computer.read("prefix/share/man/man1/countersign.1");
        assert!(String::from_utf8(page).unwrap().contains(".TH countersign 1 2023-11-14 "));
        let ran = Ran::of(Command::new(computer.path("prefix/bin/countersign")).arg("--version"));
        ran.ok().says(&[VERSION]);
    }
    // It can be run again, beside a program that runs; and names are not words of the shell.
    let odd = computer.path("a \"prefix\" of $(touch broken)");
    mirror.install_with("sh", &[("COUNTERSIGN_PREFIX", odd.to_str().unwrap())]).ok();
    assert!(odd.join("bin/countersign").is_file());
    assert!(!computer.path("broken").exists());
    // Hostile settings and a script that was not filled in do nothing.
    fs::remove_dir_all(computer.path("prefix")).unwrap();
    let hostile =
        ["$(touch broken)`touch broken`", "1.0; touch broken", "../..", "1.0\n2.0", "-o", "'", "\"", "*"];
    for value in hostile {
        for name in ["COUNTERSIGN_VERSION", "COUNTERSIGN_URL"] {
            let ran = mirror.install_with("sh", &[(name, value)]);
            assert_eq!(ran.code, 1, "{name}={value:?}: {ran:?}");
            assert!(
                !computer.path("prefix").exists() && !computer.path("broken").exists(),
                "{name}={value:?}"
            );
        }
    }
    let template = Ran::of(
        Command::new("sh").arg(packaging("install.sh")).env("COUNTERSIGN_PREFIX", computer.path("prefix")),
    );
    assert_eq!(template.code, 1, "{template:?}");
    template.says(&["this is the template"]);
    assert!(!computer.path("prefix").exists());
    // Without a bound nothing is fetched.
    let path = format!("site/countersign/{VERSION}/install.sh");
    let script = String::from_utf8(mirror.scene.computer.read(&path)).unwrap();
    assert_eq!(script.matches("ulimit -f \"$2\"").count(), 1);
    mirror.scene.computer.write(&path, script.replace("ulimit -f \"$2\"", "false"));
    mirror.install_with("sh", &[]).failed_with(1).says(&["cannot be fetched"]);
}

/// Some systems run no programs in temporary directories. The program is tried where it is going to be.
#[test]
fn the_program_runs_only_where_it_is_installed() {
    let Some(scene) = ReleaseScene::start() else { return };
    let (log, broken) = (scene.computer.path("ran-from"), scene.computer.path("broken"));
    let script = format!(
        "echo \"$0\" >>'{}'\n[ ! -e '{}' ] || exit 1\nexec {} \"$@\"",
        log.display(),
        broken.display(),
        program()
    );
    scene.write_program("program", &script);
    scene.publish_signed();
    let mirror = Mirror { scene };
    fs::remove_file(&log).unwrap();
    mirror.install_with("sh", &[]).ok();
    let prefix = mirror.scene.computer.path("prefix");
    let ran = fs::read_to_string(&log).unwrap();
    assert!(ran.lines().count() > 1, "{ran}");
    assert!(ran.lines().all(|path| path.starts_with(prefix.to_str().unwrap())), "{ran}");
    // One that does not run takes the place of no other.
    let before = fs::metadata(prefix.join("bin/countersign")).unwrap().modified().unwrap();
    fs::write(&broken, "").unwrap();
    mirror.install_with("sh", &[]).failed_with(1).says(&["does not run in", "noexec"]);
    assert_eq!(fs::metadata(prefix.join("bin/countersign")).unwrap().modified().unwrap(), before);
    assert_eq!(fs::read_dir(prefix.join("bin")).unwrap().count(), 1);
}

#[test]
fn what_was_changed_or_not_signed_by_enough_for_this_release_is_not_installed() {
    let Some(mirror) = Mirror::start() else { return };
    mirror.reset();
    let archive = archive();
    for name in [INDEX, SIGNATURES, &archive] {
        let bytes = mirror.original(name);
        // In the middle of the index and the archive; in the first signature.
        let at = if name == SIGNATURES { 90 } else { bytes.len() / 2 };
        let mut changed = bytes.clone();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        mirror.put(name, &changed);
        mirror.refuses(&format!("a byte of {name}"));
        mirror.put(name, &bytes[..bytes.len() / 2]);
        mirror.refuses(&format!("half of {name}"));
        mirror.put(name, b"");
        mirror.refuses(&format!("an empty {name}"));
        fs::remove_file(mirror.scene.computer.path(&mirror.path(VERSION, name))).unwrap();
        mirror.refuses(&format!("no {name}"));
    }
    // Too few, or the wrong people.
    let index = String::from_utf8(mirror.original(INDEX)).unwrap();
    for people in [&[][..], &["alice"], &["mallory", "eve", "oscar"], &["alice", "mallory"]] {
        mirror.sign(&index, people);
        mirror.refuses(&format!("{people:?}"));
    }
    // One signature under two names of keys.
    mirror.sign(&index, &["alice"]);
    let text = mirror.scene.computer.read(&mirror.path(VERSION, SIGNATURES));
    let text = String::from_utf8(text).unwrap();
    let (alice, bob) = (Person::named("alice").key(), Person::named("bob").key());
    let entry = text.split_once("{\n    ").unwrap().1.rsplit_once("\n  }").unwrap().0;
    mirror.put(
        SIGNATURES,
        format!("{{\n  \"entries\": {{\n    {entry},\n    {}\n  }}\n}}", entry.replace(&alice, &bob)),
    );
    mirror.refuses("alice's signature as bob's");
    mirror.put(SIGNATURES, format!("{{\n  \"entries\": {{\n    {entry},\n    {entry}\n  }}\n}}"));
    mirror.refuses("alice twice");
    // What the same people signed for something else.
    let refuses_signed = |what: &str, index: &str| {
        mirror.sign(index, &["alice", "carol"]);
        mirror.refuses(what);
    };
    refuses_signed(
        "another project",
        &index.replace("/countersign\",\n  \"release_url", "/other\",\n  \"release_url"),
    );
    refuses_signed("another layout", &index.split_whitespace().collect::<String>());
    refuses_signed("fields in another order", &index.replace("      \"size\": null,\n", ""));
    refuses_signed("another file", &index.replace("\"countersign-", "\"another-"));
    // An older release under a newer number.
    let (from, to) = (
        mirror.scene.computer.path(&format!("mirror/{VERSION}")),
        mirror.scene.computer.path("mirror/99.0.0"),
    );
    fs::rename(from, to).unwrap();
    let url = mirror.scene.computer.path("mirror");
    let settings = [("COUNTERSIGN_URL", url.to_str().unwrap()), ("COUNTERSIGN_VERSION", "v99.0.0")];
    let ran = mirror.install_with("sh", &settings);
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.says(&["the signed index is not one of", "countersign-99.0.0"]);
    assert!(!mirror.scene.computer.path("prefix").exists());
    // The helper makes what the script accepts.
    mirror.reset();
    mirror.sign(&index, &["bob", "carol"]);
    mirror.install_from_mirror().ok();
}
