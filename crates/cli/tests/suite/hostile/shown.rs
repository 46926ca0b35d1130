//! D39: what a server, a forge or a file says is shown so that it can neither rewrite a line nor hide in one.

use serde_json::{Value, json};

use crate::support::hostile::{
    Forgery, HostileServer, Lie, Listed, Scene, Victim, assert_harmless, index_of, origin, revocation_of,
    signature_set,
};
use crate::support::{FileServer, SignersFile, alice, client::Ran, html::short_key, mallory};

/// Clears the screen, begins a line, turns text round, hides a word.
const EVIL: &str =
    "a\u{1b}[2J\u{1b}]0;t\u{7}\rb\nc\u{9b}1md\u{202e}e\u{2066}f\u{200b}g\u{feff}h\u{2028}i\u{7f}";

/// What passes for a path, but changes how a line looks.
const EVIL_PATH: &str = "http/127.0.0.1/9/acme/a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{2028}f";

#[track_caller]
fn assert_shown(ran: &Ran, code: i32) {
    assert_eq!(ran.code, code, "{ran:?}");
    assert_harmless(ran);
}

#[test]
fn what_a_server_says_is_shown_harmlessly() {
    let server = HostileServer::alone();
    let victim = Victim::of(&server);

    // The text of an error is shown harmlessly.
    for status in [400, 401, 403, 409, 500] {
        server.lie(move |_| Some(Lie::error(status, EVIL)));
        let ran = victim.run(&["ping"]).failed(1).says(&["\\u{1b}[2J", "\\u{202e}"]);
        assert_shown(&ran, 1);
        assert_eq!(ran.stderr.lines().count(), 2, "an error and a hint: {ran:?}");
    }
    // However long it is.
    server.lie(|_| Some(Lie::error(400, &EVIL.repeat(500))));
    let ran = victim.run(&["ping"]);
    assert_shown(&ran, 1);
    assert!(ran.stderr.len() < 2_000, "{} bytes are shown", ran.stderr.len());

    // What has no width is escaped whatever its class.
    // A joiner, a filler and variation selectors: of the classes Mn and Lo, and invisible.
    let hidden =
        ['\u{34f}', '\u{115f}', '\u{3164}', '\u{ffa0}', '\u{fe0e}', '\u{e0100}', '\u{17b4}', '\u{180b}'];
    let message: String = hidden.iter().flat_map(|c| ['x', *c]).collect();
    server.lie(move |_| Some(Lie::error(400, &message)));
    let ran = victim.run(&["ping"]).failed(1);
    let raw: Vec<_> = hidden.into_iter().filter(|c| ran.stderr.contains(*c)).collect();
    assert!(raw.is_empty(), "{raw:?} are shown as they came");

    // A refused ping is shown harmlessly.
    let auth = json!({ "status": "failed", "public_key": null, "reason": EVIL });
    server.lie(move |_| Some(Lie::json(&json!({ "message": "pong", "auth": auth }))));
    for more in [&[][..], &["--json"]] {
        assert_shown(&Victim::of(&server).run_as("alice", &[&["ping"][..], more].concat()), 1);
    }

    // The place of a redirect is shown harmlessly.
    server.lie(|_| Some(Lie::redirect(302, "http://a\u{202e}b\u{9b}1m/\u{200b}")));
    assert_shown(&Victim::of(&server).run(&["ping"]), 1);
}

#[test]
fn paths_that_a_server_makes_up_are_shown_harmlessly_and_not_reported_as_done() {
    let server = HostileServer::alone();
    let victim = Victim::of(&server);

    // Paths that a server makes up are shown harmlessly.
    let key = alice().body_key();
    server.answer("/v1/pending_signatures", Lie::json(&json!({ "file_paths": [EVIL_PATH] })));
    let proposed = json!({ "project_id": EVIL_PATH, "required_signers": [key] });
    server.answer("/v1/register_repo", Lie::json(&proposed));
    server.answer("/v1/update_signers", Lie::json(&proposed));
    let index = format!("{EVIL_PATH}/svc.index.json");
    server.answer("/v1/assets", Lie::json(&json!({ "index_file_path": index })));
    let url = "http://127.0.0.1:9/acme/app/svc.signers.json";
    let commands: [&[&str]; 5] = [
        &["pending"],
        &["register", url],
        &["update", url],
        &["release", "--checksums", "http://127.0.0.1:9/acme/app/1.0/SHA256SUMS"],
        &["sign", "--all", "--yes"],
    ];
    let raw: Vec<_> = commands
        .iter()
        .filter(|command| {
            let ran = victim.run_as("alice", command);
            format!("{}{}", ran.stdout, ran.stderr).contains('\u{202e}')
        })
        .collect();
    assert!(raw.is_empty(), "shown as it came: {raw:?}");

    // An answer about something else is not reported as done.
    // A user who is told that another project was registered is also told to sign it.
    let other = "http/127.0.0.1/9/mallory/app";
    let proposed = json!({ "project_id": other, "required_signers": [alice().body_key()] });
    server.answer("/v1/register_repo", Lie::json(&proposed));
    server.answer("/v1/update_signers", Lie::json(&proposed));
    let index = format!("{other}/1.0/svc.index.json");
    server.answer("/v1/assets", Lie::json(&json!({ "index_file_path": index })));
    let url = "http://127.0.0.1:9/acme/app/svc.signers.json";
    let sums = "http://127.0.0.1:9/acme/app/1.0/SHA256SUMS";
    let commands: [&[&str]; 3] = [&["register", url], &["update", url], &["release", "--checksums", sums]];
    let codes: Vec<_> =
        commands.iter().map(|command| (command[0], victim.run_as("alice", command).code)).collect();
    assert_eq!(codes, [("register", 3), ("update", 3), ("release", 3)]);
}

#[test]
fn paths_inside_documents_are_shown_harmlessly() {
    // A project whose identifier is hostile, in an index and in a history.
    let scene = Scene::start();
    let source = scene.url("2.0");
    let text = index_of(EVIL_PATH, None, &[Listed { name: "app.tar.gz", source: &source, bytes: b"x" }]);
    scene.hostile.show_file(&scene.index("2.0"), text);
    scene.refused(3, &[]);
    scene.hostile.be_honest();
    let file = SignersFile::of(1, &[&mallory()]).bytes();
    let forged = Forgery::of(EVIL_PATH).then(&file, &origin("file_server", EVIL), &[&mallory()]);
    scene.hostile.show_history(&scene.project(), &scene.index("2.0"), &forged.history());
    scene.refused(3, &[]);
    assert_shown(&scene.newcomer.run(&["signers", "history", &scene.project()]), 3);
}

#[test]
fn the_origin_of_a_signers_file_is_shown_harmlessly() {
    let server = HostileServer::alone();
    let files = FileServer::start();
    let project = files.mirror_path("/acme/app");
    let file = SignersFile::of(1, &[&mallory()]).bytes();
    let url = files.url("/acme/app/1.0/app.tar.gz");
    let index = format!("{project}/1.0/svc.index.json");
    let text = index_of(&project, None, &[Listed { name: "app.tar.gz", source: &url, bytes: b"x" }]);
    // The last one is more than metadata may have.
    for (evil, code) in [
        (EVIL.to_owned(), 0),
        (files.url(&format!("/acme/{EVIL}/svc.signers.json")), 0),
        ("x".repeat(5_000), 0),
        ("x".repeat(100_000), 3),
    ] {
        let forged = Forgery::of(&project).then(&file, &origin("file_server", &evil), &[&mallory()]);
        forged.show(&server, &index, &text, &[&mallory()]);
        let victim = Victim::of(&server);
        let ran = victim.refuses(&url, 3, &[]);
        assert!(ran.stderr.len() < 5_000, "{} bytes are shown", ran.stderr.len());
        assert_shown(&victim.run(&["signers", "history", &project]), code);
    }
}

/// JSON can say every character without showing it.
#[test]
fn with_json_what_a_server_says_is_escaped_as_well() {
    let scene = Scene::start();
    let project = scene.project();
    let index = scene.index("2.0");
    let document = revocation_of(&scene.world.read(&index), EVIL);
    let revocation = format!("{index}.revocation.json");
    scene.hostile.show_file(&revocation, document.as_bytes());
    let set = signature_set(document.as_bytes(), &[&alice()]).to_string();
    scene.hostile.show_file(&format!("{revocation}.signatures.json"), set);
    let signers = scene.world.read(&scene.world.active_path("acme/app"));
    scene.hostile.show_file(&format!("{revocation}.signers.json"), signers);
    scene.hostile.hide_file(&format!("{revocation}.request.json"));
    scene.regular.refuses(&scene.url("2.0"), 4, &["REVOKED"]);
    let reason = |json: &Value| json["reason"].as_str().map(str::to_owned);
    let status = scene.newcomer.run(&["status", &index, "--json"]);
    assert_eq!(reason(&status.json()).as_deref(), Some(EVIL), "a program reads what was said");
    let file = SignersFile::of(1, &[&mallory()]).bytes();
    let forged = Forgery::of(&project).then(&file, &origin("file_server", EVIL), &[&mallory()]);
    scene.hostile.show_history(&project, &index, &forged.history());
    for ran in [
        status,
        scene.regular.run(&["trust", "list", "--json"]),
        scene.newcomer.run(&["signers", "history", &project, "--json"]),
    ] {
        ran.json();
        assert_shown(&ran, 0);
    }
}

#[test]
fn a_name_stands_beside_its_key_and_cannot_pass_for_more() {
    // A name that reads like a part of our own sentence, or like another key.
    let name = format!("alice ({}), x", &alice().key()[..40]);
    let signer = json!({ "kind": "key", "data": { "pubkey": mallory().key() }, "name": name });
    let file = SignersFile::new().with("artifact_signers", json!([{ "threshold": 1, "signers": [signer] }]));
    let files = FileServer::start();
    let server = HostileServer::alone();
    let project = files.mirror_path("/acme/app");
    let signers_url = files.url("/acme/app/svc.signers.json");
    let url = files.url("/acme/app/1.0/app.tar.gz");
    let index = format!("{project}/1.0/svc.index.json");
    let text = index_of(&project, None, &[Listed { name: "app.tar.gz", source: &url, bytes: b"x" }]);
    let publish = |file: &SignersFile| {
        files.put("/acme/app/svc.signers.json", file.bytes());
        files.put("/acme/app/1.0/app.tar.gz", "x");
        let origin = origin("file_server", &signers_url);
        let forged = Forgery::of(&project).then(&file.bytes(), &origin, &[&mallory()]);
        forged.show(&server, &index, &text, &[&mallory()]);
    };
    publish(&file);
    let ran = Victim::of(&server).takes(&url, b"x");
    let expected = format!("\"{name}\" ({})", short_key(&mallory()));
    assert!(ran.stdout.contains(&expected), "{expected} is missing: {ran:?}");
    // Invisible characters in a name make the file invalid (D8).
    for evil in [EVIL, "a\u{202e}", "\u{200b}", "a\nb"] {
        let signer = json!({ "kind": "key", "data": { "pubkey": mallory().key() }, "name": evil });
        publish(&file.clone().with("artifact_signers", json!([{ "threshold": 1, "signers": [signer] }])));
        Victim::of(&server).refuses(&url, 3, &["signers file is invalid"]);
    }
}
