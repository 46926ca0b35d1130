//! Names for releases: the same forms in every command.

use crate::support::client::{Computer, Ran, add_files};
use crate::support::fake_forge::{Asset, ForgeWorld, KINDS};
use crate::support::{SignersFile, World, alice};

fn released() -> (World, Computer) {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice()]);
    let computer = Computer::of(&world.server);
    (world, computer)
}

#[test]
fn a_release_on_a_file_server_has_many_names() {
    let (world, computer) = released();
    let index = world.index_path("acme/app/1.0");
    let directory = index.strip_suffix("/svc.index.json").unwrap().to_owned();
    let page = format!("http://{}/p/{directory}", world.server.address());
    let names: Vec<Vec<String>> = vec![
        vec![index.clone()],
        vec![directory.clone()],
        vec![world.files.url("/acme/app/1.0/app")],
        vec![world.files.url("/acme/app/1.0")],
        vec![page.clone()],
        vec![format!("{page}/svc.index.json")],
        vec![world.id("acme/app"), "1.0".to_owned()],
        vec!["acme/app".to_owned(), "1.0".to_owned()],
        vec![world.files.url("/acme/app"), "1.0".to_owned()],
    ];
    for name in &names {
        let name: Vec<&str> = name.iter().map(String::as_str).collect();
        let shown = computer.json(&[&["status"][..], &name].concat());
        assert_eq!(shown["file_path"], index, "{name:?}");
        computer.run(&[&["chain"][..], &name].concat()).ok().says(&["Signers of"]);
        computer.run(&[&["bundle", "-o", "bundle.json", "--yes"][..], &name].concat()).ok();
    }
    // A page names the server as well.
    Ran::of(&mut computer.newcomer(&["status", &page])).ok().says(&["complete"]);
}

#[test]
fn a_release_on_a_forge_has_its_page_and_its_tag() {
    for kind in KINDS {
        let forge = ForgeWorld::start(kind);
        let signer = Computer::of(&forge.world.server);
        forge.forge.put_signers("acme/app", "main", "svc.signers.json", &SignersFile::of(1, &[&alice()]));
        let page = forge.forge.url(&kind.page_of("acme/app", "main", "svc.signers.json"));
        signer.run_as("alice", &["register", &page]).ok();
        signer.run_as("alice", &["sign", "acme/app", "--yes"]).ok().says(&["complete"]);
        let release = forge.forge.put_release("acme/app", "v1.0", &[Asset::new("app", "the archive")]);
        signer.run_as("alice", &["release", &release]).ok();
        signer.run_as("alice", &["sign", "acme/app", "v1.0", "--yes"]).ok().says(&["complete"]);
        let index = forge.forge.index_path("acme/app", "v1.0");
        let asset = forge.forge.url(&forge.forge.asset_target("acme/app", "v1.0", "app"));
        for name in [&[release.as_str()][..], &[asset.as_str()], &["acme/app", "v1.0"]] {
            let shown = signer.json(&[&["status"][..], name].concat());
            assert_eq!(shown["file_path"], index, "{kind:?} {name:?}");
        }
    }
}

#[test]
fn several_names_can_follow_each_other() {
    let (world, computer) = released();
    for release in ["2.0", "3.0"] {
        world.add_release(&alice(), &format!("acme/app/{release}"));
    }
    let index = world.index_path("acme/app/3.0");
    computer.run_as("alice", &["sign", "acme/app", "2.0", &index, "--yes"]).ok();
    for release in ["2.0", "3.0"] {
        computer.run(&["status", "acme/app", release]).ok().says(&["complete"]);
    }
}

#[test]
fn a_name_that_fits_nothing_or_too_much_is_told_with_the_forms() {
    let (world, computer) = released();
    computer.run(&["status", "acme/other", "1.0"]).failed(1).says(&["acme/other", "PROJECT TAG"]);
    computer.run(&["status", "acme/app", "9.9"]).failed(1).says(&["9.9"]);
    computer.run(&["status", "app"]).failed(2).says(&["`app` names no project", "PROJECT TAG"]);
    world.activate("mirror/acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    computer.run(&["status", "acme/app", "1.0"]).failed(2).says(&[
        "more than one",
        &world.id("acme/app"),
        &world.id("mirror/acme/app"),
    ]);
    computer.run(&["status", &world.id("acme")]).failed(2).says(&["neither a release nor"]);
}

#[test]
fn a_project_of_which_nothing_is_pending_is_told_as_such() {
    let (_world, computer) = released();
    for command in ["status", "sign"] {
        let ran = computer.run_as("alice", &[command, "acme/app"]).failed(2);
        ran.says(&["signers are in force", "PROJECT TAG", "countersign chain"]);
    }
}

#[test]
fn a_server_does_not_choose_the_project_of_a_downloader() {
    let (world, computer) = released();
    let asked = computer.run(&["download", "acme/app", "1.0"]);
    asked.failed(2).says(&["terminal", &world.id("acme/app")]);
    computer.run(&["download", "acme/app", "1.0", "--yes"]).ok().says(&["Verified"]);
    // From now on, this computer knows it.
    computer.run(&["download", "acme/app", "1.0", "--force"]).ok();
}

#[test]
fn filters_and_settings_take_the_same_names() {
    let (world, computer) = released();
    let index = world.add_release(&alice(), "acme/app/2.0");
    let (id, url) = (world.id("acme/app"), world.files.url("/acme/app"));
    for name in ["acme/app", &id, &world.id("acme"), &url] {
        let shown = computer.json_as("alice", &["pending", "--project", name]);
        assert_eq!(shown["file_paths"], serde_json::json!([index]), "{name}");
    }
    computer.run_as("alice", &["sign", &index, "--yes"]).ok();
    computer.run_as("alice", &["pending", "--project", "acme/app"]).ok().says(&["Nothing waits"]);
    for name in ["acme/other", &world.id("acme/other")] {
        computer.run_as("alice", &["pending", "--project", name]).failed(2).says(&["acme/other"]);
    }
    computer.run(&["config", "set", "key", "bob", "--project", "acme/app"]).ok().says(&[&id]);
    computer.run(&["config", "unset", "key", "--project", "acme/app"]).ok().says(&[&id]);
    computer.run(&["config", "set", "key", "bob", "--project", "acme/other"]).failed(1).says(&["acme/other"]);
    computer.download(&world.files.url("/acme/app/1.0/app")).ok();
    computer.run(&["trust", "remove", "acme/other", "--yes"]).failed(1).says(&["acme/other"]);
    computer.run(&["trust", "remove", "acme/app", "--yes"]).ok().says(&[&id]);
}
