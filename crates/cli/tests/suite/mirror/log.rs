//! The log of the origin, copied by mirrors (D118): they prove the newest state when the origin is away.

use countersign_core::{proof::bundle::Staple, values::digest::Sha256};
use serde_json::json;

use crate::support::client::{Computer, add_files};
use crate::support::mirrors::{prepare_impatient, start_mirror, url_of};
use crate::support::witnesses::{log_key_of, start_witnessed};
use crate::support::{Request, SignersFile, alice, log_scene::LogScene, waiting::wait_until};

#[test]
fn a_mirror_proves_the_newest_state_when_the_origin_is_away() {
    let (mut world, witness) = start_witnessed();
    let file = SignersFile::of(1, &[&alice()]).with(
        "transparency",
        json!({
            "log": log_key_of(&world.server).to_string(),
            "witnesses": [{ "threshold": 1, "keys": [witness.key.to_string()] }],
            "max_age_seconds": 3_600,
        }),
    );
    world.activate("acme/app", &file, &[&alice()]);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice()]);
    let mut mirror = start_mirror(&url_of(&world.server));
    let second = start_mirror(&url_of(&mirror));
    let proof = format!("/v1/proof/{index}");
    for server in [&mirror, &second] {
        wait_until("the mirror has no proof", || server.get(&proof).status == 200);
        assert_eq!(log_key_of(server), log_key_of(&world.server));
        assert!(
            server.get("/log/cosigned").text().contains("\u{2014} one.example "),
            "as the origin shows it"
        );
    }
    let url = world.files.url("/acme/app/1.0/app");
    let fresh = ["fresh as of ", "by 1 of 1 witness; the release completed last; not revoked"];
    // One computer that goes from one to the other: the log continues.
    let computer = Computer::of(&world.server);
    computer.download(&url).ok().says(&fresh);
    world.server.kill9();
    computer.run(&["download", &url, "--force", "--server", &url_of(&mirror)]).ok().says(&fresh);
    Computer::of(&second).download(&url).ok().says(&fresh);
    // What it has copied is on its disk.
    mirror.kill9();
    mirror.start_again();
    wait_until("the mirror has no proof after a restart", || mirror.get(&proof).status == 200);
    Computer::of(&mirror).download(&url).ok().says(&fresh);
}

#[test]
fn a_mirror_of_a_server_without_a_log_has_none() {
    let world = crate::support::World::start();
    let mirror = start_mirror(&url_of(&world.server));
    for target in ["/log/checkpoint", "/log/cosigned", "/log/key"] {
        mirror.get(target).refused(404, "keeps no log");
    }
    assert!(!mirror.data_dir().join("log-copy").exists());
}

#[test]
fn a_mirror_never_serves_a_checkpoint_that_its_commits_do_not_give() {
    let scene = LogScene::start(None);
    let mut mirror = prepare_impatient(&scene.hostile.url(), 5);
    mirror.start_again();
    let size = scene.staple("2.0").proof.index + 1;
    let good = scene.world.server.get("/log/cosigned").body;
    let tile = format!("/log/tile/entries/000.p/{size}");
    let entries = scene.world.server.get(&tile).body;
    let is_good = || {
        let shown = ["/log/cosigned", "/log/checkpoint"].map(|target| mirror.get(target).body == good);
        shown == [true; 2] && mirror.get(&tile).body == entries
    };
    wait_until("the mirror does not show the log", is_good);
    // The key of the log signs another state for the same commits.
    let mut leaves = scene.leaves();
    leaves.last_mut().unwrap().state = Sha256::of(b"nothing is revoked");
    scene.show_log(leaves, &[]);
    mirror.await_log("its log lies", 1);
    assert!(is_good(), "{}", mirror.get("/log/checkpoint").text());
    let proof = mirror.get(&format!("/v1/proof/{}", scene.index("2.0")));
    assert_eq!(Staple::parse(&proof.body).unwrap().proof.note.to_string().as_bytes(), good);
    let page = mirror.send(&Request::get("/log").with_header("accept", "text/html")).text();
    assert!(page.contains("its log lies"), "{page}");
    // When the origin has its log back, the mirror goes on with it.
    scene.hostile.be_honest();
    scene.world.add_signed_release("acme/app/3.0", &[&alice()]);
    let better = || scene.world.server.get("/log/cosigned").body;
    wait_until("the mirror does not go on", || {
        better() != good && mirror.get("/log/cosigned").body == better()
    });
}
