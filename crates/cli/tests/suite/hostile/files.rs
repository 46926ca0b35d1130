//! A file server that sends something else than what was signed: only the signed bytes get the final name.

use std::{process::Command, time::Duration};

use crate::support::fake_forge::{Asset, FakeForge, ForgeAnswer, ForgeWorld, Kind};
use crate::support::{Answer, FileServer, hostile::Scene, hostile::Victim, hostile::assert_harmless};

const FILE: &str = "/acme/app/2.0/app.tar.gz";

#[test]
fn whatever_the_file_server_sends_only_the_signed_bytes_get_the_name() {
    let scene = Scene::start();

    // Other bytes are refused whatever their number.
    let right = Scene::content("2.0");
    let wrong = right.iter().map(|byte| byte ^ 1).collect::<Vec<_>>();
    let longer = [&right[..], b" "].concat();
    let older = Scene::content("1.0");
    for bytes in [wrong, longer, right[1..].to_vec(), Vec::new(), older] {
        scene.world.files.put(FILE, bytes);
        for victim in [&scene.newcomer, &scene.regular] {
            victim.refuses(&scene.url("2.0"), 3, &["app.tar.gz", "is not the file that was signed"]);
        }
    }

    // A file that does not come or not to its end leaves nothing.
    let right = Scene::content("2.0");
    let loop_back = scene.url("2.0");
    for answer in [
        Answer::Status(404),
        Answer::HungUp,
        Answer::BrokenOff(right.clone()),
        Answer::Redirect(loop_back),
        Answer::Redirect("file:///etc/hostname".to_owned()),
    ] {
        scene.world.files.set(FILE, answer);
        scene.newcomer.refuses(&scene.url("2.0"), 5, &[]);
    }

    // A status line and a location of the file server are shown harmlessly.
    for location in ["http://a\u{202e}b/\u{200b}", "http://127.0.0.1:9/\u{9b}31m", "\u{85}x:y"] {
        scene.world.files.set(FILE, Answer::Redirect(location.to_owned()));
        let ran = scene.newcomer.run(&["download", "--force", &scene.url("2.0")]);
        assert_ne!(ran.code, 0, "{ran:?}");
        assert_harmless(&ran);
        scene.newcomer.assert_untouched();
    }

    // A redirect may lead anywhere but the bytes decide.
    let mirror = FileServer::start();
    scene.world.files.set(FILE, Answer::Redirect(mirror.url("/mirror?token=1")));
    mirror.put("/mirror?token=1", Scene::content("2.0"));
    scene.newcomer.takes(&scene.url("2.0"), &Scene::content("2.0"));
    mirror.put("/mirror?token=1", "evil");
    scene.newcomer.refuses(&scene.url("2.0"), 3, &["is not the file that was signed"]);
}

/// A forge's release, of whose files the index knows the sizes.
fn forge_with_release() -> (ForgeWorld, Victim, String) {
    let world = ForgeWorld::with_project(Kind::Forgejo);
    let assets = [Asset::new("app.tar.gz", "the right bytes")];
    let release = world.forge.put_release("acme/app", "v1", &assets);
    world.register_release(&release).ok();
    let index = world.forge.index_path("acme/app", "v1");
    world.world.sign_all(&index, &[&crate::support::alice()]);
    let victim = Victim::at(&format!("http://{}", world.world.server.address()));
    let url = world.forge.url(&asset(&world.forge));
    (world, victim, url)
}

fn asset(forge: &FakeForge) -> String {
    forge.asset_target("acme/app", "v1", "app.tar.gz")
}

#[test]
fn a_file_of_another_size_or_encoding_than_was_signed_is_refused() {
    let (world, victim, url) = forge_with_release();

    // An endless file is left at the size that was signed.
    victim.takes(&url, b"the right bytes");
    for bytes in ["the right bytes and more", "the right byte", ""] {
        world.forge.set(&asset(&world.forge), ForgeAnswer::bytes(bytes));
        victim.refuses(&url, 3, &[]);
    }
    world.forge.set(&asset(&world.forge), ForgeAnswer::endless());
    victim.refuses(&url, 3, &["it is not the file that was signed"]);

    // Encoded bytes and web pages are not the file.
    let encoded = ForgeAnswer::bytes("the right bytes").with_header("content-encoding", "gzip");
    world.forge.set(&asset(&world.forge), encoded);
    victim.refuses(&url, 5, &["Content-Encoding"]);
    world.forge.set(&asset(&world.forge), ForgeAnswer::html());
    victim.refuses(&url, 3, &[]);
}

/// Sends this signal while the first half of the file is there.
fn interrupt(signal: &str) {
    let (world, victim, url) = forge_with_release();
    let (held, keeper) = ForgeAnswer::bytes("the right bytes").held();
    world.forge.set(&asset(&world.forge), held);
    let mut child = victim.spawn(&["download", "--force", &url]);
    keeper.await_request();
    // Nothing tells when the part is there: it comes a moment after the request, and must be gone in the end.
    let is_on_its_way = || victim.computer.listing().len() == 2;
    for _ in 0..1_000 {
        if is_on_its_way() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(is_on_its_way(), "under another name: {:?}", victim.computer.listing());
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let status = child.wait().unwrap();
    assert!(!status.success(), "{signal}: {status}");
    victim.assert_untouched();
}

#[test]
fn a_download_that_is_interrupted_or_told_to_end_leaves_nothing() {
    interrupt("INT");
    interrupt("TERM");
}
