//! Proofs survive the outage of the origin: the client takes them from any server that the signers file names (D268),
//! and believes none of them.

use countersign_core::proof::bundle::Staple;
use countersign_testing::assert_mentions;
use serde_json::json;

use crate::support::client::{Computer, NO_SERVER, Ran, add_files};
use crate::support::hostile::{HostileServer, Lie};
use crate::support::mirrors::{start_mirror, url_of};
use crate::support::witnesses::{TestWitness, log_key_of, start_witnessed};
use crate::support::{SignersFile, TestServer, World, alice, waiting::wait_until};

const FRESH: &[&str] = &["fresh as of ", "by 1 of 1 witness; the release completed last; not revoked"];

struct Scene {
    world: World,
    _witness: TestWitness,
    mirror: TestServer,
    /// Stands before the mirror.
    hostile: HostileServer,
    index: String,
}

impl Scene {
    /// A project whose signers file names these of the three servers, in this order.
    fn start(name: impl FnOnce([String; 3]) -> Vec<String>) -> Self {
        let (world, witness) = start_witnessed();
        let mirror = start_mirror(&url_of(&world.server));
        let hostile = HostileServer::before(&mirror);
        let servers = name([url_of(&world.server), url_of(&mirror), hostile.url()]);
        let policy = json!({
            "log": log_key_of(&world.server).to_string(),
            "witnesses": [{ "threshold": 1, "keys": [witness.key.to_string()] }],
            "max_age_seconds": 3_600,
        });
        let file =
            SignersFile::of(1, &[&alice()]).with("transparency", policy).with("servers", json!(servers));
        world.activate("acme/app", &file, &[&alice()]);
        let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice()]);
        let proof = format!("/v1/proof/{index}");
        wait_until("the mirror has no proof", || mirror.get(&proof).status == 200);
        Self { world, _witness: witness, mirror, hostile, index }
    }

    fn url(&self) -> String {
        self.world.files.url("/acme/app/1.0/app")
    }

    /// The server before the mirror shows a proof that does not hold.
    fn lie(&self) {
        let mut staple = self.staple();
        staple.statuses.release.number += 1;
        self.hostile.answer(&format!("/v1/proof/{}", self.index), Lie::bytes(staple.write()));
    }

    fn staple(&self) -> Staple {
        Staple::parse(&self.mirror.get(&format!("/v1/proof/{}", self.index)).body).unwrap()
    }
}

fn run(computer: &Computer, args: &[&str]) -> Ran {
    Ran::of(&mut computer.newcomer(args))
}

#[test]
fn while_the_origin_is_away_download_and_staple_take_the_proof_from_a_mirror_that_the_project_names() {
    let mut scene = Scene::start(|[origin, mirror, _]| vec![origin, mirror]);
    let (computer, url, mirror) = (Computer::offline(), scene.url(), url_of(&scene.mirror));
    let origin = url_of(&scene.world.server);
    run(&computer, &["download", &url]).ok().says(FRESH).says_nothing_of(&[&mirror]);
    run(&computer, &["bundle", &url, "-o", "b.json"]).ok();
    scene.world.server.kill9();
    let from = format!("This is from {mirror}");
    run(&computer, &["download", &url, "--force"]).ok().says(FRESH).says(&["does not serve", &from]);
    run(&computer, &["staple", "acme/app", "1.0", "-o", "s.json"]).ok().says(FRESH).says(&[&from]);
    run(&computer, &["staple", "b.json"]).ok().says(FRESH).says(&[&from]);
    let staple = Staple::parse(&computer.read("s.json")).unwrap();
    assert_eq!(staple.proof.note.text(), scene.staple().proof.note.text());
    let json = run(&computer, &["download", &url, "--force", "--json"]).ok().json();
    assert_eq!(json["servers_passed_over"][0]["server"], origin);
    assert_eq!(json["servers_passed_over"][0]["kind"], "unreachable");
    // A newcomer learns of the mirror from the project's own file.
    run(&Computer::offline(), &["download", &url]).ok().says(FRESH);
    // The server that the user names stays the only one.
    let only = run(&computer, &["download", &url, "--force", "--server", NO_SERVER]);
    only.failed(5).says(&[NO_SERVER]).says_nothing_of(&[&mirror]);
    // Without any of them nothing is downloaded.
    scene.mirror.kill9();
    run(&computer, &["download", &url, "--force"]).failed(5).says(&[&mirror, &origin]);
}

#[test]
fn a_server_that_lies_about_the_log_is_named_and_refused_and_the_next_one_is_asked() {
    let mut scene = Scene::start(|[origin, mirror, hostile]| vec![origin, hostile, mirror]);
    let (computer, url) = (Computer::offline(), scene.url());
    let (mirror, hostile) = (url_of(&scene.mirror), scene.hostile.url());
    run(&computer, &["download", &url]).ok().says(FRESH);
    scene.lie();
    scene.world.server.kill9();
    let refused = format!("what {hostile} shows is refused");
    let from = format!("This is from {mirror}");
    run(&computer, &["download", &url, "--force"]).ok().says(FRESH).says(&[&refused, "status map", &from]);
    run(&computer, &["staple", "acme/app", "1.0", "-o", "s.json"]).ok().says(&[&refused, &from]);
    let json = run(&computer, &["download", &url, "--force", "--json"]).ok().json();
    assert_eq!(json["servers_passed_over"][1]["kind"], "verification");
    assert_mentions(json["servers_passed_over"][1]["server"].as_str().unwrap(), &[&hostile]);
    // On a first use as well, and it is not the one that is remembered.
    let newcomer = Computer::offline();
    run(&newcomer, &["download", &url]).ok().says(FRESH).says(&[&refused]);
    run(&newcomer, &["download", &url, "--force"]).ok().says_nothing_of(&[&hostile]);
}

#[test]
fn a_lie_is_the_reason_if_no_honest_server_is_left() {
    let mut scene = Scene::start(|[origin, _, hostile]| vec![origin, hostile]);
    let (computer, url) = (Computer::offline(), scene.url());
    run(&computer, &["download", &url]).ok().says(FRESH);
    std::fs::remove_file(computer.path("app")).unwrap();
    scene.lie();
    let (origin, hostile) = (url_of(&scene.world.server), scene.hostile.url());
    scene.world.server.kill9();
    let ran = run(&computer, &["download", &url]).failed(3);
    ran.says(&["does not serve", &origin, &hostile, "status map", "do not use the file"]);
    assert!(!computer.path("app").exists());
}
