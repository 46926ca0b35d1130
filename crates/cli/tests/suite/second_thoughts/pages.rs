//! What pages, feeds and badges show of it.

use crate::support::html::{key_page, open, short_key};
use crate::support::second_thoughts::{collecting, object, withdraw};
use crate::support::{SignersFile, World, days_ago, person};

const ATTACK: &str = "</q><script>alert(1)</script> \"><img src=x> \u{202e}\u{1b}\r\n end";
const SHOWN: &str = "</q><script>alert(1)</script> \"><img src=x> \\u{202e}\\u{1b}\\u{d}\\u{a} end";

fn badge(world: &World, path: &str) -> String {
    let text = world.server.get(&format!("/badge/{path}.svg")).text();
    text.split_once("<title>").unwrap().1.split_once("</title>").unwrap().0.to_owned()
}

#[test]
fn a_release_page_begins_with_its_objections() {
    let (world, index) = collecting();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let page = format!("/p/{index}");
    open(&world.server, &page).says(&["A signature cannot be taken back"]).lacks(&["object to"]);
    object(&world, &bob, &index, Some("not my build")).ok();
    object(&world, &carol, &index, Some("nor mine")).ok();
    let shown = open(&world.server, &page);
    shown.says(&["2 objections", "2 signers object", "not my build", "nor mine", &short_key(&bob)]);
    object(&world, &carol, &index, None).ok();
    open(&world.server, &page).says(&["1 signer objects", "not my build"]).lacks(&["nor mine"]);
    assert_eq!(badge(&world, &index), "signed: 1 objection, 0 of 2 signatures");
    let project = format!("/p/{}", world.id("acme/app"));
    open(&world.server, &project).says(&["1 objection to", "not my build"]);
    open(&world.server, "/").says(&["1 objection"]);
    open(&world.server, &key_page(&alice)).says(&["1 objection"]);
    world.sign_all(&index, &[&alice, &bob]);
    open(&world.server, &page).says(&["not my build"]);
    assert_eq!(badge(&world, &index), "signed: 1 objection, complete");
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice]).admin(1, &[&carol]);
    world.rotate("acme/app", &next, &[&carol]);
    open(&world.server, &page).says(&["not my build", "who is no longer a signer"]);
    let activity = world.server.get(&format!("/p/{}/svc.activity", world.id("acme/app"))).text();
    assert!(activity.contains("objection taken back"), "{activity}");
}

#[test]
fn the_verify_page_of_a_release_shows_objections() {
    let (world, index) = collecting();
    object(&world, &person("bob"), &index, Some(ATTACK)).ok();
    let page = world.server.get(&format!("/verify?path={index}"));
    assert_eq!(page.status, 200);
    let text = page.text();
    assert!(text.contains("1 signer objects") && text.contains("&lt;script&gt;alert(1)"), "{text}");
    let other = world.server.get("/verify").text();
    assert!(!other.contains("objects"), "{other}");
}

#[test]
fn a_withdrawn_release_has_a_page_until_another_takes_its_place() {
    let (world, index) = collecting();
    let alice = person("alice");
    let reason = serde_json::json!({ "file_path": index, "reason": ATTACK });
    world.post_as(&alice, "/v1/withdraw", &reason).ok();
    let page = open(&world.server, &format!("/p/{index}"));
    page.says(&["withdrawn", SHOWN, "Withdrawn by", &short_key(&alice)]).lacks(&["Download"]);
    assert_eq!(badge(&world, &index), "signed: withdrawn");
    assert_eq!(badge(&world, &world.id("acme/app/v1")), "signed: withdrawn");
    // Its directory leads there.
    let moved = world.server.get(&format!("/p/{}", world.id("acme/app/v1")));
    assert!(moved.header("location").is_some_and(|to| to.ends_with("/svc.index.json")), "{}", moved.status);
    let project = open(&world.server, &format!("/p/{}", world.id("acme/app")));
    project.says(&["no releases here yet"]);
    open(&world.server, "/").says(&["Recent releases"]);
    let activity = world.server.get(&format!("/p/{}/svc.activity", world.id("acme/app"))).text();
    assert!(activity.contains("withdrawn"), "{activity}");
    let feed = world.server.get("/activity.atom").text();
    assert!(feed.contains("withdrawn"), "{feed}");
    world.add_release(&alice, "acme/app/v1");
    open(&world.server, &format!("/p/{index}")).says(&["collecting"]).lacks(&["withdrawn"]);
    withdraw(&world, &alice, &index).ok();
    open(&world.server, &format!("/p/{index}")).says(&["the wrong tag"]);
}

#[test]
fn hostile_objections_are_text() {
    let (world, index) = collecting();
    object(&world, &person("bob"), &index, Some(ATTACK)).ok();
    open(&world.server, &format!("/p/{index}")).says(&[SHOWN]);
    open(&world.server, &format!("/p/{}", world.id("acme/app"))).says(&[SHOWN]);
}
