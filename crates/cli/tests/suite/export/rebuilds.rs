//! What the script for openssl says of builders: it checks what each states, and one of them never breaks it
//! (D259–D262).

use std::{fs, path::Path};

use countersign_core::values::digest::{Sha256, Sha512};
use serde_json::{Value, json};

use super::scene::{assert_refused, assert_verified, run_script, shells};
use crate::support::client::{Computer, Ran, text};
use crate::support::signers::named_group;
use crate::support::{
    SignersFile, World, keys::has_openssl, keys::installed, keys::run_tool, people::now, person,
};

const ARCHIVE: &[u8] = b"the archive";

/// Alice releases an archive, whose index has two digests of it, and notes. Two of three builders make the archive.
struct Scene {
    world: World,
    computer: Computer,
    index: String,
}

impl Scene {
    fn new(is_required: bool) -> Self {
        let everyone = ["alice", "dora", "emil", "frida"].map(person);
        let builders = named_group(2, &["dora", "emil", "frida"]);
        let rebuilds = json!({ "builders": builders, "files": ["*.gz"], "required": is_required });
        let file = SignersFile::of(1, &[&everyone[0]]).with("rebuilds", rebuilds);
        let world = World::with_project(&file, &everyone.each_ref());
        let sums = format!("{}  app.gz\n{}  notes\n", Sha256::of(ARCHIVE), Sha256::of(b"read me"));
        let long = format!("{}  app.gz\n", Sha512::of(ARCHIVE));
        for (name, content) in
            [("app.gz", "the archive"), ("notes", "read me"), ("SHA256SUMS", &sums), ("SHA512SUMS", &long)]
        {
            world.files.put(&format!("/acme/app/1.0/{name}"), content);
        }
        let urls = ["SHA256SUMS", "SHA512SUMS"].map(|name| world.files.url(&format!("/acme/app/1.0/{name}")));
        world.register_assets(&everyone[0], &[&urls[0], &urls[1]]).ok();
        let index = world.index_path("acme/app/1.0");
        world.sign_all(&index, &[&everyone[0]]);
        let computer = Computer::of(&world.server);
        computer.write("files/app.gz", ARCHIVE);
        computer.write("files/notes", "read me");
        Self { world, computer, index }
    }

    /// States these digests of the archive. `change` is what the builder does to the text.
    fn rebuild(&self, name: &str, digests: &Value, change: impl Fn(String) -> String) {
        let subject = Sha512::of(&self.world.read(&self.index)).to_prefixed();
        let document = json!({
            "rebuild_of": self.index,
            "subject_digest": subject,
            "source_commit": "0123456789abcdef0123456789abcdef01234567",
            "files": [{ "file_name": "app.gz", "digests": digests }],
            "timestamp": now().to_string(),
        });
        let (builder, document) = (person(name), change(document.to_string()));
        let body = json!({
            "file_path": self.index,
            "rebuild_json": document,
            "signature": builder.sign_bytes(document.as_bytes()),
            "public_key": builder.body_key(),
        });
        self.world.post_as(&builder, "/v1/rebuild", &body).ok();
    }

    fn export(&self) -> Ran {
        self.computer.run(&["export", &self.index, "--for", "openssl", "-o", "out", "--force"])
    }

    /// What the script says in each shell that is here.
    fn verify(&self) -> Ran {
        let ran = shells().into_iter().map(|shell| {
            let ran = run_script(shell, &self.out(), &[text(&self.computer.path("files"))]);
            (ran.code, ran.stdout.clone(), ran)
        });
        let mut ran: Vec<_> = ran.collect();
        assert!(ran.iter().all(|(code, said, _)| (code, said) == (&ran[0].0, &ran[0].1)), "{ran:?}");
        if installed("shellcheck") {
            let script = self.computer.path("out/verify.sh");
            assert_eq!(run_tool(std::process::Command::new("shellcheck").args(["-s", "sh"]).arg(script)), "");
        }
        ran.remove(0).2
    }

    fn out(&self) -> std::path::PathBuf {
        self.computer.path("out")
    }
}

fn sha256() -> Value {
    json!({ "sha256": Sha256::of(ARCHIVE).to_string() })
}

fn sha512() -> Value {
    json!({ "sha512": Sha512::of(ARCHIVE).to_string() })
}

/// JSON for the same text, with a character of the index's digest as an escape.
fn escape(text: String) -> String {
    let escaped = text.replace("sha512:", "sha512\\u003a");
    assert_ne!(escaped, text);
    escaped
}

#[test]
fn builders_count_by_either_digest_and_one_who_escapes_breaks_nothing() {
    if !has_openssl() {
        return;
    }
    let scene = Scene::new(true);
    scene.rebuild("dora", &sha256(), |text| text);
    scene.rebuild("frida", &sha256(), escape);
    // The client reads JSON, and counts both. The script could only refuse.
    scene.computer.download(&scene.world.files.url("/acme/app/1.0/app.gz")).ok();
    let refused = scene.export().failed(1);
    refused.says(&["cannot show that", "frida, svc-pub:", "escapes", "countersign bundle"]);
    scene.rebuild("emil", &sha512(), |text| text);
    scene.export().ok().says(&["warning: frida, svc-pub:", "escapes"]);
    let said = assert_verified(scene.verify());
    said.says(&["builder-2 has signed.", "Reproduced: enough builders got 1 of its 2 files"]);
    assert!(!scene.out().join("rebuilds/builder-3.json").exists());
}

#[test]
fn too_few_builders_are_told_and_refused_where_the_project_requires_them() {
    if !has_openssl() {
        return;
    }
    let scene = Scene::new(false);
    scene.export().ok();
    assert_verified(scene.verify()).says(&["Not reproduced: has 0 of 2 builders"]);
    scene.rebuild("dora", &sha256(), |text| text);
    scene.export().ok();
    let said = assert_verified(scene.verify());
    said.says(&["builder-1 has signed.", "Not reproduced: has 1 of 2 builders"])
        .says_nothing_of(&["Reproduced:"]);
    // The script of a project that requires builders counts by itself.
    let script = fs::read_to_string(scene.out().join("verify.sh")).unwrap();
    let required = script.replacen("    # dora, ", "    required=yes\n    # dora, ", 1);
    assert_ne!(script, required);
    fs::write(scene.out().join("verify.sh"), required).unwrap();
    assert_refused(scene.verify(), "required").says(&["1 builders got the file", "requires 2"]);
}

#[test]
fn a_difference_is_told_first_and_its_statement_is_checked() {
    if !has_openssl() {
        return;
    }
    let scene = Scene::new(false);
    let other = json!({ "sha256": Sha256::of(b"another archive").to_string() });
    scene.rebuild("dora", &sha256(), |text| text);
    scene.rebuild("emil", &other, |text| text);
    scene.rebuild("frida", &sha512(), |text| text);
    scene.export().ok().says(&["DIFFERENT emil got something else: app.gz from commit 0123456789ab"]);
    for (command, more) in [("bundle", "b.json"), ("export", "out2")] {
        let mut args = vec![command, &scene.index, "-o", more];
        args.extend((command == "export").then_some(["--for", "openssl"]).into_iter().flatten());
        scene.computer.run(&args).ok().says(&["DIFFERENT emil got something else: app.gz"]);
    }
    let said = scene.verify().ok();
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines[0], "DIFFERENT: 1 builder got something else from the source.");
    assert!(lines.last().unwrap().starts_with("VERIFIED, but 1 builder got something else"), "{said:?}");
    said.says(&["builder-2 has signed.", "Reproduced: enough builders"]);
    let script = fs::read_to_string(scene.out().join("verify.sh")).unwrap();
    assert!(script.contains("a builder, got something else: app.gz from commit"), "{script}");
    for name in [
        "rebuilds/builder-2.json", "signatures/builder-2.sig", "keys/builder-2.pem",
        "rebuilds/builder-1.json",
    ] {
        refuses_changed(&scene, &scene.out().join(name));
    }
    // Nothing of it comes from the environment.
    let mut command = super::scene::shell_command("sh", &scene.out(), &[text(&scene.computer.path("files"))]);
    let changed = scene.out().join("signatures/signer-1.sig");
    fs::write(&changed, [7; 64]).unwrap();
    let refused = Ran::of(command.env("text", "anything").env("required", "").env("lacks", "x"));
    assert_refused(refused, "the environment").says(&["is no signature of signer-1 on the index"]);
}

#[track_caller]
fn refuses_changed(scene: &Scene, path: &Path) {
    let before = fs::read(path).unwrap();
    fs::write(path, [&before[..9], b"x", &before[10..]].concat()).unwrap();
    assert_refused(scene.verify(), text(path));
    fs::write(path, before).unwrap();
}
