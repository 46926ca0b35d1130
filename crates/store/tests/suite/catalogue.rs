//! The catalogue: releases by digest and by project, and projects by name (D51).

use std::collections::BTreeSet;

use countersign_api::catalogue::{ListedRelease, ReleaseState};
use countersign_core::documents::{index::ReleaseIndex, layout};
use countersign_core::rules::{quorum::Tally, snapshot::Change, snapshot::Snapshot as _};
use countersign_core::values::bounds::{LIST_ENTRIES, LIST_READ_BYTES};
use countersign_store::Store;
use countersign_store::catalogue::{Catalogue, FileDigest, ProjectName, UnknownAfter, WantedReleases};
use countersign_testing::{Signers, alice, bob, carol, signers};

use crate::snapshot::index::World;
use crate::support::{commit, path, team::Team, team::sha256, team::sha512, team::texts, team::time};

const APP: &str = "https/github.com/443/acme/app";
const TOOL: &str = "https/github.com/443/other/tool";

fn one_signer() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(1, [&alice()])
}

fn two_signers() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()])
}

fn found(team: &Team, digest: &FileDigest) -> Vec<ListedRelease> {
    let answer = team.catalogue.look().releases_with(digest, None).unwrap();
    assert!(!answer.more);
    answer.releases
}

fn of(project: &str) -> WantedReleases {
    WantedReleases { project: path(project), tag: None, state: None }
}

fn listed(team: &Team, wanted: &WantedReleases) -> Vec<String> {
    let answer = team.catalogue.look().releases_of(wanted, None).unwrap();
    texts(answer.releases.iter().map(|release| &release.index_path))
}

#[tokio::test]
async fn a_digest_finds_complete_and_revoked_releases_and_no_others() {
    let team = Team::new();
    team.activate(APP, &two_signers(), &[&alice(), &bob()]).await;
    let index = team.add(APP, "v1", &["one", "two"], &alice()).await;
    team.sign(&index, &[&alice()]).await;
    assert_eq!(found(&team, &sha256("two")), [], "it still collects signatures");
    team.sign(&index, &[&bob()]).await;
    let completed = team.minute();
    let release = ListedRelease {
        index_path: path(&index),
        project_id: path(APP),
        tag: Some("v1".to_owned()),
        state: ReleaseState::Complete,
        file_name: Some("file1".to_owned()),
        registered_at: time(completed - 2),
        completed_at: Some(time(completed)),
        revoked_at: None,
        revocation_reason: None,
        revocation_begun: None,
        signatures: Tally { collected: 2, needed: 2 },
        objections: 0,
        rebuilds: None,
    };
    assert_eq!(found(&team, &sha256("two")), std::slice::from_ref(&release));
    assert_eq!(found(&team, &sha512("two")), std::slice::from_ref(&release));
    assert_eq!(found(&team, &sha512("three")), []);
    assert!(team.revoke(&index, &team.revocation(&index, "it does not start"), &alice()).await);
    let revoked = ListedRelease {
        state: ReleaseState::Revoked,
        revoked_at: Some(time(completed + 1)),
        revocation_reason: Some("it does not start".to_owned()),
        ..release
    };
    assert_eq!(found(&team, &sha256("two")), std::slice::from_ref(&revoked));
    assert_eq!(found(&team.restart(), &sha256("two")), [revoked]);
}

#[tokio::test]
async fn all_projects_with_a_file_are_found_the_oldest_first_and_a_broken_one_hides_no_other() {
    let team = Team::new();
    let mut indexes = Vec::new();
    for project in [TOOL, APP] {
        team.activate(project, &one_signer(), &[&alice()]).await;
        team.add(project, "v1", &["wrong"], &alice()).await;
        // What was corrected is found by its new files alone.
        indexes.push(team.add_signed(project, "v1", &["same", project], &[&alice()]).await);
    }
    let projects =
        |team: &Team| texts(found(team, &sha256("same")).iter().map(|release| &release.project_id));
    assert_eq!(projects(&team), [TOOL, APP]);
    assert_eq!((found(&team, &sha256(APP)).len(), found(&team, &sha256("wrong")).len()), (1, 0));
    let team = team.restart();
    assert_eq!(projects(&team), [TOOL, APP]);
    let mut change = Change::new("Break something");
    change.write(path(&format!("{}.signatures.json", indexes[0])), b"nonsense".to_vec());
    commit(&team.store, change).await.unwrap();
    assert_eq!(projects(&team), [APP]);
    assert_eq!(projects(&team.restart()), [APP]);
}

#[tokio::test]
async fn a_begun_revocation_shows_in_lists_until_it_is_in_force() {
    let team = Team::new();
    let file = two_signers().revocation(2, [&bob(), &carol()]);
    team.activate(APP, &file, &[&alice(), &bob(), &carol()]).await;
    let index = team.add_signed(APP, "v1", &["one"], &[&alice(), &bob()]).await;
    assert_eq!(found(&team, &sha256("one"))[0].revocation_begun, None);
    let document = team.revocation(&index, "a bad build");
    assert!(!team.revoke(&index, &document, &carol()).await);
    let begun = found(&team, &sha256("one")).remove(0);
    assert_eq!(begun.state, ReleaseState::Complete);
    assert_eq!(begun.revocation_begun, Some(Tally { collected: 1, needed: 2 }));
    assert_eq!(begun.revocation_reason.as_deref(), Some("a bad build"));
    assert_eq!(begun.revoked_at, None);
    assert_eq!(team.catalogue.look().revoking_projects(), BTreeSet::from([&path(APP)]));
    assert_eq!(team.catalogue.look().revocations_for(&bob().public_key()).len(), 1);
    assert_eq!(team.catalogue.look().revocations_for(&carol().public_key()), []);
    assert!(team.revoke(&index, &document, &bob()).await);
    let revoked = found(&team, &sha256("one")).remove(0);
    assert_eq!((revoked.state, revoked.revocation_begun), (ReleaseState::Revoked, None));
    assert_eq!(team.catalogue.look().revoking_projects(), BTreeSet::new());
}

#[tokio::test]
async fn the_releases_of_a_project_come_newest_first_by_state_and_by_tag() {
    let team = Team::new();
    team.activate(APP, &one_signer(), &[&alice()]).await;
    let first = team.add_signed(APP, "v1", &["one"], &[&alice()]).await;
    let second = team.add(APP, "v2/rc", &["two"], &alice()).await;
    let third = team.add_signed(APP, "v3", &["three"], &[&alice()]).await;
    team.revoke(&first, &team.revocation(&first, "bad"), &alice()).await;
    let state = |state| WantedReleases { state: Some(state), ..of(APP) };
    let tag = |tag: &str| WantedReleases { tag: Some(tag.to_owned()), ..of(APP) };
    let check = |team: &Team| {
        assert_eq!(listed(team, &of(APP)), [&*third, &*second, &*first]);
        assert_eq!(listed(team, &of("https/github.com/443/Acme/APP")), [&*third, &*second, &*first]);
        assert_eq!(listed(team, &of(TOOL)), [""; 0]);
        assert_eq!(listed(team, &of("https")), [""; 0]);
        assert_eq!(listed(team, &state(ReleaseState::Complete)), [third.as_str()]);
        assert_eq!(listed(team, &state(ReleaseState::Collecting)), [second.as_str()]);
        assert_eq!(listed(team, &state(ReleaseState::Revoked)), [first.as_str()]);
        assert_eq!(listed(team, &tag("v2/rc")), [second.as_str()]);
        assert_eq!(listed(team, &tag("v2")), [""; 0]);
        let other = WantedReleases { state: Some(ReleaseState::Revoked), ..tag("v3") };
        assert_eq!(listed(team, &other), [""; 0]);
        let newest = team.catalogue.look().newest_release_of(&path(APP)).releases;
        assert_eq!(texts(newest.iter().map(|release| &release.index_path)), [third.as_str()]);
        assert_eq!(team.catalogue.look().newest_release_of(&path(TOOL)).releases, []);
        let unsigned = team.catalogue.look().releases_of(&tag("v2/rc"), None).unwrap().releases.remove(0);
        assert_eq!(unsigned.tag.as_deref(), Some("v2/rc"));
        assert_eq!((unsigned.completed_at, unsigned.file_name), (None, None));
        assert_eq!(unsigned.signatures, Tally { collected: 0, needed: 1 });
    };
    check(&team);
    check(&team.restart());
}

/// Releases are sorted as on pages: by version, not by time.
#[tokio::test]
async fn the_newest_release_is_the_highest_complete_version_that_no_one_revokes() {
    let team = Team::new();
    let file = one_signer().revocation(2, [&bob(), &carol()]);
    team.activate(APP, &file, &[&alice(), &bob(), &carol()]).await;
    let newest = |team: &Team| -> Vec<String> {
        let answer = team.catalogue.look().newest_release_of(&path(APP));
        assert!(!answer.more);
        texts(answer.releases.iter().map(|release| &release.index_path))
    };
    assert_eq!(newest(&team), [""; 0]);
    let second = team.add_signed(APP, "v1.9", &["two"], &[&alice()]).await;
    let third = team.add_signed(APP, "v1.10", &["three"], &[&alice()]).await;
    team.add_signed(APP, "v1.8.7", &["a late fix of an old line"], &[&alice()]).await;
    team.add(APP, "v2", &["not signed"], &alice()).await;
    assert_eq!(newest(&team), [third.as_str()]);
    team.revoke(&third, &team.revocation(&third, "bad"), &bob()).await;
    assert_eq!(newest(&team), [second.as_str()]);
    assert_eq!(newest(&team.restart()), [second.as_str()]);
}

#[tokio::test]
async fn a_rotation_drops_the_signatures_of_what_still_collects() {
    let team = Team::new();
    team.activate(APP, &two_signers(), &[&alice(), &bob()]).await;
    let index = team.add(APP, "v1", &["one"], &alice()).await;
    team.sign(&index, &[&alice()]).await;
    let signatures =
        |team: &Team| team.catalogue.look().releases_of(&of(APP), None).unwrap().releases[0].signatures;
    assert_eq!(signatures(&team), Tally { collected: 1, needed: 2 });
    assert_eq!(team.catalogue.look().describe_key(&alice().public_key()).signed_count, 1);
    let next = signers("2026-02-01T10:00:00Z").artifact(3, [&alice(), &bob(), &carol()]);
    team.propose(APP, &next, &alice()).await;
    team.sign_signers(APP, &[&alice(), &bob(), &carol()]).await;
    assert_eq!(signatures(&team), Tally { collected: 0, needed: 3 });
    let key = team.catalogue.look().describe_key(&alice().public_key());
    assert_eq!((key.signed_count, key.signed), (0, Vec::new()));
}

/// Writes releases that the decisions would have made, many in one commit.
async fn write_complete(team: &Team, tags: impl Iterator<Item = String>, padding: usize) {
    let head = team.store.head();
    let model = format!("{APP}/releases/tag/v0/svc.index.json");
    let read = |name: &str| head.read(&path(name)).unwrap().unwrap();
    let mut change = Change::new("Add releases");
    for tag in tags {
        let index = layout::index_in(&path(&format!("{APP}/releases/tag/{tag}")));
        let mut content = ReleaseIndex::parse(&read(&model)).unwrap();
        content.published_files[0].source.push_str(&"x".repeat(padding));
        change.write(layout::signers_copy_of(&index), read(&format!("{model}.signers.json")));
        change.write(layout::signatures_of(&index), read(&format!("{model}.signatures.json")));
        change.write(index, content.write());
    }
    commit(&team.store, change).await.unwrap();
}

#[tokio::test]
async fn a_list_ends_at_its_bound_and_goes_on_behind_its_last_entry() {
    let team = Team::new();
    team.activate(APP, &one_signer(), &[&alice()]).await;
    team.add_signed(APP, "v0", &["same"], &[&alice()]).await;
    write_complete(&team, (1..LIST_ENTRIES).map(|i| format!("v{i}")), 0).await;
    let look = team.catalogue.look();
    assert!(!look.releases_with(&sha256("same"), None).unwrap().more, "exactly as many as fit");
    assert!(!look.releases_of(&of(APP), None).unwrap().more);
    drop(look);
    write_complete(&team, (LIST_ENTRIES..2 * LIST_ENTRIES + 1).map(|i| format!("v{i}")), 0).await;
    let look = team.catalogue.look();
    for by_digest in [true, false] {
        let (mut after, mut seen, mut sizes) = (None, BTreeSet::new(), Vec::new());
        loop {
            let answer = match by_digest {
                true => look.releases_with(&sha256("same"), after.as_ref()).unwrap(),
                false => look.releases_of(&of(APP), after.as_ref()).unwrap(),
            };
            sizes.push(answer.releases.len());
            after = answer.releases.last().map(|release| release.index_path.clone());
            seen.extend(answer.releases.into_iter().map(|release| release.index_path));
            if !answer.more {
                break;
            }
        }
        assert_eq!((sizes, seen.len()), (vec![LIST_ENTRIES, LIST_ENTRIES, 1], 2 * LIST_ENTRIES + 1));
    }
    let nowhere = path("https/github.com/443/acme/app/svc.index.json");
    let unknown = Err(UnknownAfter(nowhere.clone()));
    assert_eq!(look.releases_of(&of(APP), Some(&nowhere)), unknown);
    assert_eq!(look.releases_with(&sha256("same"), Some(&nowhere)), unknown);
}

#[tokio::test]
async fn a_list_of_large_files_ends_once_enough_was_read() {
    let team = Team::new();
    team.activate(APP, &one_signer(), &[&alice()]).await;
    team.add_signed(APP, "v0", &["same"], &[&alice()]).await;
    let padding = LIST_READ_BYTES / 8;
    write_complete(&team, (1..20).map(|i| format!("v{i}")), padding).await;
    let answer = team.catalogue.look().releases_with(&sha256("same"), None).unwrap();
    assert!(answer.more);
    assert!((2..=9).contains(&answer.releases.len()), "{}", answer.releases.len());
}

#[tokio::test]
async fn projects_are_found_by_their_last_names_in_any_letter_case() {
    let team = Team::new();
    let named = |team: &Team, name: &str| {
        let answer = team.catalogue.look().projects_named(&ProjectName::parse(name).unwrap());
        assert!(!answer.more);
        texts(&answer.projects)
    };
    team.register("https/codeberg.org/443/Acme/App", &one_signer(), &alice()).await;
    assert_eq!(named(&team, "acme/app"), ["https/codeberg.org/443/Acme/App"], "the only one");
    team.activate(APP, &one_signer(), &[&alice()]).await;
    team.activate("https/dl.example.org/443/app", &one_signer(), &[&alice()]).await;
    assert_eq!(named(&team, "ACME/app"), [APP], "those in force come before all others");
    assert_eq!(named(&team, "app"), ["https/dl.example.org/443/app", APP]);
    assert_eq!(named(&team, "me/app"), [""; 0], "whole names");
    assert_eq!(named(&team, APP), [APP]);
    team.sign_signers("https/codeberg.org/443/Acme/App", &[&alice()]).await;
    assert_eq!(named(&team, "acme/app").len(), 2);
    team.register("https/codeberg.org/443/acme/gone", &one_signer(), &alice()).await;
    assert_eq!(named(&team, "gone").len(), 1);
    team.drop_pending("https/codeberg.org/443/acme/gone").await;
    assert_eq!(named(&team, "gone"), [""; 0]);
    let team = team.restart();
    assert_eq!(named(&team, "app").len(), 3);
    for i in 0..LIST_ENTRIES {
        team.activate(&format!("https/host{i}.example/443/app"), &one_signer(), &[&alice()]).await;
    }
    let many = team.catalogue.look().projects_named(&ProjectName::parse("app").unwrap());
    assert_eq!((many.projects.len(), many.more), (LIST_ENTRIES, true));
}

#[tokio::test]
async fn a_catalogue_that_was_stopped_makes_nothing_and_waits_for_no_one() {
    let team = Team::new();
    team.activate(APP, &one_signer(), &[&alice()]).await;
    let ready = team.catalogue.readiness();
    assert!(!team.catalogue.is_ready() && !*ready.borrow());
    team.catalogue.stop();
    team.catalogue.catch_up();
    assert!(!team.catalogue.is_ready());
    let other = team.store.catalogue();
    other.catch_up();
    assert!(other.is_ready());
}

/// All that a catalogue says about everything that the world knows.
fn all_answers(catalogue: &Catalogue, world: &World, store: &Store) -> Vec<String> {
    let look = catalogue.look();
    let mut answers = Vec::new();
    for project in &world.projects {
        let mut releases = look.releases_of(&of(project.as_str()), None).unwrap().releases;
        releases.sort_by(|a, b| a.index_path.cmp(&b.index_path));
        answers.push(format!("{releases:?} {:?}", look.newest_release_of(project)));
        let named = look.projects_named(&ProjectName::parse(project.as_str()).unwrap());
        answers.push(format!("{named:?}"));
    }
    answers.push(format!("{:?}", look.revoking_projects()));
    for key in world.keys.iter().map(|key| key.public_key()) {
        answers.push(format!("{:?}", look.pending_for(&key)));
        answers.push(format!("{:?}", look.describe_key(&key)));
    }
    let mut indexes = Vec::new();
    store.head().walk(&mut |name, _| {
        indexes.extend(name.ends_with("/svc.index.json").then(|| path(name)));
    });
    for index in indexes {
        let content = ReleaseIndex::parse(&store.head().read(&index).unwrap().unwrap()).unwrap();
        let digest = content.published_files[0].digests.sha256.unwrap();
        answers.push(format!("{:?}", look.releases_with(&FileDigest::Sha256(digest), None)));
    }
    answers
}

#[tokio::test]
async fn after_every_change_the_catalogue_says_what_a_new_one_says() {
    let team = Team::new();
    let mut world = World::new();
    let mut compared = 0;
    for step in 0..300 {
        world.step(&team.store, step).await;
        // Sometimes several changes at once.
        if step % 3 != 0 {
            let followed = all_answers(&team.catalogue, &world, &team.store);
            assert_eq!(followed, all_answers(&team.store.catalogue(), &world, &team.store), "step {step}");
            compared += followed.len();
        }
    }
    assert!(compared > 3_000, "{compared}");
}
