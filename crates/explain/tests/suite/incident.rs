//! What keys touched and could complete, against the model and the real decisions.

use std::collections::BTreeSet;

use countersign_core::documents::index::AssetName;
use countersign_core::rules::stored::ReleaseState;
use countersign_core::{documents::signers::SignersFile, values::key::PublicKey};
use countersign_explain::incident::{
    IncidentQuestion, ListingStanding, OpenKind, ProjectIncident, examine_project, list_powers,
};
use countersign_explain::strength::Act;
use countersign_testing::{
    ACTIVE, INDEX, PENDING, PROJECT, World, alice, at, bob, carol, dave, few, key, path, public as keys_of,
    release, shifted, shifted_seconds, signers, steady,
};
use proptest::prelude::*;

use crate::files::public;
use crate::strength::{Model, any_model};

fn keys(people: &[u8]) -> BTreeSet<PublicKey> {
    people.iter().map(|n| public(*n)).collect()
}

/// A project with these signers, whom everyone has agreed to.
fn found(model: &Model) -> World {
    let mut world = World::new();
    let everyone = model.people();
    let first = key(everyone[0]);
    let mut proposal = world.proposal(&signers("2026-01-31T10:00:00Z").artifact(1, [&first]), &first);
    proposal.signers_bytes = model.text().into_bytes().into();
    world.register_proposal(&proposal).expect("a registration");
    for n in &everyone {
        world.sign(PENDING, &key(*n)).expect("a signature");
    }
    assert!(world.repo.has(ACTIVE));
    world
}

fn examine(world: &World, keys: BTreeSet<PublicKey>, since: Option<&str>) -> Option<ProjectIncident> {
    let question = IncidentQuestion { keys, since: since.map(at) };
    let releases = || if world.repo.has(INDEX) { vec![path(INDEX)] } else { Vec::new() };
    examine_project(&world.repo, &path(PROJECT), releases, &question).expect("a sound repository")
}

fn any_case() -> impl Strategy<Value = (Model, Vec<u8>, Vec<u8>)> {
    any_model().prop_flat_map(|model| {
        let people = model.people();
        let some = || prop::sample::subsequence(people.clone(), 0..=people.len());
        (Just(model), some(), some())
    })
}

proptest! {
    #![proptest_config(few(steady(), 24))]

    #[test]
    fn alone_they_can_what_the_model_says((model, _, named) in any_case()) {
        let file: SignersFile = model.file();
        let powers = list_powers(&file, &keys(&named));
        for act in [Act::Release, Act::Rotate, Act::Revoke, Act::Reproduce] {
            prop_assert_eq!(powers.contains(&act), model.can(act, &named), "{:?}", act);
        }
    }

    #[test]
    fn what_they_can_complete_they_do_complete_and_needed_is_what_falls_without_them(
        (model, signing, named) in any_case()
    ) {
        let mut world = found(&model);
        let first = key(model.people()[0]);
        world.add_release(&release("v1", "one"), &first).expect("a release");
        let mut signed = Vec::new();
        for n in &signing {
            if let Ok(outcome) = world.sign(INDEX, &key(*n)) {
                signed.push(*n);
                if outcome.is_complete {
                    break;
                }
            }
        }
        let told = examine(&world, keys(&named), None);
        prop_assert_eq!(told.is_none(), named.is_empty());
        let Some(told) = told else { return Ok(()) };
        let is_complete = model.can(Act::Release, &signed);
        let touched = told.releases.first();
        prop_assert_eq!(touched.is_some(), signed.iter().any(|n| named.contains(n)));
        let others: Vec<u8> = signed.iter().copied().filter(|n| !named.contains(n)).collect();
        if let Some(touched) = touched {
            let expected = if is_complete { ReleaseState::Complete } else { ReleaseState::Collecting };
            prop_assert_eq!(touched.state, expected);
            prop_assert_eq!(touched.is_decisive, is_complete && !model.can(Act::Release, &others));
        }
        let open = told.open.iter().find(|matter| matter.kind == OpenKind::Release);
        let completed = !is_complete
            && named.iter().any(|n| world.sign(INDEX, &key(*n)).is_ok_and(|outcome| outcome.is_complete));
        prop_assert_eq!(open.is_some_and(|matter| matter.is_completable), completed, "{:?}", open);
    }

    #[test]
    fn a_removal_names_each_group_that_gets_too_small((model, _, named) in any_case()) {
        let world = found(&model);
        let Some(told) = examine(&world, keys(&named), None) else { return Ok(()) };
        let removal = told.removal.expect("signers are in force");
        let rest: Vec<u8> = model.people().into_iter().filter(|n| !named.contains(n)).collect();
        prop_assert_eq!(removal.others_can_rotate, model.can(Act::Rotate, &rest));
        for shortage in &removal.shortages {
            prop_assert!(shortage.left < shortage.threshold);
        }
        // If no group gets too small, all roles can still act.
        if removal.shortages.is_empty() {
            prop_assert!(model.can(Act::Release, &rest) && model.can(Act::Rotate, &rest));
        }
    }
}

#[test]
fn what_stolen_builders_stated_is_told_and_needed_is_what_is_reproduced_only_by_them() {
    let mut world = found(&Model::new(&[(1, &[1])]).builder(&[(2, &[9, 10, 11])]));
    let mut version = release("v1", "one");
    version.published_files[0].file_name = AssetName::parse("app-1.tar.gz").expect("a name");
    world.add_release(&version, &key(1)).expect("a release");
    world.sign(INDEX, &key(1)).expect("a signature");
    for n in [9, 10] {
        world.state(&world.rebuild(), &key(n)).expect("a rebuild");
    }
    // The keys, the powers that they have alone, and whether the release is reproduced only by them.
    let table: [(&[u8], &[Act], Option<bool>); 4] = [
        (&[9], &[], Some(true)),
        (&[9, 10], &[Act::Reproduce], Some(true)),
        (&[11], &[], None),
        (&[10, 11], &[Act::Reproduce], Some(true)),
    ];
    for (people, powers, is_decisive) in table {
        let told = examine(&world, keys(people), None).expect("they are listed");
        assert_eq!(told.powers, powers, "{people:?}");
        assert!(told.can_state_rebuilds && !told.can_register, "{people:?}");
        assert_eq!(told.rebuilds.first().map(|one| one.is_decisive), is_decisive, "{people:?}");
        assert!(told.releases.is_empty() && told.releases_to_revoke().next().is_none());
        let removal = told.removal.expect("signers are in force");
        assert!(removal.others_can_rotate && removal.shortages.len() == people.len() - 1, "{removal:?}");
    }
    let signer = examine(&world, keys(&[1]), None).expect("it is listed");
    assert!(signer.can_register && !signer.can_state_rebuilds && signer.rebuilds.is_empty());
    assert!(
        examine(&world, keys(&[9]), Some("2099-01-01T00:00:00Z"))
            .is_some_and(|told| told.rebuilds.is_empty())
    );
}

#[test]
fn since_is_inclusive_to_the_nanosecond() {
    let mut world =
        World::with(&signers("2026-01-31T10:00:00Z").artifact(1, [&alice(), &bob()]), &[&alice(), &bob()]);
    world.pass(3600);
    world.release_signed_by(&[&bob()]);
    let signed = world.now.to_whole_seconds();
    let count = |since| {
        let question = IncidentQuestion { keys: keys_of([&bob()]), since: Some(since) };
        let told = examine_project(&world.repo, &path(PROJECT), || vec![path(INDEX)], &question);
        told.expect("a sound repository").expect("it is listed").releases.len()
    };
    assert_eq!(count(signed), 1);
    assert_eq!(count(shifted(signed, 1)), 0);
    assert_eq!(count(shifted(signed, -1)), 1);
    assert_eq!(count(shifted_seconds(signed, 1)), 0);
}

#[test]
fn a_removed_and_a_proposed_key_are_told_as_such() {
    let mut world =
        World::with(&signers("2026-01-31T10:00:00Z").artifact(1, [&alice(), &bob()]), &[&alice(), &bob()]);
    world.rotate(&signers("2026-02-01T10:00:00Z").artifact(1, [&alice(), &carol()]), &[&alice(), &carol()]);
    let removed_at = world.now.to_whole_seconds();
    world.pass(60);
    world
        .update(&signers("2026-02-01T11:00:00Z").artifact(1, [&alice(), &bob(), &dave()]), &alice())
        .expect("an update");
    let standings = |who: &countersign_core::values::key::SecretKey| -> Vec<ListingStanding> {
        let told = examine(&world, keys_of([who]), None).expect("it is listed somewhere");
        told.listings.iter().map(|listing| listing.standing).collect()
    };
    assert_eq!(standings(&alice()), [ListingStanding::InForce]);
    assert_eq!(standings(&bob()), [ListingStanding::Until(removed_at), ListingStanding::Proposed]);
    assert_eq!(standings(&dave()), [ListingStanding::Proposed]);
    // Nothing but the removal of carol needs carol: alice alone completes it with those who are added.
    let told = examine(&world, keys_of([&carol()]), None).expect("it is listed");
    assert_eq!((told.open[0].kind, told.open[0].is_completable), (OpenKind::Rotation, false));
    let told = examine(&world, keys_of([&alice(), &bob(), &dave()]), None).expect("it is listed");
    assert!(told.open[0].is_completable);
}
