//! Builders state what they got, and everyone who signs or downloads learns of it (D259–D262).

use std::{fs, path::Path, process::Command};

use serde_json::json;

use crate::support::client::{Computer, Ran, add_files, put_release, text};
use crate::support::signers::{days_ago, named_group};
use crate::support::{SignersFile, World, keys::has_openssl, person};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const TEAM: [&str; 5] = ["alice", "bob", "dora", "emil", "frida"];

/// Two of alice and bob release; any two of three builders make the archive.
fn team(is_required: bool) -> SignersFile {
    let builders = named_group(2, &["dora", "emil", "frida"]);
    let rebuilds = json!({"builders": builders, "files": ["*.gz"], "required": is_required});
    SignersFile::new().with("artifact_signers", named_group(2, &["alice", "bob"])).with("rebuilds", rebuilds)
}

struct Scene {
    world: World,
    computer: Computer,
    index: String,
}

impl Scene {
    fn new(is_required: bool) -> Self {
        Self::of(&team(is_required), &[("app.gz", b"the archive"), ("notes.txt", b"read me")])
    }

    fn of(team: &SignersFile, files: &[(&str, &[u8])]) -> Self {
        let team_keys = TEAM.map(person);
        let world = World::with_project(team, &team_keys.each_ref());
        let sums = put_release(&world.files, "acme/app/1.0", files);
        let computer = Computer::of(&world.server);
        computer.run_as("alice", &["release", "--checksums", &sums]).ok();
        computer.write("same/app.gz", "the archive");
        computer.write("other/app.gz", "another archive");
        let index = world.index_path("acme/app/1.0");
        Self { world, computer, index }
    }

    fn rebuild(&self, name: &str, dir: &str) -> Ran {
        let args = ["rebuild", &self.index, "--files", dir, "--source", COMMIT, "--yes"];
        self.computer.run_as(name, &args)
    }

    fn sign(&self, name: &str, more: &[&str]) -> Ran {
        self.computer.run_as(name, &[&["sign", &self.index, "--yes"], more].concat())
    }

    fn url(&self) -> String {
        self.world.files.url("/acme/app/1.0/app.gz")
    }

    fn complete(&self) {
        ["alice", "bob"].iter().for_each(|name| drop(self.sign(name, &[]).ok()));
    }

    fn verify_export(&self, dir: &Path) -> Ran {
        Ran::of(Command::new("sh").arg(dir.join("verify.sh")).arg(self.computer.path("same")))
    }
}

#[test]
fn a_difference_is_stated_shown_first_and_signed_by_people_alone() {
    let scene = Scene::new(false);
    let (computer, index) = (&scene.computer, scene.index.as_str());
    let refused = scene.rebuild("dora", "other").failed(3);
    refused.says(&["app.gz DIFFERS", "something else", "1 file differs: app.gz", "diffoscope"]);
    computer.run(&["status", index]).ok().says(&[
        "DIFFERENT dora got something else: app.gz from commit 0123456789ab…",
        "reproduced by 0 of 2 (any 2 of 3 builders); 2 more from emil or frida",
    ]);
    scene.sign("alice", &[]).failed(3).says(&["DIFFERENT dora", "--despite-rebuilds"]);
    scene.sign("alice", &["--despite-rebuilds"]).ok().says(&["reproduced by 0 of 2"]);
    // The same word again changes nothing, and its exit code stays.
    scene.rebuild("dora", "other").failed(3).says(&["You stated this of"]);
    scene.rebuild("emil", "same").ok().says(&["is what its source gives"]);
    scene.sign("bob", &["--despite-rebuilds"]).ok();
    let verified = computer.download(&scene.url()).ok();
    verified.says(&["Verified, but 1 builder got something else: app.gz", "reproduced by 1 of 2"]);
    let report = computer.json(&["verify", "app.gz"]);
    let reproduction = &report["reproduction"];
    assert_eq!(
        json!([
            reproduction["is_reproduced"], reproduction["collected"], reproduction["different"][0]["files"]
        ]),
        json!([false, 1, ["app.gz"]])
    );
    // Once it is complete, a builder adds a word, and replaces none.
    scene.rebuild("dora", "same").failed_with(1);
    scene.rebuild("frida", "same").ok();
    computer.run(&["verify", "app.gz"]).ok().says(&["reproduced by 2 of 2", "DIFFERENT dora"]);
}

#[test]
fn what_is_required_is_waited_for_and_refused_before() {
    let scene = Scene::new(true);
    let (computer, index) = (&scene.computer, scene.index.as_str());
    scene.rebuild("dora", "same").ok();
    let project = scene.world.id("acme/app");
    scene.rebuild("alice", "same").failed(1).says(&[&format!("`countersign status {project}`")]);
    let lacking = ["complete, but no one can use it", "reproduced by 1 of 2", "1 more from emil or frida"];
    scene.sign("alice", &[]).ok();
    scene.sign("bob", &[]).ok().says(&lacking);
    computer.run(&["status", &project]).ok().says(&["not reproduced: clients refuse it"]);
    let lacking = "1.0 of ";
    let refused = computer.download(&scene.url()).failed(3);
    refused.says(&[lacking, "is not reproduced: it has 1 of 2; 1 more", "countersign status"]);
    assert!(!computer.path("app.gz").exists());
    computer.run(&["bundle", index, "-o", "lacking.json"]).failed_with(3);
    computer
        .run(&["status", index, "--wait", "--timeout", "1s"])
        .failed(6)
        .says(&["1 more from emil or frida", "complete, but not reproduced"]);
    scene.rebuild("emil", "same").ok();
    computer.run(&["status", index, "--wait", "--timeout", "60s"]).ok();
    computer
        .download(&scene.url())
        .ok()
        .says(&["reproduced by 2 of 2 (any 2 of 3 builders) from commit 0123456789ab…"]);
    computer.run(&["bundle", index, "-o", "bundle.json"]).ok();
    let verify = ["verify", "app.gz", "--bundle", "bundle.json"];
    computer.run(&verify).ok().says(&["reproduced by 2 of 2"]);
    // A newer release that no builder has reproduced yet is no reason to be left without one.
    add_files(&scene.world, "acme/app/1.1", &[("new.gz", b"new")], &[&person("alice"), &person("bob")]);
    for (name, dir) in [(project.as_str(), "newest"), ("acme/app@latest", "latest")] {
        let downloaded = computer.run(&["download", name, "-o", dir]).ok();
        downloaded.says(&["1.1 of ", "is skipped, because it is not reproduced: it has 0 of 2", "Verified"]);
        assert!(computer.path(dir).join("app.gz").exists());
    }
    computer.run(&["download", &project, "1.1"]).failed(3).says(&["is not reproduced"]);
    // A bundle without the statements shows no release that may be used.
    let bundle = String::from_utf8(computer.read("bundle.json")).unwrap();
    assert!(bundle.contains("\"rebuilds\""));
    computer.write("bundle.json", bundle.replace("source_commit", "source_commiT"));
    computer.run(&verify).failed_with(3);
    if !has_openssl() {
        return;
    }
    computer.run(&["export", index, "--for", "openssl", "-o", "exported"]).ok();
    let dir = computer.path("exported");
    let reproduced = "Reproduced: enough builders got 1 of its 2 files from the source";
    scene.verify_export(&dir).ok().says(&[reproduced, "VERIFIED: 1.0 of"]);
    for name in ["rebuilds/builder-1.json", "signatures/builder-2.sig", "keys/builder-1.pem"] {
        let before = fs::read(dir.join(name)).unwrap();
        fs::write(dir.join(name), [&before[..1], &[before[1] ^ 1], &before[2..]].concat()).unwrap();
        let refused = scene.verify_export(&dir).says(&["NOT VERIFIED"]);
        assert_eq!(refused.code, 1, "{refused:?}");
        fs::write(dir.join(name), before).unwrap();
    }
    scene.verify_export(&dir).ok();
}

#[test]
fn a_partial_build_is_called_one_and_the_rest_is_asked_for() {
    let scene = Scene::of(&team(false), &[("app.gz", b"the archive"), ("more.gz", b"more")]);
    let (computer, index) = (&scene.computer, scene.index.as_str());
    let partial = scene.rebuild("dora", "same").ok();
    partial
        .says(&[
            "1 match, 0 differ, 1 missing", "more.gz is MISSING", "you got 1 of 2 files",
            "Not built: more.gz",
        ])
        .says_nothing_of(&["what its source gives"]);
    let pending = computer.run_as("dora", &["pending"]).ok();
    pending.says(&["rebuild the release", "reproduced by 0 of 2 builders, since"]);
    computer.run(&["status", index]).ok().says(&["0 of 2", "2 more of more.gz from dora, emil or frida"]);
    scene.complete();
    let args = ["rebuild", index, "--files", "same", "--source", COMMIT];
    let asked = computer.run_as("emil", &args).failed_with(2);
    asked.says(&["State as emil (", "that you got 1 of 2 files, the same?"]);
    computer.run(&[&args[..], &["--export", "request.json"]].concat()).ok();
    let away = Computer::offline();
    computer.carry(&away, &["request.json"]);
    let detached =
        away.run_as("emil", &["rebuild", "--detached", "request.json", "-o", "signed.json", "--yes"]);
    detached.ok().says(&["app.gz the same", "more.gz is not built"]);
    let stated = computer.run_as("emil", &[&args[..], &["--yes", "--json"]].concat()).ok().json();
    assert_eq!(json!([stated["is_match"], stated["not_built"]]), json!([true, ["more.gz"]]));
    // Another machine built the rest. What was stated stays, and its commit with it.
    computer.write("rest/more.gz", "more");
    let rest = ["rebuild", index, "--files", "rest", "--source"];
    let of_other = "fedcba9876543210fedcba9876543210fedcba98";
    let changed = computer.run_as("dora", &[&rest[..], &[of_other, "--yes"]].concat());
    let stays = "so what you stated of app.gz from commit 0123456789abcdef0123456789abcdef01234567 stays";
    changed.failed(1).says(&[stays, "only add files of the same commit"]);
    let asked = computer.run_as("dora", &[&rest[..], &[COMMIT]].concat()).failed_with(2);
    asked
        .says(&["You stated before what you got of app.gz, and that stays.", "that you got the same files?"]);
    scene.rebuild("dora", "rest").ok().says(&["is what its source gives"]);
    computer.run_as("dora", &["pending"]).ok().says(&["Nothing waits"]);
    computer.run(&["status", index]).ok().says(&["1 of 2", "1 more of more.gz from emil or frida"]);
    // The others got another one, and that stays. Dora alone cannot reproduce it.
    computer.write("rest/more.gz", "something more");
    scene.rebuild("emil", "rest").failed(3).says(&["1 file differs: more.gz"]);
    scene.rebuild("frida", "rest").failed(3);
    let waited = computer.run(&["status", index, "--wait", "--reproduced", "--timeout", "60s"]);
    waited.failed(8).says(&["builders cannot reproduce", "it has 1 of 2; 1 more"]);
}

#[test]
fn a_release_that_builders_cannot_reproduce_is_not_waited_for() {
    let builders = named_group(2, &["dora", "emil", "frida"]);
    let team = SignersFile::new()
        .with("artifact_signers", named_group(2, &["alice", "bob"]))
        .with("rebuilds", json!({"builders": builders, "files": ["*.zip"], "required": true}));
    let scene = Scene::of(&team, &[("app.gz", b"the archive")]);
    let (computer, index) = (&scene.computer, scene.index.as_str());
    scene.rebuild("dora", "same").failed(2).says(&["the release has no such file"]);
    let wait = ["status", index, "--wait", "--timeout", "60s"];
    let no_file = "it has no file that builders make";
    let usable_by_no_one = "no one can use it, and no builder can change that: it has no file";
    computer.run(&wait).failed(8).says(&["builders cannot reproduce", no_file]);
    let asked = computer.run_as("alice", &["sign", index]).failed_with(2);
    asked.says(&["It has no file that builders make, so clients will refuse it."]);
    scene.sign("alice", &[]).ok();
    scene.sign("bob", &[]).ok().says(&[usable_by_no_one]);
    computer.run(&wait).failed(8).says(&[no_file]);
    let page = scene.world.server.get(&format!("/p/{index}")).text();
    let says_so = page.contains("No builder can change that") && page.contains("Do not use it. ");
    assert!(says_so && !page.contains("Do not use it yet"), "{page}");
    let refused = computer.download(&scene.url()).failed(3);
    refused.says(&[&format!("{no_file}, and its project wants that"), "no builder can change that"]);
}

/// Who left cannot state anything. So a complete release that lacks them is lost, and says so everywhere.
#[test]
fn builders_who_left_are_not_waited_for() {
    let scene = Scene::new(true);
    let (computer, index) = (&scene.computer, scene.index.as_str());
    scene.rebuild("emil", "same").ok();
    scene.complete();
    let lacking =
        "reproduced by 1 of 2 (any 2 of 3 builders) from commit 0123456789ab…; 1 more from dora or frida";
    computer.run(&["status", index]).ok().says(&[lacking]);
    let rebuilds = json!({"builders": named_group(1, &["emil"]), "files": ["*.gz"]});
    let next = team(true).with("rebuilds", rebuilds).redated(days_ago(1));
    let [alice, bob] = ["alice", "bob"].map(person);
    scene.world.rotate("acme/app", &next, &[&alice, &bob]);
    let told = computer.run(&["status", index]).ok();
    told.says(&["reproduced by 1 of 2", "; 1 more; the project requires it"])
        .says_nothing_of(&["dora", "frida"]);
    computer
        .run(&["status", index, "--wait", "--timeout", "60s"])
        .failed(8)
        .says(&["builders cannot reproduce"]);
    computer.download(&scene.url()).failed(3).says(&["no builder can change that"]);
    computer.run_as("dora", &["pending"]).ok().says(&["Nothing waits"]);
    let page = scene.world.server.get(&format!("/p/{index}")).text();
    assert!(page.contains("No builder can change that") && !page.contains("Do not use it yet"), "{page}");
}

#[test]
fn a_statement_that_takes_an_earlier_one_back_says_so() {
    let scene = Scene::of(&team(false), &[("app.gz", b"the archive"), ("more.gz", b"more")]);
    let (computer, index) = (&scene.computer, scene.index.as_str());
    scene.rebuild("dora", "same").ok();
    computer.write("rest/more.gz", "more");
    let other = "fedcba9876543210fedcba9876543210fedcba98";
    let rest = ["rebuild", index, "--files", "rest", "--source", other];
    let replaced = format!("what you stated of app.gz from commit {COMMIT}");
    let asked = computer.run_as("dora", &rest).failed_with(2);
    asked.says(&[&format!("This replaces {replaced}."), "State as dora"]);
    computer
        .run_as("dora", &[&rest[..], &["--yes"]].concat())
        .ok()
        .says(&[&format!("It replaces {replaced}")]);
    // Each of them built a part, so no one reproduced the release.
    scene.rebuild("emil", "same").ok();
    computer.run(&["status", index]).ok().says(&["1 of 2", "; 1 more of each file from dora, emil or frida"]);
    scene.rebuild("frida", "same").ok();
    computer.run(&["status", index]).ok().says(&["; 1 more of more.gz from emil or frida"]);
    // A builder who left is told that, and not that all is well.
    let rebuilds = json!({"builders": named_group(2, &["dora", "emil"]), "files": ["*.gz"]});
    let [alice, bob] = ["alice", "bob"].map(person);
    scene.world.rotate(
        "acme/app",
        &team(false).with("rebuilds", rebuilds).redated(days_ago(1)),
        &[&alice, &bob],
    );
    scene.rebuild("frida", "same").failed(1).says(&["is not a builder of"]);
}

#[test]
fn a_file_that_builders_do_not_make_is_not_called_reproduced() {
    let scene = Scene::new(false);
    ["dora", "emil"].iter().for_each(|name| drop(scene.rebuild(name, "same").ok()));
    scene.complete();
    let notes = scene.world.files.url("/acme/app/1.0/notes.txt");
    let said = "rebuilds    notes.txt is not a file that builders make";
    scene.computer.download(&notes).ok().says(&[said]).says_nothing_of(&["reproduced"]);
    scene.computer.download(&scene.url()).ok().says(&["reproduced by 2 of 2"]).says_nothing_of(&[said]);
    scene.computer.run(&["verify", "app.gz", "notes.txt"]).ok().says(&["reproduced by 2 of 2", said]);
}

#[test]
fn registering_again_says_that_it_drops_what_builders_stated() {
    let scene = Scene::new(false);
    scene.rebuild("dora", "same").ok();
    let files: [(&str, &[u8]); 2] = [("app.gz", b"a newer archive"), ("notes.txt", b"read me")];
    let sums = put_release(&scene.world.files, "acme/app/1.0", &files);
    let again = || scene.computer.run_as("alice", &["release", "--checksums", &sums]).failed_with(2);
    again().says(&["drops what 1 builder stated", "Register it again?"]);
    scene.rebuild("emil", "other").failed_with(3);
    scene.sign("alice", &["--despite-rebuilds"]).ok();
    again().says(&[
        "drops these signatures: alice",
        "; and what 2 builders stated (1 builder got something else)",
    ]);
}

#[test]
fn exit_code_3_says_that_a_difference_is_stated() {
    let scene = Scene::new(false);
    let (computer, index) = (&scene.computer, scene.index.as_str());
    // A directory is no build.
    computer.write("odd/app.gz/file", "the archive");
    scene.rebuild("dora", "odd").failed(2).says(&["app.gz is not a plain file"]);
    let export = ["rebuild", index, "--files", "same", "--source", COMMIT, "--export", "request.json"];
    computer.run(&export).ok();
    let request = String::from_utf8(computer.read("request.json")).unwrap();
    computer.write("changed.json", request.replace(COMMIT, "main"));
    let detached = ["rebuild", "--detached", "changed.json", "-o", "signed.json", "--yes"];
    computer.run_as("dora", &detached).failed_with(1).says(&["is not signed"]);
    scene.rebuild("dora", "other").failed(3).says(&["Stated on"]);
}

#[test]
fn a_release_from_before_the_builders_says_so() {
    let (alice, dora) = (person("alice"), person("dora"));
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = add_files(&world, "acme/app/1.0", &[("app.gz", b"the archive")], &[&alice]);
    let rebuilds = json!({"builders": named_group(1, &["dora"])});
    let next = SignersFile::of(1, &[&alice]).with("rebuilds", rebuilds).redated(days_ago(1));
    world.rotate("acme/app", &next, &[&alice, &dora]);
    let computer = Computer::of(&world.server);
    computer.write("same/app.gz", "the archive");
    let args = ["rebuild", &index, "--files", "same", "--source", COMMIT, "--yes"];
    computer.run_as("dora", &args).failed(1).says(&["was completed before its project named builders"]);
}

#[test]
fn a_builder_without_a_network_states_what_was_built_elsewhere() {
    let scene = Scene::new(false);
    let (computer, index) = (&scene.computer, scene.index.as_str());
    for (name, dir, code) in [("dora", "same", 0), ("emil", "other", 3)] {
        let [request, signed] = ["request", "signed"].map(|file| format!("{name}-{file}.json"));
        let export = ["rebuild", index, "--files", dir, "--source", COMMIT, "--export", &request];
        computer.run(&export).ok().says(&["rebuild --detached"]);
        let away = Computer::offline();
        computer.carry(&away, &[&request]);
        let detached = ["rebuild", "--detached", &request, "-o", &signed, "--yes"];
        // Only a builder's key signs it.
        away.run_as("alice", &detached).failed(1).says(&["is not a builder"]);
        let outcome = if code == 0 { "app.gz the same" } else { "app.gz DIFFERS" };
        away.run_as(name, &detached).ok().says(&[COMMIT, outcome]);
        away.carry(computer, &[&signed]);
        let submitted = computer.run_as("alice", &["rebuild", "--submit", &signed]);
        if code == 0 { submitted.ok() } else { submitted.failed_with(code) }.says(&["Stated on"]);
    }
    computer.run(&["status", index]).ok().says(&["DIFFERENT emil", "reproduced by 1 of 2"]);
}

#[test]
fn mistakes_are_named() {
    let scene = Scene::new(false);
    let (computer, index) = (&scene.computer, scene.index.as_str());
    scene.rebuild("alice", "same").failed(1).says(&["is not a builder of", "--key"]);
    let rebuild = |args: &[&str]| computer.run_as("dora", &[&["rebuild", index, "--yes"], args].concat());
    rebuild(&["--files", "same", "--source", "0123456"])
        .failed_with(2)
        .says(&["whole id", "git rev-parse HEAD"]);
    rebuild(&["--files", "same"]).failed(2).says(&["what it was built from", "--source COMMIT"]);
    rebuild(&["--source", COMMIT]).failed(2).says(&["nothing says what was built", "--files DIR"]);
    computer.write("notes/notes.txt", "read me");
    let notes = rebuild(&["--files", "notes", "--source", COMMIT]).failed(2);
    notes.says(&["no file of", "builders make", "app.gz"]);
    let none = World::with_project(&SignersFile::of(1, &[&person("alice")]), &[&person("alice")]);
    let sums = put_release(&none.files, "acme/app/1.0", &[("app.gz", b"the archive")]);
    let other = Computer::of(&none.server);
    other.run_as("alice", &["release", "--checksums", &sums]).ok();
    let dir = computer.path("same");
    let args =
        ["rebuild", &none.index_path("acme/app/1.0"), "--files", text(&dir), "--source", COMMIT, "--yes"];
    other.run_as("alice", &args).failed(1).says(&["names no builders", "--add builder:NAME=KEY"]);
    let wait = ["status", &none.index_path("acme/app/1.0"), "--wait", "--reproduced", "--timeout", "1s"];
    other.run_as("alice", &["sign", wait[1], "--yes"]).ok();
    other.run(&wait).failed(2).says(&["--reproduced"]);
}
