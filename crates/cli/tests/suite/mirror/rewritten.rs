//! An origin with another past than the mirror has seen: refused for ever, until the operator decides.

use serde_json::Value;

use crate::support::mirrors::{
    await_readyz, await_same, launch_impatient, prepare_impatient, start_mirror, start_origin, tip_of, url_of,
};
use crate::support::server::{Launch, TestServer};
use crate::support::{Git, Request, SignersFile, World, alice, metrics::Page};

/// An origin with a project, and releases that can be taken back.
fn origin() -> World {
    let world = start_origin();
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    world.add_release(&alice(), "acme/app/1.0");
    world.add_release(&alice(), "acme/app/1.1");
    world.add_release(&alice(), "acme/app/1.2");
    world
}

/// The stopped origin forgets its newest commits; the newest one that is left.
fn go_back(server: &TestServer, commits: usize) -> String {
    let git = Git::at(server.repository());
    let older = git.run(&["rev-parse", &format!("main~{commits}")]);
    git.run(&["update-ref", "refs/heads/main", &older]);
    older
}

fn refusal_of(mirror: &TestServer) -> Option<Value> {
    let text = std::fs::read(mirror.data_dir().join("mirror.refused")).ok()?;
    Some(serde_json::from_slice(&text).expect("JSON"))
}

fn resumes(mirror: &TestServer) -> bool {
    mirror.admin(&["mirror", "resume"]).output().status.success()
}

#[test]
fn a_past_that_was_replaced_is_refused_until_the_operator_decides() {
    let mut world = origin();
    let url = url_of(&world.server);
    let mut mirror = TestServer::prepare_as(|dir| {
        launch_impatient(&url, dir, 10).args(["--metrics-listen", "127.0.0.1:0"])
    });
    mirror.start_again();
    await_same(&mirror, &world.server);
    mirror.stop();
    let tip = tip_of(&mirror).expect("a commit");
    world.server.stop();
    let shared = go_back(&world.server, 2);
    world.server.start_again();
    world.add_release(&alice(), "acme/app/2.0");
    let theirs = tip_of(&world.server).expect("a commit");
    world.add_release(&alice(), "acme/app/2.1");
    let ours = Git::at(mirror.repository()).run(&["rev-parse", "main~1"]);
    mirror.start_again();
    mirror.await_log("rewritten its past", 1);
    let said = await_readyz(&mirror, 503).error(503);
    for words in ["rewritten its past", &shared, &ours, &theirs, "admin mirror resume"] {
        assert!(said.contains(words), "{words} is missing in {said}");
    }
    let refusal = refusal_of(&mirror).expect("it is written down");
    assert_eq!(refusal["ours"], ours.as_str());
    assert_eq!(refusal["theirs"], theirs.as_str());
    assert_eq!(refusal["origin"], url.as_str());
    assert_eq!(Page::read(mirror.metrics_address()).value("countersign_mirror_refused"), 1.0);
    let page = mirror.send(&Request::get("/").with_header("accept", "text/html")).text();
    assert!(page.contains("has stopped following its origin") && page.contains(&theirs), "{page}");
    assert_eq!(tip_of(&mirror), Some(tip.clone()), "nothing is discarded");
    assert!(mirror.get(&format!("/v1/files/{}", world.index_path("acme/app/1.2"))).status == 200);

    // The operator tries again, and the past is still another one.
    assert!(resumes(&mirror));
    mirror.await_log("lets the mirror try again", 1);
    mirror.await_log("the mirror stops following", 2);
    mirror.stop();
    // The operator lets a stopped mirror try again, while the origin has its old past again.
    world.server.stop();
    Git::at(world.server.repository()).run(&["fetch", "-q", mirror.repository().to_str().unwrap(), "main"]);
    Git::at(world.server.repository()).run(&["update-ref", "refs/heads/main", &tip]);
    world.server.start_again();
    assert!(resumes(&mirror));
    assert!(!resumes(&mirror), "there is nothing left to decide");
    mirror.start_again();
    world.add_release(&alice(), "acme/app/1.3");
    await_same(&mirror, &world.server);
    await_readyz(&mirror, 200);
    assert_eq!(refusal_of(&mirror), None);
}

#[test]
fn an_origin_that_was_restored_is_waited_for_until_it_goes_another_way() {
    let mut world = origin();
    let mut mirror = prepare_impatient(&url_of(&world.server), 2);
    mirror.start_again();
    await_same(&mirror, &world.server);
    let (tip, full) = (tip_of(&mirror).expect("a commit"), world.server.repository().with_extension("full"));
    world.server.stop();
    std::fs::create_dir(&full).unwrap();
    Git::at(world.server.repository()).run(&["clone", "-q", "--mirror", ".", full.to_str().unwrap()]);
    go_back(&world.server, 3);
    world.server.start_again();
    mirror.await_log("does not have the newest commits of this mirror", 1);
    let said = await_readyz(&mirror, 503).error(503);
    assert!(said.contains("has not had the newest commits"), "{said}");
    assert_eq!(refusal_of(&mirror), None, "it may only lag");
    assert_eq!(tip_of(&mirror), Some(tip.clone()), "nothing is discarded");

    // It was a node that lagged.
    world.server.stop();
    Git::at(world.server.repository()).run(&["update-ref", "refs/heads/main", &tip]);
    world.server.start_again();
    await_readyz(&mirror, 200);

    // This time it goes on from the backup.
    world.server.stop();
    go_back(&world.server, 1);
    world.server.start_again();
    mirror.await_log("does not have the newest commits of this mirror", 2);
    world.add_release(&alice(), "acme/app/9.0");
    mirror.await_log("rewritten its past", 1);
    assert_eq!(refusal_of(&mirror).expect("a refusal")["ours"], tip.as_str());
    assert_eq!(tip_of(&mirror), Some(tip));
}

#[test]
fn another_repository_is_refused_from_its_first_commit_on() {
    let mut world = origin();
    // Servers that begin in the same second begin with the same commit, unless their operators have other names.
    let other = TestServer::start_with(|launch| {
        let dir = world.server.data_dir();
        let config = dir.with_extension("toml");
        std::fs::write(&config, "[commits]\nname = \"Another\"\n").unwrap();
        launch.args(["--dev", "--config", config.to_str().unwrap()])
    });
    let mut mirror = start_mirror(&url_of(&world.server));
    await_same(&mirror, &world.server);
    mirror.stop();
    let (url, theirs) = (url_of(&other), tip_of(&other).expect("a commit"));
    mirror.change_launch(|dir| Launch::mirror(&url, dir));
    mirror.start_again();
    mirror.await_log("follows another address", 1);
    mirror.await_log("has another repository", 1);
    assert_eq!(refusal_of(&mirror).expect("a refusal")["theirs"], theirs.as_str());
    // A refusal holds for every address.
    let url = url_of(&world.server);
    mirror.stop();
    mirror.change_launch(|dir| Launch::mirror(&url, dir));
    mirror.start_again();
    mirror.await_log("the mirror does not follow", 1);
    world.add_release(&alice(), "acme/app/1.3");
    assert!(resumes(&mirror));
    await_same(&mirror, &world.server);
    world.server.stop();
}

#[test]
fn a_long_history_is_compared_with_few_questions() {
    let mut world = start_origin();
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    for release in 0..40 {
        world.add_release(&alice(), &format!("acme/app/{release}"));
    }
    let mut mirror = start_mirror(&url_of(&world.server));
    await_same(&mirror, &world.server);
    mirror.stop();
    world.server.stop();
    // For each place where the pasts can part, near and far.
    let tip = tip_of(&mirror).expect("a commit");
    for back in [1, 2, 3, 7, 20, 42] {
        Git::at(world.server.repository()).run(&["update-ref", "refs/heads/main", &tip]);
        let shared = go_back(&world.server, back);
        world.server.start_again();
        if back < 42 {
            world.add_release(&alice(), "acme/app/other");
        } else {
            world.register(&alice(), "acme/other", &SignersFile::of(1, &[&alice()])).ok();
        }
        mirror.start_again();
        mirror.await_log("rewritten its past", 1);
        let refusal = refusal_of(&mirror).expect("a refusal");
        assert_eq!(refusal["theirs"], tip_of(&world.server).unwrap().as_str(), "{back}");
        let ours = Git::at(mirror.repository()).run(&["rev-parse", &format!("main~{}", back - 1)]);
        assert_eq!(refusal["ours"], ours.as_str(), "{back}");
        assert!(refusal["reason"].as_str().unwrap().contains(&shared), "{refusal}");
        mirror.stop();
        world.server.stop();
        assert!(resumes(&mirror));
    }
}
