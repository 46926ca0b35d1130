//! D34: a server that wants something else signed than what the signer means. No signature leaves the computer.

use countersign_api::error_code::ErrorCode;
use serde_json::{Value, json};

use crate::support::hostile::{
    Asked, Forgery, HostileServer, Lie, Listed, Scene, Victim, assert_harmless, index_of, origin,
    signature_set,
};
use crate::support::{FileServer, SignersFile, alice, bob, carol, client::put_release, days_ago, mallory};

/// A scene in which version 3.0 waits for alice.
fn with_waiting_release() -> (Scene, String) {
    let scene = Scene::start();
    let sums = put_release(&scene.world.files, "acme/app/3.0", &[("app.tar.gz", b"three")]);
    scene.world.register_assets(&alice(), &[&sums]).ok();
    let path = scene.index("3.0");
    (scene, path)
}

/// A scene in which a change of signers waits for alice; the path, the proposed file and its metadata.
fn with_waiting_proposal() -> (Scene, String, Vec<u8>, Vec<u8>) {
    let scene = Scene::start();
    let file = SignersFile::of(2, &[&alice(), &bob()]).redated(days_ago(5));
    scene.world.propose(&alice(), "acme/app", &file).ok();
    let path = scene.world.pending_path("acme/app");
    let metadata = scene.world.read(&format!("{path}.metadata.json"));
    (scene, path, file.bytes(), metadata)
}

/// Alice, at this computer, refuses to sign, and sends no signature anywhere.
#[track_caller]
fn refuses(scene: &Scene, victim: &Victim, path: &str, label: &str) {
    let ran = victim.run_as("alice", &["sign", path, "--yes"]);
    assert_eq!(ran.code, 3, "{label}: {ran:?}");
    assert_harmless(&ran);
    ran.failed(3);
    assert_eq!(scene.hostile.posts(), [""; 0], "{label}");
}

#[test]
fn a_known_project_is_not_registered_anew() {
    let (scene, path, file, metadata) = with_waiting_proposal();
    let history = format!("{}/svc.signers.history.json", scene.project());
    scene.hostile.hide_file(&history);
    refuses(&scene, &scene.newcomer, &path, "its metadata names what it replaces");
    let mut first: Value = serde_json::from_slice(&metadata).unwrap();
    first["previous"] = Value::Null;
    let first = first.to_string().into_bytes();
    scene.hostile.show_proposal(&path, &file, &first);
    let ran = scene.regular.run_as("alice", &["sign", &path, "--yes"]).failed(5);
    ran.says(&[&scene.project(), "new project", "nothing is signed"]);
    assert_eq!(scene.hostile.posts(), [""; 0]);
    // A signer who has not met the project is told that it is new, and what they sign fits no other history: the honest
    // server does not take it.
    let ran = scene.newcomer.run_as("alice", &["sign", &path, "--yes"]).failed(1);
    ran.says(&["first registration"]);
    assert_eq!(scene.hostile.posts().len(), 1);
}

#[test]
fn a_made_up_present_does_not_make_a_change_look_small() {
    // Mallory shows a present in which she is an admin already, so that the change seems to be none.
    let (scene, path, _, _) = with_waiting_proposal();
    let present = SignersFile::of(1, &[&mallory()]).bytes();
    let origin = origin("file_server", &scene.signers_url());
    let forged = Forgery::of(&scene.project()).then(&present, &origin, &[&mallory()]);
    let file = SignersFile::of(1, &[&mallory(), &alice()]).redated(days_ago(5)).bytes();
    let metadata = forged.metadata(&file, &origin);
    let history = format!("{}/svc.signers.history.json", scene.project());
    scene.hostile.show_proposal(&path, &file, &metadata);
    refuses(&scene, &scene.newcomer, &path, "it does not follow the true history");
    scene.hostile.show_file(&history, forged.history().to_string());
    refuses(&scene, &scene.regular, &path, "the regular knows the true history");
    // A file that says it is the active one is not asked for at all.
    scene.hostile.be_honest();
    scene.hostile.show_file(&scene.world.active_path("acme/app"), present);
    let ran = scene.newcomer.run_as("alice", &["sign", &path, "--yes"]).ok();
    ran.says(&[&carol().key()]).says_nothing_of(&[&mallory().key()]);
}

#[test]
fn an_older_history_is_not_signed_upon() {
    let (scene, path, _, _) = with_waiting_proposal();
    scene.world.sign_all(&path, &[&alice(), &bob()]);
    scene.regular.takes(&scene.url("2.0"), &Scene::content("2.0"));
    let sums = put_release(&scene.world.files, "acme/app/3.0", &[("app.tar.gz", b"three")]);
    scene.world.register_assets(&alice(), &[&sums]).ok();
    let (index, full) = (scene.index("3.0"), scene.history());
    let history = format!("{}/svc.signers.history.json", scene.project());
    scene.hostile.show_file(&history, json!({ "entries": [full["entries"][0]] }).to_string());
    let ran = scene.regular.run_as("alice", &["sign", &index, "--yes"]);
    ran.failed(5).says(&["behind", "older history"]);
    assert_eq!(scene.hostile.posts(), [""; 0]);
}

#[test]
fn what_should_not_be_signed_is_not_signed_and_goes_nowhere() {
    let (scene, path) = with_waiting_release();

    // Without a yes nothing is signed.
    for args in [&["sign", path.as_str()][..], &["sign", "--all"], &["sign", "--all", "--json"]] {
        assert_eq!(scene.regular.run_as("alice", args).code, 2);
    }
    assert_eq!(scene.hostile.posts(), [""; 0]);

    // Who is not asked does not sign.
    scene.hostile.be_honest();
    let ran = scene.newcomer.run_as("mallory", &["sign", &path, "--yes"]).failed(1);
    ran.says(&[&mallory().key(), &path]);
    assert_eq!(scene.hostile.posts(), [""; 0]);

    // What is not there or withdrawn is not signed.
    scene.hostile.be_honest();
    scene.hostile.show_file(&format!("{path}.revocation.json"), "{}");
    refuses(&scene, &scene.regular, &path, "a revocation that is none");
    scene.hostile.be_honest();
    scene.hostile.hide_file(&path);
    scene.regular.run_as("alice", &["sign", &path, "--yes"]).failed(1).says(&[&path]);
    assert_eq!(scene.hostile.posts(), [""; 0]);

    // An export of lies is not written and a changed one not signed.
    scene.hostile.be_honest();
    let victim = &scene.regular;
    victim.run_as("alice", &["sign", &path, "--export", "request.json"]).ok();
    let text = String::from_utf8(victim.computer.read("request.json")).unwrap();
    let mut request: Value = serde_json::from_str(&text).unwrap();
    let index = request["signing_requests"][0]["files"][&path].as_str().unwrap();
    let evil = index.replace("acme/app/3.0", "acme/app/2.0");
    request["signing_requests"][0]["files"][&path] = json!(evil);
    victim.computer.write("changed.json", request.to_string());
    victim.run_as("alice", &["sign", "--detached", "changed.json", "-o", "s.json", "--yes"]).failed(3);
    scene.hostile.show_file(&path, scene.world.read(&scene.index("1.0")));
    victim.run_as("alice", &["sign", &path, "--export", "again.json"]).failed(3);
    assert_eq!(victim.computer.listing(), ["app.tar.gz", "changed.json", "request.json"]);
    assert_eq!(scene.hostile.posts(), [""; 0]);

    // A signature is not sent on to where a redirect leads.
    scene.hostile.be_honest();
    let elsewhere = FileServer::start();
    for status in [301, 302, 303, 307, 308] {
        let lie = Lie::redirect(status, &elsewhere.url("/v1/signatures"));
        let is_post = |asked: &Asked| asked.method == "POST";
        scene.hostile.lie(move |asked| is_post(asked).then(|| lie.clone()));
        scene.regular.run_as("alice", &["sign", &path, "--yes"]).failed(1).says(&["redirect", "--server"]);
    }
    assert_eq!(elsewhere.asked(), [""; 0]);
}

#[test]
fn signatures_that_others_are_said_to_have_given_are_checked() {
    let (scene, path) = with_waiting_release();

    // A refusal is no success because another signature of the key is shown.
    let set = signature_set(b"something else", &[&alice()]);
    scene.hostile.show_file(&format!("{path}.signatures.json.pending"), set.to_string());
    scene.hostile.answer("/v1/signatures", Lie::refusal(ErrorCode::AlreadySigned, "it is signed"));
    scene.regular.run_as("alice", &["sign", &path, "--yes"]).failed(1).says(&["it is signed"]);

    // Signatures that others are said to have given are checked before they are shown.
    scene.hostile.be_honest();
    let mut set = signature_set(b"something else", &[&bob(), &carol()]);
    set["entries"][mallory().key()] = set["entries"][bob().key()].clone();
    scene.hostile.show_file(&format!("{path}.signatures.json.pending"), set.to_string());
    let ran = scene.regular.run_as("alice", &["sign", &path, "--yes"]).ok();
    ran.says(&["no one yet"]).says_nothing_of(&[&mallory().key()]);
}

#[test]
fn what_is_signed_is_what_was_shown_and_compared() {
    // The index that is to be signed is not the one that everyone else can read.
    let (scene, path) = with_waiting_release();
    let listed = Listed { name: "app.tar.gz", source: &scene.url("3.0"), bytes: b"evil" };
    let evil = index_of(&scene.project(), None, &[listed]);
    scene.hostile.show_file(&path, evil.as_bytes());
    scene.regular.computer.write("dist/app.tar.gz", "three");
    let compared = ["sign", path.as_str(), "--yes", "--files", "dist"];
    scene.regular.run_as("alice", &compared).failed(3).says(&["1 differ", &path]);
    assert_eq!(scene.hostile.posts(), [""; 0]);
    let ran = scene.regular.run_as("alice", &["sign", &path, "--yes"]);
    ran.says(&[&format!("sha256:{}", countersign_core::values::digest::Sha256::of(b"evil"))]);
    let posts = scene.hostile.posts();
    assert!(posts.len() == 1 && posts[0].contains(&alice().sign_bytes(evil.as_bytes())), "{posts:?}");
}

#[test]
fn a_server_that_was_never_honest_gets_no_signature_for_a_project_of_its_own() {
    // Everything is consistent, but alice is not among those whom the made-up project lists.
    let server = HostileServer::alone();
    let files = FileServer::start();
    let project = files.mirror_path("/acme/app");
    let url = files.url("/acme/app/1.0/app.tar.gz");
    let origin = origin("file_server", &files.url("/acme/app/svc.signers.json"));
    let file = SignersFile::of(1, &[&mallory()]).bytes();
    let forged = Forgery::of(&project).then(&file, &origin, &[&mallory()]);
    let index = format!("{project}/1.0/svc.index.json");
    let text = index_of(&project, None, &[Listed { name: "app.tar.gz", source: &url, bytes: b"evil" }]);
    forged.show(&server, &index, &text, &[]);
    server.hide_file(&format!("{index}.signatures.json"));
    Victim::of(&server).run_as("alice", &["sign", &index, "--yes"]).failed(1).says(&[&alice().key()]);
    assert_eq!(server.posts(), [""; 0]);
}
