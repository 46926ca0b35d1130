//! A server that lies about objections and withdrawals, or wants something else signed.

use serde_json::{Value, json};

use crate::support::hostile::{HostileServer, Victim, assert_harmless};
use crate::support::objections::{collecting, object, objection, project};
use crate::support::{Person, World, client::Computer, client::add_files, html::open, people::now, person};

/// An objection as the server keeps it.
fn objections_file(world: &World, index: &str, key: &Person, signer: &Person, of: &str) -> Vec<u8> {
    let document = objection(world, of, Some("made up"));
    assert!(world.exists(index));
    let entry = json!({
        "document": document,
        "signature": signer.sign_bytes(document.as_bytes()),
        "collected_at": now().to_whole_seconds().to_string(),
    });
    let mut entries = json!({});
    entries[key.key()] = entry;
    json!({ "version": 1, "objections": entries }).to_string().into_bytes()
}

#[test]
fn made_up_objections_are_not_shown() {
    let (world, index) = collecting();
    let other = world.add_release(&person("alice"), "acme/app/v2");
    let server = HostileServer::before(&world.server);
    let victim = Victim::of(&server);
    let (bob, mallory) = (person("bob"), person("mallory"));
    let path = format!("{index}.objections.json");
    for (signer, of) in [(&mallory, &index), (&bob, &other)] {
        server.show_file(&path, objections_file(&world, &index, &bob, signer, of));
        victim.run(&["status", &index]).ok().says_nothing_of(&["made up", "OBJECTION"]);
    }
    // What a stranger says is named as such.
    server.show_file(&path, objections_file(&world, &index, &mallory, &mallory, &index));
    victim.run(&["status", &index]).ok().says(&["made up", "no longer a signer"]);
}

#[test]
fn nonsense_in_the_place_of_objections_ends_no_download() {
    let world = project();
    let index =
        add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&person("alice"), &person("bob")]);
    let server = HostileServer::before(&world.server);
    for nonsense in ["{}", "", "\u{feff}", r#"{"version":1,"objections":{}}"#] {
        server.show_file(&format!("{index}.objections.json"), nonsense);
        let victim = Victim::of(&server);
        victim.run(&["download", &world.files.url("/acme/app/1.0/app")]).ok();
    }
}

#[test]
fn a_withdrawal_that_no_one_signed_is_none() {
    let (world, index) = collecting();
    let server = HostileServer::before(&world.server);
    let victim = Victim::of(&server);
    let record = |signer: &Person, file: &str| -> Value {
        let payload = json!({ "file_path": file, "reason": "made up" }).to_string();
        let timestamp = now().to_header();
        let nonce = "8c2b5d4e-6f70-4a81-92a3-b4c5d6e7f809";
        let signed = format!("{timestamp}##{nonce}##{payload}");
        json!({
            "timestamp": timestamp,
            "nonce": nonce,
            "payload": payload,
            "public_key": person("alice").key(),
            "signature": signer.sign_bytes(signed.as_bytes()),
        })
    };
    let shown = |record: Value| {
        server.show_file(&format!("{index}.withdrawn.json"), record.to_string());
        server.hide_file(&index);
        victim.run(&["status", &index])
    };
    shown(record(&person("mallory"), &index)).failed(1).says_nothing_of(&["made up"]);
    let other = index.replace("/v1/", "/v2/");
    shown(record(&person("alice"), &other)).failed(1).says_nothing_of(&["made up"]);
    shown(record(&person("alice"), &index)).ok().says(&["withdrawn", "made up"]);
}

#[test]
fn what_is_not_this_release_is_not_signed() {
    let (world, index) = collecting();
    let server = HostileServer::before(&world.server);
    let victim = Victim::of(&server);
    let other = world.add_release(&person("alice"), "acme/app/v2");
    let objection = objection(&world, &index, Some("no")).into_bytes();
    for bytes in [objection, world.read(&other), b"{}".to_vec()] {
        server.show_file(&index, bytes);
        for args in [
            &["sign", &index, "--yes"][..],
            &["object", &index, "--reason", "no", "--yes"],
            &["withdraw", &index, "--reason", "no", "--yes"],
        ] {
            victim.run_as("alice", args).failed(3);
        }
    }
    assert_eq!(server.posts(), [""; 0]);
}

/// Clears the screen, turns text round, begins a line.
const EVIL: &str = "a\u{1b}[2J\rb\nc\u{202e}d\u{200b}\u{2066}e \"quoted\" <b>&amp;</b>";

const ATTACK: &str = "</q><script>alert(1)</script> \"><img src=x> \u{202e}\u{1b}\r\n end";
const SHOWN: &str = "</q><script>alert(1)</script> \"><img src=x> \\u{202e}\\u{1b}\\u{d}\\u{a} end";

#[test]
fn hostile_texts_are_shown_harmlessly() {
    let (world, index) = collecting();
    let computer = Computer::of(&world.server);
    object(&world, &person("bob"), &index, Some(EVIL)).ok();
    for (args, words) in [
        (&["status", index.as_str()][..], &["\\u{1b}[2J", "\\u{202e}"][..]),
        (&["pending"], &["\\u{1b}[2J", "\\u{202e}"]),
        (&["sign", &index, "--yes"], &["\\u{1b}[2J"]),
        (&["withdraw", &index, "--reason", EVIL, "--yes"], &[]),
        (&["status", &index], &["withdrawn", "\\u{1b}[2J"]),
        (&["withdraw", &index, "--reason", "x"], &[]),
    ] {
        assert_harmless(&computer.run_as("alice", args).ok().says(words));
    }

    // And as text on pages.
    let index = world.add_release(&person("alice"), "acme/app/pages");
    object(&world, &person("bob"), &index, Some(ATTACK)).ok();
    let verify = world.server.get(&format!("/verify?path={index}")).text();
    assert!(verify.contains("1 signer objects") && verify.contains("&lt;script&gt;alert(1)"), "{verify}");
    for page in [format!("/p/{index}"), format!("/p/{}", world.id("acme/app"))] {
        open(&world.server, &page).says(&[SHOWN]);
    }
    let reason = json!({ "file_path": index, "reason": ATTACK });
    world.post_as(&person("alice"), "/v1/withdraw", &reason).ok();
    open(&world.server, &format!("/p/{index}")).says(&["withdrawn", SHOWN]);
}
