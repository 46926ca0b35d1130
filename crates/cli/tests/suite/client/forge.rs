//! Projects on code forges: registered, released, signed and downloaded by the forge's own URLs.

use countersign_core::values::digest::{Sha256, Sha512};
use serde_json::json;

use crate::support::fake_forge::{Asset, FakeForge, ForgeAnswer, ForgeWorld, KINDS, Kind};
use crate::support::{SignersFile, alice, client::Computer};

fn assets() -> [Asset; 2] {
    [Asset::new("app.tar.gz", "the archive"), Asset::new("empty", "")]
}

/// Registers a repository with the client, by the page of its signers file.
#[track_caller]
fn register(forge: &ForgeWorld, computer: &Computer, repository: &str) {
    forge.forge.put_signers(repository, "main", "svc.signers.json", &SignersFile::of(1, &[&alice()]));
    let page = forge.forge.url(&forge.forge.kind.page_of(repository, "main", "svc.signers.json"));
    computer.run_as("alice", &["register", &page]).ok().says(&[&forge.forge.project(repository)]);
    computer.sign_all(&["alice"]);
}

/// Publishes a release, registers it and signs it, all with the client.
#[track_caller]
fn release(forge: &ForgeWorld, computer: &Computer, repository: &str, tag: &str) {
    let url = forge.forge.put_release(repository, tag, &assets());
    let registered = computer.json_as("alice", &["release", &url]);
    assert_eq!(registered["index_file_path"], json!(forge.forge.index_path(repository, tag)));
    let shown = computer.run_as("alice", &["sign", "--all", "--yes"]).ok();
    let digest = Sha256::of(b"the archive").to_string();
    shown.says(&[tag, &forge.forge.project(repository), "app.tar.gz", &digest, "11 bytes", "complete"]);
}

/// How the kind writes the URL of a file, with the tag in this spelling.
fn download_url(forge: &FakeForge, repository: &str, tag: &str, name: &str) -> String {
    forge.url(&forge.asset_target(repository, tag, name))
}

#[test]
fn a_release_is_registered_signed_and_downloaded_on_every_kind_of_forge() {
    for kind in KINDS {
        let forge = ForgeWorld::start(kind);
        let signer = Computer::of(&forge.world.server);
        register(&forge, &signer, "acme/app");
        release(&forge, &signer, "acme/app", "v1.0");
        // The client knows where the page of another one is.
        forge.forge.put_release("acme/app", "rc/1.1", &assets());
        let registered = signer.json_as("alice", &["release", "acme/app", "rc/1.1"]);
        assert_eq!(registered["index_file_path"], json!(forge.forge.index_path("acme/app", "rc/1.1")));

        let user = Computer::of(&forge.world.server);
        let branch = kind.branch_target("acme/app", "main", "svc.signers.json");
        let before = forge.forge.count(&branch);
        let url = download_url(&forge.forge, "acme/app", "v1.0", "app.tar.gz");
        user.download(&url).ok().says(&["v1.0", "app.tar.gz", "first time"]);
        assert_eq!(user.read("app.tar.gz"), b"the archive");
        assert_eq!(forge.forge.count(&branch), before + 1, "the root is read from the branch: {kind:?}");
        let report = user.json(&["download", &download_url(&forge.forge, "acme/app", "v1.0", "empty")]);
        assert_eq!((&report["size"], &report["first_use"]), (&json!(0), &json!(false)), "{kind:?}");
        assert_eq!(forge.forge.count(&branch), before + 1, "and only once: {kind:?}");
        assert_eq!(report["release_url"], json!(forge.forge.release_url("acme/app", "v1.0")));
        user.run(&["verify", "app.tar.gz", "--url", &url]).ok();
        // The release has its page, its files and its tag as names.
        let page = forge.forge.release_url("acme/app", "v1.0");
        for name in [&[page.as_str()][..], &[url.as_str()], &["acme/app", "v1.0"]] {
            let shown = user.json(&[&["status"], name].concat());
            assert_eq!(shown["file_path"], forge.forge.index_path("acme/app", "v1.0"), "{kind:?} {name:?}");
        }
        user.run(&["bundle", &url, "-o", "b.json"]).ok().says(&["v1.0"]);
        user.run(&["verify", "app.tar.gz", "--bundle", "b.json"]).ok();
    }
}

#[test]
fn tags_with_a_slash_or_an_at_sign_are_found_however_they_are_written() {
    for kind in KINDS {
        let forge = ForgeWorld::start(kind);
        let computer = Computer::of(&forge.world.server);
        let repository = if kind == Kind::GitLab { "acme/tools/deep/app" } else { "acme/app" };
        register(&forge, &computer, repository);
        for (tag, spellings) in [
            // One tag inside another.
            ("tools", &["tools"][..]),
            ("tools/v1.0", &["tools/v1.0", "tools%2Fv1.0", "tools%2fv1.0"]),
            ("@acme/app@1.0.0", &["@acme/app@1.0.0", "%40acme%2Fapp%401.0.0", "@acme%2Fapp@1.0.0"]),
            ("v2+build", &["v2+build", "v2%2Bbuild"]),
        ] {
            release(&forge, &computer, repository, tag);
            for (number, spelling) in spellings.iter().enumerate() {
                let url = download_url(&forge.forge, repository, spelling, "app.tar.gz");
                let name = format!("{}-{number}", tag.replace('/', "-"));
                computer.run(&["download", &url, "-o", &name]).ok().says(&[tag]);
                assert_eq!(computer.read(&name), b"the archive", "{kind:?} {spelling}");
            }
        }
    }
}

#[test]
fn a_project_that_was_registered_by_the_raw_form_has_the_same_root() {
    let forge = ForgeWorld::start(Kind::GitHub);
    let computer = Computer::of(&forge.world.server);
    let path = "svc.signers/first.json";
    forge.forge.put_signers("acme/app", "stable", path, &SignersFile::of(1, &[&alice()]));
    let page = format!("/acme/app/raw/stable/{path}");
    computer.run_as("alice", &["register", &forge.forge.url(&page)]).ok();
    computer.sign_all(&["alice"]);
    release(&forge, &computer, "acme/app", "v1");
    computer.download(&download_url(&forge.forge, "acme/app", "v1", "app.tar.gz")).ok();
    // Without the signers file it is not proven, unless the digest is given.
    let target = Kind::GitHub.branch_target("acme/app", "stable", path);
    let url = download_url(&forge.forge, "acme/app", "v1", "app.tar.gz");
    let digest = Sha512::of(&SignersFile::of(1, &[&alice()]).bytes()).to_prefixed();
    for answer in [ForgeAnswer::status(404, "gone"), ForgeAnswer::html(), ForgeAnswer::broken_off("{")] {
        forge.forge.set(&target, answer);
        let user = Computer::of(&forge.world.server);
        user.download(&url).failed(3).says(&["--signers-digest"]);
        assert_eq!(user.listing(), [""; 0]);
        user.run(&["download", &url, "--signers-digest", &digest]).ok();
    }
}

#[test]
fn a_file_that_was_added_to_a_signed_release_is_refused() {
    let forge = ForgeWorld::start(Kind::Forgejo);
    let computer = Computer::of(&forge.world.server);
    register(&forge, &computer, "acme/app");
    release(&forge, &computer, "acme/app", "v1");
    let target = forge.forge.asset_target("acme/app", "v1", "late");
    forge.forge.set(&target, ForgeAnswer::bytes("added later"));
    computer.download(&forge.forge.url(&target)).failed(3).says(&["not signed", "does not list"]);
    // Nor one that was exchanged.
    let target = forge.forge.asset_target("acme/app", "v1", "app.tar.gz");
    forge.forge.set(&target, ForgeAnswer::bytes("the Archive"));
    computer.download(&forge.forge.url(&target)).failed(3).says(&["not the file that was signed"]);
    for answer in
        [ForgeAnswer::bytes("the archive and more"), ForgeAnswer::bytes("the"), ForgeAnswer::endless()]
    {
        forge.forge.set(&target, answer);
        computer.download(&forge.forge.url(&target)).failed(3);
    }
    assert_eq!(computer.listing(), [""; 0]);

    // An asset behind a redirect is followed to its store.
    let store = FakeForge::start_on("127.0.0.2", Kind::GitHub);
    store.set("/store/object?token=1", ForgeAnswer::bytes("the archive"));
    forge.forge.set(&target, ForgeAnswer::redirect(&store.url("/store/object?token=1")));
    computer.download(&forge.forge.url(&target)).ok();
    assert_eq!(computer.read("app.tar.gz"), b"the archive");
}
