//! Registrars (D105, D106): over HTTP, with the client, on pages, and for `fsck`.

use serde_json::json;

use super::Scene;
use crate::support::client::{Computer, Ran};
use crate::support::{Person, fake_forge::Asset, fake_forge::Kind, fsck::fsck};

fn ci() -> Person {
    Person::named("ci")
}

#[test]
fn a_registrar_registers_and_is_refused_everything_else() {
    let scene = Scene::start(Kind::GitHub);
    let (world, index) = (scene.world(), scene.index("v1.0"));
    let register = |url: &str| world.post_as(&ci(), "/v1/assets", &json!({ "forge_release_url": url }));
    let url = scene.publish("v1.0");
    assert_eq!(register(&url).ok()["index_file_path"], index);
    assert!(register(&url).error(409).contains("already registered"));
    scene.forge.forge.put_release("acme/app", "v1.0", &[Asset::new("app.tar.gz", "another build")]);
    let message = register(&url).error(403);
    assert!(message.contains("registrar") && message.contains("A signer of the project can"), "{message}");
    world.status(&ci(), &index).error(403);
    assert_eq!(world.pending(&ci()), Vec::<String>::new());
    world.sign(&ci(), &index).error(403);
    scene.sign("v1.0");
    world.revoke(&ci(), &index).error(400);
    let page = scene.forge.forge.url(&Kind::GitHub.page_of("acme/app", "main", "svc.signers.json"));
    let body = json!({ "signers_file_url": page, "public_key": ci().body_key() });
    world.post_as(&ci(), "/v1/update_signers", &body).error(400);
    let listed = world.server.get(&format!("/v1/keys/{}", ci().key().replace('/', "_").replace('+', "-")));
    assert!(!listed.text().contains("\"artifact\""), "{}", listed.text());
    let shown = world.server.get(&format!("/p/{}", scene.forge.forge.project("acme/app"))).text();
    assert!(shown.contains("Registrars") && shown.contains("sign nothing"), "{shown}");
    fsck(&world.server.repository(), &[]).is_clean();
}

#[test]
fn the_client_makes_files_with_registrars() {
    let computer = Computer::offline();
    let [alice, bob, ci, next] = ["alice", "bob", "ci", "next"]
        .map(|name| format!("{name}={}.pub", computer.key_of(name).to_str().expect("a plain name")));
    let new = |more: &[&str]| -> Ran {
        computer.run(
            &[&["signers", "new", "--artifact", &alice, &bob, "--artifact-threshold", "2"], more].concat(),
        )
    };
    new(&["--registrar", &ci, "-o", "s.json"]).ok();
    let text = String::from_utf8(computer.read("s.json")).unwrap();
    assert!(text.contains("\"registrars\"") && text.contains("\"ci\""), "{text}");
    computer
        .run(&["signers", "check", "s.json"])
        .ok()
        .says(&["To register releases, and nothing else", "ci ("]);
    assert_eq!(
        computer.json(&["signers", "check", "s.json"])["registrars"],
        json!([Person::named("ci").key()])
    );
    new(&["--registrar", &alice]).failed(2).says(&["no other role"]);
    let edit = |more: &[&str]| computer.run(&[&["signers", "edit", "s.json"], more].concat());
    edit(&["--add", &format!("registrar:{next}")]).ok().says(&["next (", "becomes a registrar"]);
    edit(&["--remove", "ci"])
        .ok()
        .says(&["ci (", "is no longer a registrar"])
        .says_nothing_of(&["\"registrars\""]);
    let replaced = next.replacen("next=", "ci=", 1);
    edit(&["--replace", &replaced]).ok().says(&["a name now stands for another key", "becomes a registrar"]);
    edit(&["--add", &format!("registrar:{alice}")]).failed(2).says(&["no other role"]);
}
