//! `countersign monitor`: a maintainer learns of every change of their projects.

use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use crate::support::client::{Ran, add_files, text};
use crate::support::log_scene::{LogScene, THREE, content, forked, policy};
use crate::support::{Person, SignersFile, alice, days_ago, hostile::HostileServer, hostile::Lie};

fn once(scene: &LogScene, more: &[&str]) -> Ran {
    let (url, key) = (scene.hostile.url(), scene.user.computer.key_of("alice").with_extension("pub"));
    let args = ["monitor", &url, "--once", "--key", text(&key)];
    scene.user.run(&[&args[..], more].concat())
}

fn changed(ran: Ran) -> Ran {
    assert_eq!(ran.code, 9, "{ran:?}");
    ran
}

/// From now on the server shows its newest checkpoint as one that these witnesses have cosigned.
fn confirm(scene: &LogScene, witnesses: &[(usize, i64)]) {
    let note = scene.cosigned("2.0", witnesses).proof.note.to_string();
    scene.hostile.answer("/log/cosigned", Lie::bytes(note));
}

#[test]
fn new_signers_releases_and_revocations_are_told_once() {
    let scene = LogScene::start(Some(policy()));
    confirm(&scene, THREE);
    once(&scene, &[]).ok().says(&["Following the log sign.example.org/log", &scene.world.id("acme/app")]);
    once(&scene, &[]).ok();
    add_files(&scene.world, "acme/app/3.0", &[("app.tar.gz", &content("3.0"))], &[&alice()]);
    scene.world.revoke(&alice(), &scene.index("1.0")).ok();
    // The new signers do not list the key any more, and of another project nothing is told.
    let mallory = Person::named("mallory");
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&mallory]);
    scene.world.rotate("acme/app", &next, &[&alice(), &mallory]);
    scene.world.activate("other/app", &SignersFile::of(1, &[&mallory]), &[&mallory]);
    confirm(&scene, THREE);
    let hook = HostileServer::alone();
    hook.answer("/hook", Lie::json(&json!({})));
    let told =
        changed(once(&scene, &["--webhook", &format!("{}/hook", hook.url()), "--exec", "cat >> told.txt"]));
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{told:?}");
    assert!(lines[0].contains(&format!("release completed: {}", scene.index("3.0"))), "{told:?}");
    assert!(lines[1].contains(&format!("release revoked: {}", scene.index("1.0"))), "{told:?}");
    assert!(lines[2].contains("new signers of") && lines[2].contains("WITHOUT your key"), "{told:?}");
    assert_eq!(String::from_utf8(scene.user.computer.read("told.txt")).unwrap(), told.stdout);
    let kinds: Vec<Value> = hook
        .posts()
        .iter()
        .map(|body| serde_json::from_str::<Value>(body).unwrap()["kind"].clone())
        .collect();
    assert_eq!(kinds, ["complete", "revoked", "signers"]);
    once(&scene, &[]).ok();
}

#[test]
fn a_short_name_is_enough_and_one_that_no_project_has_is_refused() {
    let scene = LogScene::start(None);
    let url = scene.hostile.url();
    let id = scene.world.id("acme/app");
    for name in ["nonsense", "acme/ap", "https/github.com/443/acme/app"] {
        scene.user.run(&["monitor", &url, name, "--once"]).failed(2).says(&["no project", name]);
    }
    let watch = |name: &str| scene.user.run(&["monitor", &url, name, "--once"]);
    watch("acme/app").ok().says(&["Following", &id]);
    add_files(&scene.world, "acme/app/3.0", &[("app.tar.gz", &content("3.0"))], &[&alice()]);
    scene.staple("2.0");
    changed(watch("acme/app")).says(&["release completed"]);
    // By whatever name, it is the same watch.
    watch(&id).ok();

    // What could not be reported is reported again.
    once(&scene, &["--state", "state.json"]).ok();
    scene.world.revoke(&alice(), &scene.index("1.0")).ok();
    scene.staple("2.0");
    let failed = once(&scene, &["--state", "state.json", "--exec", "exit 3"]);
    assert_eq!(failed.code, 5, "{failed:?}");
    failed.says(&["could not be reported"]);
    changed(once(&scene, &["--state", "state.json"])).says(&["release revoked"]);

    for url in [
        "hooks.example", "file:///hook", "https://alice:secret@hooks.example/",
        "https://hooks.example/#secret",
    ] {
        let refused = once(&scene, &["--webhook", url]).failed(2).says(&["--webhook", "https://HOST/PATH"]);
        assert!(!refused.stderr.contains("secret"), "{refused:?}");
    }
}

/// A server that shows this computer a log of its own has no witnesses for it.
#[test]
fn a_log_that_too_few_witnesses_confirm_is_told() {
    let scene = LogScene::start(Some(policy()));
    let staple = scene.staple("2.0");
    let says = |parts: &[&str]| changed(once(&scene, &["--exec", "cat >> told.txt"])).says(parts);
    says(&["witnesses of", &scene.world.id("acme/app"), "do not confirm this log: too few"]);
    confirm(&scene, &[(1, 60), (2, 50)]);
    says(&["do not confirm this log: too few"]);
    // Three have, but the third of them longer ago than a day.
    confirm(&scene, &[(1, 90_000), (2, 50), (3, 40)]);
    says(&["do not confirm this log: not since"]);
    assert_eq!(String::from_utf8(scene.user.computer.read("told.txt")).unwrap().lines().count(), 3);
    confirm(&scene, &[(1, 86_000), (2, 50), (3, 40)]);
    once(&scene, &[]).ok();
    // They have seen another log than this computer.
    for size in [staple.proof.index, staple.proof.index + 1, staple.proof.index + 2] {
        let fork = forked(&staple, size, THREE);
        scene.hostile.answer("/log/cosigned", Lie::bytes(fork.proof.note.to_string()));
        once(&scene, &[]).failed(3);
    }
    // Signers who demand no witnesses are told, and then none are missed.
    scene.hostile.be_honest();
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice()]);
    scene.world.rotate("acme/app", &next, &[&alice()]);
    scene.staple("2.0");
    changed(once(&scene, &[])).says(&["new signers of"]);
    once(&scene, &[]).ok();
}

#[test]
fn signers_that_wait_and_vetoes_are_told() {
    let scene = LogScene::start(Some(policy()));
    let (mia, max, mallory) = (Person::named("mia"), Person::named("max"), Person::named("mallory"));
    let guarded = SignersFile::dated(days_ago(5))
        .artifact(1, &[&alice()])
        .master(2, &[&mia, &max])
        .with("rotation_delay_hours", json!(48));
    scene.world.rotate("acme/app", &guarded, &[&alice(), &mia, &max]);
    scene.staple("2.0");
    once(&scene, &[]).ok();
    scene.world.propose(&alice(), "acme/app", &SignersFile::dated(days_ago(4)).artifact(1, &[&mallory])).ok();
    let pending = scene.world.pending_path("acme/app");
    for person in [&mallory, &alice()] {
        scene.world.sign(person, &pending).ok();
    }
    let digest = |path: &str| Sha512::of(&scene.world.read(path)).to_prefixed();
    let document = json!({
        "veto": "not \u{1b}[2J ours", "project_id": scene.world.id("acme/app"), "timestamp": "2026-02-01T12:00:00Z",
        "signers_file_digest": digest(&pending), "previous": digest(&scene.world.active_path("acme/app")),
    })
    .to_string();
    for master in [&mia, &max] {
        let signature = master.sign_bytes(document.as_bytes());
        let body = json!({ "file_path": pending, "veto_json": document, "signature": signature, "public_key": master.body_key() });
        assert!(scene.world.post_as(master, "/v1/veto", &body).status < 300);
    }
    scene.staple("2.0");
    let told = changed(once(&scene, &[]));
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{told:?}");
    assert!(lines[0].contains("NEW SIGNERS") && lines[0].contains("unless the masters veto"), "{told:?}");
    assert!(lines[1].contains("a veto of the new signers") && !told.stdout.contains('\u{1b}'), "{told:?}");
    assert!(lines[2].contains("were vetoed"), "{told:?}");
}

#[test]
fn a_log_that_contradicts_itself_or_its_journal_is_an_alarm() {
    let scene = LogScene::start(None);
    let staple = scene.staple("2.0");
    once(&scene, &[]).ok();
    // Another root for the same size.
    let fork = forked(&staple, staple.proof.index + 1, &[]);
    scene.hostile.answer("/log/checkpoint", Lie::bytes(fork.proof.note.to_string()));
    let alarmed = once(&scene, &["--exec", "cat >> alarm.txt"]).failed(3);
    alarmed.says(&["CONTRADICTS ITSELF", "two roots", "log-fork-"]);
    let mail = String::from_utf8(scene.user.computer.read("alarm.txt")).unwrap();
    assert!(mail.starts_with("ALARM: THE LOG sign.example.org/log CONTRADICTS ITSELF"), "{mail}");
    // A larger one with another past.
    let fork = forked(&staple, staple.proof.index + 2, &[]);
    scene.hostile.answer("/log/checkpoint", Lie::bytes(fork.proof.note.to_string()));
    once(&scene, &[]).failed(3);
    // A checkpoint of someone else's log.
    let other = staple.proof.note.to_string().replace("sign.example.org", "evil.example.org");
    scene.hostile.answer("/log/checkpoint", Lie::bytes(other));
    once(&scene, &[]).failed(3).says(&["not one of the log"]);
    // The log is right, and the journal leaves a commit out.
    scene.hostile.be_honest();
    let skipped = scene.world.git().run(&["rev-parse", "main"]);
    scene.world.revoke(&alice(), &scene.index("1.0")).ok();
    let after = scene.world.git().run(&["rev-parse", "main"]);
    add_files(&scene.world, "acme/app/3.0", &[("app.tar.gz", b"3")], &[&alice()]);
    scene.staple("2.0");
    let newest = scene.world.git().run(&["rev-parse", "main"]);
    let journal = scene.world.server.get(&format!("/v1/journal?after={after}"));
    scene.hostile.answer(
        &format!("/v1/journal?after={skipped}"),
        Lie::journal(journal.body).with_header("x-svc-commit", &newest),
    );
    once(&scene, &[]).failed(3).says(&["other commits than its log"]);
    scene.hostile.be_honest();
    changed(once(&scene, &[])).says(&["release revoked", "release completed"]);
}
