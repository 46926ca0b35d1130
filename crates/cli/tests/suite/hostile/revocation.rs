//! D20: revocations that are hidden, forged, borrowed or replayed.

use serde_json::Value;

use crate::support::hostile::{
    Forgery, Listed, Scene, Victim, assert_harmless, index_of, origin, revocation_of, signature_set,
};
use crate::support::{Person, SignersFile, alice, mallory};

/// What a server shows for a revocation of version 2.0.
struct Claim {
    document: String,
    signatures: Value,
    /// The signers file that allowed it, as the server says.
    allowed_by: Vec<u8>,
    request: Option<Value>,
}

impl Claim {
    fn of(scene: &Scene, document: String, signers: &[&Person]) -> Self {
        let signatures = signature_set(document.as_bytes(), signers);
        let allowed_by = scene.world.read(&scene.world.active_path("acme/app"));
        Self { document, signatures, allowed_by, request: None }
    }

    fn show(&self, scene: &Scene) {
        let path = format!("{}.revocation.json", scene.index("2.0"));
        scene.hostile.show_file(&path, self.document.as_bytes());
        scene.hostile.show_file(&format!("{path}.signatures.json"), self.signatures.to_string());
        scene.hostile.show_file(&format!("{path}.signers.json"), self.allowed_by.clone());
        match &self.request {
            Some(request) => scene.hostile.show_file(&format!("{path}.request.json"), request.to_string()),
            None => scene.hostile.hide_file(&format!("{path}.request.json")),
        }
    }
}

#[test]
fn a_revocation_stops_the_download_and_is_never_forgotten() {
    let scene = Scene::start();
    scene.world.revoke(&alice(), &scene.index("2.0")).ok();
    for victim in [&scene.newcomer, &scene.regular] {
        victim.refuses(&scene.url("2.0"), 4, &["2.0 of http://", "REVOKED", "key leaked"]);
    }
    // The server takes it back: everything looks as it did before.
    let index = scene.index("2.0");
    let signatures = scene.world.read(&format!("{index}.signatures.json.revoked"));
    scene.hostile.hide_file(&format!("{index}.revocation.json"));
    scene.hostile.hide_file(&format!("{index}.signatures.json.revoked"));
    scene.hostile.show_file(&format!("{index}.signatures.json"), signatures);
    for victim in [&scene.newcomer, &scene.regular] {
        victim.refuses(&scene.url("2.0"), 4, &["REVOKED", "key leaked", "seen before"]);
        // The other release is as good as it was.
        victim.takes(&scene.url("1.0"), &Scene::content("1.0"));
    }
    // A client that has not seen it cannot know: what a server does not show proves nothing. A limit by design.
    Victim::of(&scene.hostile).takes(&scene.url("2.0"), &Scene::content("2.0"));
}

#[test]
fn a_revocation_that_is_half_hidden_stops_the_download() {
    let scene = Scene::start();
    let index = scene.index("2.0");
    scene.world.revoke(&alice(), &index).ok();
    let revocation = format!("{index}.revocation.json");
    scene.hostile.hide_file(&revocation);
    scene.refused(3, &[&index]);
    for part in [".signatures.json", ".signers.json"] {
        scene.hostile.be_honest();
        scene.hostile.hide_file(&format!("{revocation}{part}"));
        scene.refused(3, &[&index]);
    }
}

#[test]
fn a_revocation_by_somebody_else_is_not_taken_for_one() {
    let scene = Scene::start();
    let document = revocation_of(&scene.world.read(&scene.index("2.0")), "key leaked");
    Claim::of(&scene, document, &[&mallory()]).show(&scene);
    scene.refused(3, &["the revocation is not valid", "not enough of the keys that can revoke"]);
}

#[test]
fn a_revocation_of_strangers_is_not_reported_as_the_projects_word() {
    // Both the release and its revocation are Mallory's: nothing shows that she speaks for the project, and her reason
    // may send its reader anywhere.
    let scene = Scene::start();
    let index = scene.index("2.0");
    let listed = Listed { name: "app.tar.gz", source: &scene.url("2.0"), bytes: b"evil" };
    let text = index_of(&scene.project(), None, &[listed]);
    let file = SignersFile::of(1, &[&mallory()]).bytes();
    let origin = origin("file_server", &scene.signers_url());
    let forged = Forgery::of(&scene.project()).then(&file, &origin, &[&mallory()]);
    forged.show(&scene.hostile, &index, &text, &[&mallory()]);
    let document = revocation_of(text.as_bytes(), "get the good one from http://evil.example");
    let allowed_by = file;
    Claim { allowed_by, ..Claim::of(&scene, document, &[&mallory()]) }.show(&scene);
    scene.refused(3, &[&scene.project()]);
}

#[test]
fn a_reason_with_escape_sequences_is_shown_harmlessly() {
    let scene = Scene::start();
    let reason = "\u{1b}[2J\u{1b}]0;x\u{7}\r\nerror: all is well\n\u{9b}1m\u{202e}\u{2066}\u{200b}\u{feff}";
    let document = revocation_of(&scene.world.read(&scene.index("2.0")), reason);
    Claim::of(&scene, document, &[&alice()]).show(&scene);
    for victim in [&scene.newcomer, &scene.regular] {
        let ran = victim.refuses(&scene.url("2.0"), 4, &["REVOKED", "\\u{1b}[2J"]);
        assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1, "{ran:?}");
        assert_harmless(&victim.run(&["trust", "list"]).ok());
    }
}
