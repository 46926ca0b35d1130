//! D39: whatever strangers choose stays text on a page. `html::visit` reads each page strictly: an element, an
//! attribute or an address that is none of ours fails the test.

use serde_json::{Value, json};

use super::named;
use crate::support::html::{Html, key_page, open, percent_encode, short_key, visit};
use crate::support::{Person, SignersFile, World, days_ago};

const ATTACKS: [&str; 6] = [
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "'><svg onload=alert(1)>",
    "</title></h1><base href=//evil.example>", "&lt;b&gt; &#x3c;i&#x3e;", "javascript:alert(1)",
];

fn file_of(people: &[Value]) -> SignersFile {
    SignersFile::new().with("artifact_signers", json!([{ "threshold": 1, "signers": people }]))
}

#[test]
fn names_of_signers_are_text_and_never_without_their_keys() {
    let people: Vec<Person> = (0..ATTACKS.len()).map(|i| Person::named(&format!("person {i}"))).collect();
    let entries: Vec<Value> = people.iter().zip(ATTACKS).map(|(person, name)| named(person, name)).collect();
    let everyone: Vec<&Person> = people.iter().collect();
    let world = World::start();
    let file = file_of(&entries);
    world.register(&people[0], "acme/app", &file).ok();
    let pending = world.pending_path("acme/app");
    let see = |html: &Html| {
        for (person, name) in people.iter().zip(ATTACKS) {
            let name = name.replace('"', "\\\"");
            html.says(&[&name, &short_key(person)]).links_to(&key_page(person));
        }
    };
    see(&open(&world.server, &format!("/p/{pending}")));
    see(&open(&world.server, &format!("/p/{}", world.id("acme/app"))));
    world.sign_all(&pending, &everyone);
    see(&open(&world.server, &format!("/p/{}", world.id("acme/app"))));
    let index = world.add_release(&people[0], "acme/app/1.0");
    see(&open(&world.server, &format!("/p/{index}")));
    see(&open(&world.server, &format!("/p/{}/svc.signers.history.json", world.id("acme/app"))));
    // A change shows names of both files.
    let next = file_of(&entries[..1]).redated(days_ago(5));
    world.propose(&people[0], "acme/app", &next).ok();
    see(&open(&world.server, &format!("/p/{pending}")));
}

#[test]
fn a_name_cannot_bring_a_key_of_its_own() {
    let alice = Person::named("alice");
    let lie = format!("bob {}", Person::named("bob").key());
    let world = World::with_project(&file_of(&[named(&alice, &lie)]), &[&alice]);
    let page = open(&world.server, &format!("/p/{}", world.id("acme/app")));
    page.says(&[&format!("\"{lie}\" {}", short_key(&alice))]);
}

#[test]
fn reasons_files_and_directories_are_text_and_their_addresses_lead_there() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    for (i, attack) in ATTACKS.iter().enumerate() {
        let index = world.add_signed_release(&format!("acme/app/{i}"), &[&alice]);
        let reason = format!("{attack} \u{202e}\u{200b}\r\n end");
        world.revoke_with(&alice, &index, &world.revocation_of(&index, &reason)).ok();
        let page = open(&world.server, &format!("/p/{index}"));
        page.says(&[&format!(
            "Revoked: do not use this release {attack} \\u{{202e}}\\u{{200b}}\\u{{d}}\\u{{a}} end"
        )]);
    }

    let names = [
        "<script>alert(1)</script>.gz", "\"><img src=x onerror=alert(1)>", "a'b $(reboot) `x`", "ü&amp;.txt",
    ];
    let lines: String = names.iter().map(|name| format!("{}  {name}\n", "a".repeat(64))).collect();
    let url = world.publish_checksums("acme/app/files", &lines);
    world.register_assets(&alice, &[&url]).ok();
    let index = world.index_path("acme/app/files");
    world.sign(&alice, &index).ok();
    open(&world.server, &format!("/p/{index}")).says(&names);

    let names = ["a\"b'c <img src=x onerror=alert(1)>", "1.0?x=1#y", "100%25", "$(reboot);'x'", "ünï çode"];
    for name in names {
        let encoded = percent_encode(name, "/");
        world.files.put(&format!("/acme/app/{encoded}/SHA256SUMS"), format!("{}  x.gz\n", "a".repeat(64)));
        let url = world.files.url(&format!("/acme/app/{encoded}/SHA256SUMS"));
        let answer = world.register_assets(&alice, &[&url]).ok();
        let index = answer["index_file_path"].as_str().unwrap().to_owned();
        assert_eq!(index, world.index_path(&format!("acme/app/{name}")));
        let target = format!("/p/{}", percent_encode(&index, "/"));
        let page = open(&world.server, &target);
        let quoted = format!("'{}'", index.replace('\'', "'\\''"));
        page.says(&[name, &format!("countersign sign {quoted} --server http://localhost")]);
        open(&world.server, &format!("/p/{}", world.id("acme/app"))).says(&[name]).links_to(&target);
    }
}

#[test]
fn what_was_searched_for_and_a_path_that_is_not_there_are_text() {
    let world = World::start();
    for attack in ATTACKS.iter().chain(&["\u{202e}evil"]) {
        let page = visit(&world.server, &format!("/projects?q={}", percent_encode(attack, "/")));
        assert_eq!(page.status, 200);
        page.says(&[&attack.replace('\u{202e}', "\\u{202e}")]);
        assert!(page.text.contains("name=\"q\" value=\""));
    }
    for attack in ATTACKS.iter().chain(&["a\u{202e}b", "..\u{200b}"]) {
        let page = visit(&world.server, &format!("/p/{}", percent_encode(attack, "/")));
        assert!(matches!(page.status, 400 | 404), "{attack}");
        visit(&world.server, &format!("/{}", percent_encode(attack, "/")));
    }
    for path in ["a/../b", ".git/x", "a//b", "%00", "%FF", "a%5Cb"] {
        assert_eq!(visit(&world.server, &format!("/p/{path}")).status, 400, "{path}");
    }
}
