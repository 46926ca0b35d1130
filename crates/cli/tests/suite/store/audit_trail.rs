//! D32, D33: the repository read with Git alone: one commit per change, each saying what, where and by whom.

use tempfile::TempDir;

use crate::support::{Git, Person, SignersFile, World, days_ago};

/// One change made one commit, and its message names the place and the person.
#[track_caller]
fn assert_recorded(world: &World, before: usize, place: &str, by: &Person) {
    assert_eq!(world.git().commit_count(), before + 1, "one commit per change");
    let message = world.git().last_message();
    assert!(message.contains(place), "where: {message}");
    assert!(message.contains(&by.key()[.."svc-pub:".len() + 8]), "by whom: {message}");
    let subject = message.lines().next().unwrap();
    assert!(subject.split(' ').count() > 1, "what: {message}");
}

#[test]
fn every_change_is_one_commit_that_says_what_where_and_by_whom() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = World::start();
    let count = || world.git().commit_count();
    let project = world.id("acme/app");
    let mut subjects = std::collections::BTreeSet::new();
    let mut note = |world: &World| {
        let message = world.git().last_message();
        subjects.insert(message.split([' ', ':']).next().unwrap().to_owned());
    };

    let before = count();
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice, &bob])).ok();
    assert_recorded(&world, before, &project, &alice);
    note(&world);

    for person in [&alice, &bob] {
        let before = count();
        world.sign(person, &world.pending_path("acme/app")).ok();
        assert_recorded(&world, before, &project, person);
    }
    note(&world);

    let before = count();
    let index = world.add_release(&bob, "acme/app/v1");
    assert_recorded(&world, before, &index, &bob);
    note(&world);

    let before = count();
    world.sign(&bob, &index).ok();
    assert_recorded(&world, before, &index, &bob);

    let before = count();
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice]);
    world.propose(&alice, "acme/app", &next).ok();
    assert_recorded(&world, before, &project, &alice);
    note(&world);

    let before = count();
    world.revoke(&alice, &index).ok();
    assert_recorded(&world, before, &index, &alice);
    note(&world);
    assert!(subjects.len() >= 4, "the kinds of change can be told apart: {subjects:?}");
    world.git().assert_sound();
}

#[test]
fn a_relayed_signature_is_recorded_under_its_signer() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_release(&alice, "acme/app/v1");
    let before = world.git().commit_count();
    let body = world.signature_body(&alice, &index);
    world.submit(&Person::named("relay"), &body).ok();
    assert_recorded(&world, before, &index, &alice);
}

#[test]
fn reading_and_refused_requests_make_no_commit() {
    let alice = Person::named("alice");
    let mallory = Person::named("mallory");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_release(&alice, "acme/app/v1");
    let before = world.git().run(&["rev-parse", "main"]);
    world.sign(&mallory, &index).error(403);
    world.revoke(&alice, &index).error(409);
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice])).error(409);
    world.is_complete(&alice, &index);
    world.pending(&alice);
    world.get_as(&alice, &format!("/v1/files-to-sign/{index}")).ok();
    world.server.get("/v1/ping").ok();
    assert_eq!(world.git().run(&["rev-parse", "main"]), before);
}

#[test]
fn a_clone_holds_the_files_that_the_server_serves() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    world.add_signed_release("acme/app/v1", &[&alice]);
    world.add_release(&alice, "acme/app/v2");
    let dir = TempDir::new().unwrap();
    let clone = dir.path().join("clone");
    let from = world.server.repository();
    Git::at("/").run(&["clone", "--quiet", from.to_str().unwrap(), clone.to_str().unwrap()]);
    let paths = world.git().paths();
    assert!(paths.contains(&world.index_path("acme/app/v1")), "{paths:?}");
    for path in paths {
        assert_eq!(std::fs::read(clone.join(&path)).unwrap(), world.read(&path), "{path}");
    }
    let status = Git::at(&clone).run(&["status", "--porcelain"]);
    assert_eq!(status, "");
}

#[test]
fn history_is_one_line_of_commits_by_one_author() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = World::with_project(&SignersFile::of(1, &[&alice, &bob]), &[&alice, &bob]);
    world.add_signed_release("acme/app/v1", &[&alice]);
    assert_eq!(world.git().run(&["rev-list", "--merges", "main"]), "");
    let authors = world.git().run(&["log", "--format=%an <%ae> %cn <%ce>", "main"]);
    let authors: std::collections::BTreeSet<_> = authors.lines().collect();
    assert_eq!(authors.len(), 1, "{authors:?}");
    let times = world.git().run(&["log", "--reverse", "--format=%ct", "main"]);
    assert!(times.lines().map(|time| time.parse::<u64>().unwrap()).is_sorted(), "{times}");
}
