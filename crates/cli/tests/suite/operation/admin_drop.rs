//! `countersign admin drop PROJECT` (D15, D59): on a running or stopped server, and for pending things only.

use serde_json::json;

use crate::support::{Launch, Person, SignersFile, World, days_ago};

fn people() -> (Person, Person) {
    (Person::named("alice"), Person::named("bob"))
}

fn drop_project(world: &World, project: &str) -> Launch {
    Launch::admin_drop(&world.id(project), &world.server.data_dir())
}

#[track_caller]
fn assert_dropped(launch: &Launch) {
    let output = launch.output();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_pending_registration_is_removed_and_may_be_made_anew() {
    let (alice, bob) = people();
    let mut world = World::start();
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice, &bob])).ok();
    world.sign(&alice, &world.pending_path("acme/app")).ok();
    world.server.stop();
    let commits = world.git().commit_count();
    assert_dropped(&drop_project(&world, "acme/app"));
    assert_eq!(world.git().commit_count(), commits + 1);
    assert!(world.git().last_message().contains(&world.id("acme/app")), "{}", world.git().last_message());
    assert_eq!(world.git().paths(), ["svc.repository.json"]);
    world.git().assert_sound();

    world.server.start_again();
    assert_eq!(world.pending(&bob), [""; 0]);
    world.activate("acme/app", &SignersFile::of(1, &[&bob]), &[&bob]);
}

#[test]
fn a_pending_proposal_is_removed_and_the_active_file_stays() {
    let (alice, bob) = people();
    let file = SignersFile::of(1, &[&alice]);
    let mut world = World::with_project(&file, &[&alice]);
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice, &bob]);
    world.propose(&alice, "acme/app", &next).ok();
    world.sign(&alice, &world.pending_path("acme/app")).ok();
    world.server.stop();
    assert_dropped(&drop_project(&world, "acme/app"));
    world.server.start_again();
    assert!(!world.exists(&world.pending_path("acme/app")));
    assert_eq!(world.read(&world.active_path("acme/app")), file.bytes());
    // The signature on the dropped proposal is gone with it.
    world.propose(&alice, "acme/app", &next).ok();
    assert_eq!(world.sign(&bob, &world.pending_path("acme/app")).ok(), json!({ "is_complete": false }));
}

#[test]
fn a_running_server_drops_it_itself() {
    let (alice, bob) = people();
    let world = World::start();
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice])).ok();
    let commits = world.git().commit_count();
    assert_dropped(&drop_project(&world, "acme/app"));
    assert_eq!(world.git().commit_count(), commits + 1);
    assert!(!world.exists(&world.pending_path("acme/app")));
    let said = drop_project(&world, "acme/app").refusal();
    assert!(said.contains(&format!("{} has no pending", world.id("acme/app"))), "{said}");
    assert_eq!(world.git().commit_count(), commits + 1);
    world.activate("acme/app", &SignersFile::of(1, &[&bob]), &[&bob]);
}

#[test]
fn what_is_not_pending_cannot_be_dropped() {
    let (alice, _) = people();
    let file = SignersFile::of(1, &[&alice]);
    let mut world = World::with_project(&file, &[&alice]);
    world.server.stop();
    let commits = world.git().commit_count();
    for project in ["acme/app", "acme", "none"] {
        let said = drop_project(&world, project).refusal();
        assert!(said.contains(&world.id(project)), "it names the project: {said}");
    }
    Launch::admin_drop("../x", &world.server.data_dir()).refusal();
    assert_eq!(world.git().commit_count(), commits);
    world.server.start_again();
    assert_eq!(world.read(&world.active_path("acme/app")), file.bytes());
}

#[test]
fn a_missing_directory_is_refused_and_not_made() {
    let dir = tempfile::TempDir::new().unwrap();
    let data = dir.path().join("none");
    let said = Launch::admin_drop("http/example.org/80/acme", &data).refusal();
    assert!(said.contains(data.to_str().unwrap()), "it names the directory: {said}");
    assert!(!data.exists(), "a mistyped directory does not become one");
}

#[test]
fn an_empty_directory_is_refused_and_stays_empty() {
    let dir = tempfile::TempDir::new().unwrap();
    let said = Launch::admin_drop("http/example.org/80/acme", dir.path()).refusal();
    assert!(said.contains(dir.path().to_str().unwrap()), "it names the directory: {said}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is created in it");
}

#[test]
fn a_directory_of_other_things_is_refused_and_left_as_it_is() {
    let dir = tempfile::TempDir::new().unwrap();
    std::fs::write(dir.path().join("repo.git"), "a file of this name").unwrap();
    Launch::admin_drop("http/example.org/80/acme", dir.path()).refusal();
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["repo.git"]);
}
