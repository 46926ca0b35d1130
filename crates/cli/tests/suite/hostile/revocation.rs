//! D20: revocations that are hidden, forged, borrowed or replayed.

use serde_json::{Value, json};

use crate::support::{
    FileServer, Person, Request, SignersFile, days_ago,
    hostile::{
        Forgery, HostileServer, Listed, Scene, Victim, alice, assert_harmless, bob, carol, index_of, mallory,
        origin, revocation_of, signature_set,
    },
    world::revoke_body,
};

/// What a server shows for a revocation of version 2.0.
struct Claim {
    document: String,
    signatures: Value,
    /// The signers file that allowed it, as the server says.
    allowed_by: Vec<u8>,
    request: Option<Value>,
}

impl Claim {
    /// By these people, as it should be.
    fn by(scene: &Scene, signers: &[&Person]) -> Self {
        let document = revocation_of(&scene.world.read(&scene.index("2.0")), "key leaked");
        Self::of(scene, document, signers)
    }

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

/// Two of the three sign releases; bob and carol together revoke.
fn with_revocation_keys() -> Scene {
    let file = SignersFile::of(2, &[&alice(), &bob(), &carol()]).revocation(2, &[&bob(), &carol()]);
    Scene::with(&file)
}

#[test]
fn a_revocation_stops_the_download_and_is_never_forgotten() {
    let scene = Scene::start();
    scene.world.revoke(&alice(), &scene.index("2.0")).ok();
    for victim in [&scene.newcomer, &scene.regular] {
        victim.refuses(&scene.url("2.0"), 4, &[&scene.index("2.0"), "REVOKED", "key leaked"]);
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
    let scene = with_revocation_keys();
    for signers in
        [&[][..], &[&mallory()], &[&alice()], &[&bob()], &[&bob(), &mallory()], &[&alice(), &bob()]]
    {
        Claim::by(&scene, signers).show(&scene);
        scene.refused(3, &["the revocation is not valid", "not enough of the keys that can revoke"]);
    }
    Claim::by(&scene, &[&bob(), &carol()]).show(&scene);
    scene.newcomer.refuses(&scene.url("2.0"), 4, &["REVOKED"]);
}

#[test]
fn a_revocation_that_was_changed_or_is_of_another_file_is_not_taken_for_one() {
    let scene = Scene::start();
    let other = revocation_of(&scene.world.read(&scene.index("1.0")), "key leaked");
    Claim::of(&scene, other, &[&alice()]).show(&scene);
    scene.refused(3, &["another file"]);
    let mut changed = Claim::by(&scene, &[&alice()]);
    changed.document = changed.document.replace("key leaked", "all is well");
    changed.show(&scene);
    scene.refused(3, &["does not verify"]);
    let mut elsewhere = Claim::by(&scene, &[&mallory()]);
    elsewhere.allowed_by = SignersFile::of(1, &[&mallory()]).bytes();
    elsewhere.show(&scene);
    scene.refused(3, &["not in the project's history"]);
}

#[test]
fn a_revocation_document_that_is_none_is_refused() {
    let scene = Scene::start();
    let time = days_ago(1).to_string();
    let long = "x".repeat(1_001);
    for document in [
        json!({}),
        json!(null),
        json!({ "reason": "", "timestamp": time }),
        json!({ "reason": long, "timestamp": time }),
        json!({ "reason": 7, "timestamp": time }),
        json!({ "reason": "x", "timestamp": "soon" }),
        json!({ "reason": "x", "timestamp": u64::MAX }),
        json!({ "reason": "x", "timestamp": i64::MAX }),
        json!({ "reason": "x", "timestamp": time, "more": 1 }),
        json!({ "reason": "x", "timestamp": time, "subject_digest": "sha512:00" }),
    ] {
        Claim::of(&scene, document.to_string(), &[&alice()]).show(&scene);
        scene.refused(3, &["the revocation is not valid"]);
    }
}

/// A signed request in the form in which the server keeps it.
fn recorded(person: &Person, body: &Value) -> Value {
    let request = person.sign(Request::post("/v1/revoke", body));
    json!({
        "timestamp": request.header("X-svc-timestamp"),
        "nonce": request.header("X-svc-nonce"),
        "payload": body.to_string(),
        "public_key": person.key(),
        "signature": request.header("X-svc-sig"),
    })
}

#[test]
fn a_document_that_names_no_file_needs_the_request_that_does() {
    let scene = Scene::start();
    let document = json!({ "reason": "key leaked", "timestamp": days_ago(1).to_string() }).to_string();
    let own = revoke_body(&alice(), &scene.index("2.0"), &document);
    let for_other_file = revoke_body(&alice(), &scene.index("1.0"), &document);
    let by_mallory = revoke_body(&mallory(), &scene.index("2.0"), &document);
    let other_reason = revoke_body(&alice(), &scene.index("2.0"), &document.replace("key", "cat"));
    let mut tampered = recorded(&alice(), &for_other_file);
    tampered["payload"] = json!(own.to_string());
    let mut nonce = recorded(&alice(), &own);
    nonce["nonce"] = json!("00000000-0000-4000-8000-000000000000");
    for request in [
        None,
        Some(recorded(&alice(), &for_other_file)),
        Some(recorded(&mallory(), &by_mallory)),
        Some(recorded(&mallory(), &own)),
        Some(recorded(&bob(), &own)),
        Some(recorded(&alice(), &other_reason)),
        Some(tampered),
        Some(nonce),
    ] {
        let claim = Claim { request, ..Claim::of(&scene, document.clone(), &[&alice()]) };
        claim.show(&scene);
        scene.refused(3, &["the revocation is not valid"]);
    }
    let request = Some(recorded(&alice(), &own));
    Claim { request, ..Claim::of(&scene, document, &[&alice()]) }.show(&scene);
    scene.newcomer.refuses(&scene.url("2.0"), 4, &["REVOKED"]);
}

#[test]
fn who_was_replaced_before_the_release_cannot_revoke_it() {
    // Carol was an admin of the first file alone; the release is signed under the second.
    let (server, files) = (HostileServer::alone(), FileServer::start());
    let project = files.mirror_path("/acme/app");
    let first = SignersFile::of(1, &[&alice()]).admin(1, &[&carol()]).bytes();
    let second = SignersFile::of(1, &[&alice()]).admin(1, &[&bob()]).redated(days_ago(8)).bytes();
    let source = files.url("/acme/app/svc.signers.json");
    files.put("/acme/app/svc.signers.json", second.clone());
    let origin = origin("file_server", &source);
    let history = Forgery::of(&project).then(&first, &origin, &[&alice(), &carol()]).then(
        &second,
        &origin,
        &[&carol(), &bob()],
    );
    let url = files.url("/acme/app/1.0/app.tar.gz");
    files.put("/acme/app/1.0/app.tar.gz", "app");
    let index = format!("{project}/1.0/svc.index.json");
    let text = index_of(&project, None, &[Listed { name: "app.tar.gz", source: &url, bytes: b"app" }]);
    history.show(&server, &index, &text, &[&alice()]);
    Victim::of(&server).takes(&url, b"app");
    let document = revocation_of(text.as_bytes(), "out of spite");
    let revocation = format!("{index}.revocation.json");
    server.show_file(&revocation, document.as_bytes());
    let set = signature_set(document.as_bytes(), &[&carol()]).to_string();
    server.show_file(&format!("{revocation}.signatures.json"), set);
    for allowed_by in [first, second] {
        server.show_file(&format!("{revocation}.signers.json"), allowed_by);
        let victim = Victim::of(&server);
        victim.refuses(&url, 3, &["the revocation is not valid"]);
        assert!(victim.memory().is_empty());
    }
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
