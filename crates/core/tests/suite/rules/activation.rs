//! When a signers file takes effect, and all that happens in that one change (D15, D16).

use countersign_core::rules::{decide::sign::SignRefusal, decide::sign::Signed};
use countersign_core::{documents::signatures::SignatureSet, values::digest::Sha512, values::key::SecretKey};
use countersign_testing::{
    ACTIVE, INDEX, PENDING, PENDING_METADATA, PROJECT, Signers, World, alice, assert_mentions, at, bob,
    carol, dave, key, mallory, path, public, release, signers, steady,
};
use proptest::prelude::*;

use super::{COMPLETE, INCOMPLETE, active, whole_team};

fn new_file() -> Signers {
    signers("2026-02-01T09:00:00Z")
}

/// The active world, in which Alice has proposed this file.
fn proposed(file: &Signers) -> World {
    let mut world = active();
    world.update(file, &alice()).expect("an update");
    world
}

/// Has these people sign the proposal of `file`, the last of whom completes it, and none before.
#[track_caller]
fn assert_completed_by(file: &Signers, people: &[&SecretKey]) {
    let mut world = proposed(file);
    let (last, others) = people.split_last().expect("someone");
    for person in others {
        assert_eq!(world.sign(PENDING, person), INCOMPLETE, "{person:?}");
    }
    assert_eq!(world.sign(PENDING, last), COMPLETE);
    assert_eq!(world.repo.text(ACTIVE), file.text());
}

#[track_caller]
fn assert_not_completed_by(file: &Signers, people: &[&SecretKey]) {
    let mut world = proposed(file);
    for person in people {
        assert_eq!(world.sign(PENDING, person), INCOMPLETE, "{person:?}");
    }
    assert_eq!(world.repo.text(ACTIVE), whole_team().text());
}

#[test]
fn the_admins_or_masters_of_both_sides_and_every_added_key_complete_an_update() {
    let file = new_file().artifact(1, [&alice(), &key(7)]).admin(2, [&carol(), &key(8)]);
    assert_completed_by(&file, &[&carol(), &key(5), &key(7), &key(8)]);
    assert_completed_by(&file, &[&key(8), &key(7), &key(5), &carol()]);
    // Whatever the role of a key that is added.
    let every_role = new_file()
        .artifact(1, [&alice(), &key(7)])
        .admin(1, [&carol(), &key(5)])
        .master(1, [&dave(), &key(8)])
        .revocation(1, [&key(9)]);
    assert_not_completed_by(&every_role, &[&carol(), &key(5), &dave(), &key(7), &key(8)]);
    assert_completed_by(&every_role, &[&carol(), &key(5), &dave(), &key(7), &key(8), &key(9)]);
    // Each side reaches its own threshold.
    let fewer = new_file().artifact(1, [&alice()]).admin(1, [&carol()]);
    assert_not_completed_by(&fewer, &[&carol()]);
    assert_completed_by(&fewer, &[&carol(), &key(5)]);
    let more = new_file().artifact(1, [&alice()]).admin(3, [&alice(), &bob(), &carol()]);
    assert_not_completed_by(&more, &[&carol(), &key(5), &alice()]);
    assert_completed_by(&more, &[&carol(), &key(5), &alice(), &bob()]);
    // The masters stand for the admins of their own side, by their own threshold, and do not add up with them.
    let no_master = new_file().artifact(1, [&alice()]).admin(1, [&bob()]);
    assert_completed_by(&no_master, &[&dave(), &bob()]);
    assert_completed_by(&no_master.clone().master(1, [&dave()]), &[&dave()]);
    let other_master = no_master.clone().master(1, [&key(8)]);
    assert_completed_by(&other_master, &[&dave(), &key(8)]);
    assert_completed_by(&other_master, &[&key(8), &carol(), &key(5)]);
    let two_masters = no_master.master(2, [&dave(), &key(8)]);
    assert_not_completed_by(&two_masters, &[&dave()]);
    assert_completed_by(&two_masters, &[&dave(), &key(8)]);
    let both = new_file().artifact(1, [&alice()]).admin(2, [&alice(), &bob()]).master(2, [&dave(), &key(8)]);
    assert_not_completed_by(&both, &[&carol(), &key(5), &alice(), &key(8)]);
}

#[test]
fn without_admin_keys_the_artifact_signers_decide() {
    let current = signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob(), &carol()]);
    let mut world = World::with(&current, &[&alice(), &bob(), &carol()]);
    let file = new_file().artifact(1, [&dave()]);
    world.update(&file, &alice()).unwrap();
    assert_eq!(world.sign(PENDING, &dave()), INCOMPLETE);
    assert_eq!(world.sign(PENDING, &alice()), INCOMPLETE);
    assert_eq!(world.sign(PENDING, &bob()), COMPLETE);
}

#[test]
fn others_than_admins_masters_and_added_keys_may_not_sign() {
    let file = new_file().artifact(1, [&alice(), &key(7)]).admin(1, [&bob()]).revocation(1, [&key(6)]);
    for outsider in [alice(), key(6), mallory()] {
        let refusal = proposed(&file).sign(PENDING, &outsider).unwrap_err();
        assert_eq!(refusal, SignRefusal::NotAllowed { key: outsider.public_key(), path: path(PENDING) });
    }
    for insider in [carol(), key(5), dave(), bob(), key(7)] {
        assert_eq!(proposed(&file).sign(PENDING, &insider), INCOMPLETE);
    }
}

#[test]
fn the_pending_directory_becomes_the_active_one_and_nothing_is_left_behind() {
    let mut world = World::new();
    let one = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]);
    world.register(&one, &alice()).unwrap();
    let pending: Vec<String> = ["", ".metadata.json", ".registration.json"]
        .map(|suffix| world.repo.text(&format!("{PENDING}{suffix}")))
        .into();
    assert_eq!(world.sign(PENDING, &alice()), COMPLETE);
    assert_eq!(
        world.repo.names_below(PROJECT),
        [
            "svc.signers.history/000001.json", "svc.signers/svc.signers.json",
            "svc.signers/svc.signers.json.metadata.json",
            "svc.signers/svc.signers.json.metadata.json.signatures.json",
            "svc.signers/svc.signers.json.registration.json", "svc.signers/svc.signers.json.signatures.json",
        ]
    );
    let active: Vec<String> = ["", ".metadata.json", ".registration.json"]
        .map(|suffix| world.repo.text(&format!("{ACTIVE}{suffix}")))
        .into();
    assert_eq!(active, pending);
    for file in [ACTIVE.to_owned(), format!("{ACTIVE}.metadata.json")] {
        let set = SignatureSet::parse(&world.repo.bytes(&format!("{file}.signatures.json"))).unwrap();
        assert_eq!(set.verify(&world.repo.bytes(&file)), Ok(public([&alice()])));
    }
    assert_mentions(&world.last.message, &[PROJECT, &alice().public_key().to_string()]);
}

#[test]
fn a_rotation_replaces_every_active_file() {
    let mut world = active();
    let mut expected: Vec<String> = world.repo.names_below(PROJECT).into_iter().map(str::to_owned).collect();
    expected.insert(1, "svc.signers.history/000002.json".to_owned());
    let file = new_file().artifact(1, [&alice()]).master(1, [&dave()]);
    world.pass(60);
    world.rotate(&file, &[&dave()]);
    assert_eq!(world.repo.names_below(PROJECT), expected);
    for suffix in
        ["", ".metadata.json", ".registration.json", ".signatures.json", ".metadata.json.signatures.json"]
    {
        let name = path(&format!("{ACTIVE}{suffix}"));
        assert!(world.last.files.contains_key(&name), "{name} is still the old one");
    }
    let written: Vec<_> = world.last.files.keys().filter(|file| file.as_str().contains("history")).collect();
    assert_eq!(written, [&path(&format!("{PROJECT}/svc.signers.history/000002.json"))], "and no old entry");
}

#[test]
fn the_history_grows_by_the_exact_texts_and_the_time_of_activation() {
    let mut world = active();
    let first = world.repo.history(PROJECT);
    assert_eq!(first.entries.len(), 1);
    let file = new_file().artifact(1, [&alice()]).master(1, [&dave()]);
    world.update(&file, &alice()).unwrap();
    let metadata = world.repo.text(PENDING_METADATA);
    world.now = at("2026-02-03T04:05:06.789Z");
    world.sign(PENDING, &dave()).unwrap();
    let history = world.repo.history(PROJECT);
    assert_eq!(history.entries[..1], first.entries);
    let [_, last] = &history.entries[..] else { panic!("two entries") };
    assert_eq!((&last.signers_config, &last.metadata), (&file.text(), &metadata));
    assert_eq!(last.timestamp, at("2026-02-03T04:05:06Z"));
    assert_eq!(last.signatures.verify(file.text().as_bytes()), Ok(public([&dave()])));
    assert_eq!(last.metadata_signatures.verify(metadata.as_bytes()), Ok(public([&dave()])));
}

#[test]
fn a_rotation_sends_collecting_indexes_back_to_their_start() {
    let two_of_three = signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob(), &carol()]);
    let mut world = World::with(&two_of_three, &[&alice(), &bob(), &carol()]);
    world.release_signed_by(&[&alice()]);
    world.add_release(&release("v2", "two"), &alice()).unwrap();
    let index = world.repo.bytes(INDEX);
    // Now Alice's signature would be enough.
    let file = new_file().artifact(1, [&alice(), &bob()]);
    world.rotate(&file, &[&alice(), &bob()]);
    for tag in ["v1", "v2"] {
        let index = format!("{PROJECT}/releases/tag/{tag}/svc.index.json");
        assert_eq!(world.repo.text(&format!("{index}.signers.json")), file.text());
        let set =
            SignatureSet::parse(&world.repo.bytes(&format!("{index}.signatures.json.pending"))).unwrap();
        assert_eq!(set, SignatureSet::default());
        assert!(!world.repo.has(&format!("{index}.signatures.json")), "nothing becomes complete");
        assert!(world.last.files.contains_key(&path(&format!("{index}.signers.json"))), "in the same change");
    }
    assert_eq!(world.repo.bytes(INDEX), index);
    assert_eq!(
        world.sign(INDEX, &carol()).unwrap_err(),
        SignRefusal::NotAllowed { key: carol().public_key(), path: path(INDEX) }
    );
    assert_eq!(world.sign(INDEX, &bob()), COMPLETE);
    let set = SignatureSet::parse(&world.repo.bytes(&format!("{INDEX}.signatures.json"))).unwrap();
    assert_eq!(set.signers(), public([&bob()]), "Alice's signature is dropped");
}

#[test]
fn a_rotation_leaves_complete_indexes_as_they_are() {
    let mut world = active();
    world.release_signed_by(&[&alice()]);
    let before: Vec<(String, String)> = complete_files(&world);
    assert_eq!(before.len(), 3);
    world.rotate(&new_file().artifact(1, [&bob()]).master(1, [&dave()]), &[&dave()]);
    assert_eq!(complete_files(&world), before);
}

fn complete_files(world: &World) -> Vec<(String, String)> {
    let dir = format!("{PROJECT}/releases/tag/v1");
    let names = world.repo.names_below(&dir).into_iter();
    names.map(|name| (name.to_owned(), world.repo.text(&format!("{dir}/{name}")))).collect()
}

#[test]
fn a_rotation_touches_no_other_project() {
    let mut world = active();
    let other = path("https/github.com/443/acme/application");
    let copy = path("https/github.com/443/acme/application/svc.index.json.signers.json");
    world
        .repo
        .put(&path("https/github.com/443/acme/application/svc.index.json.signatures.json.pending"), b"{}");
    world.repo.put(&copy, b"theirs");
    world.rotate(&new_file().artifact(1, [&bob()]).master(1, [&dave()]), &[&dave()]);
    assert!(world.last.files.keys().all(|file| !file.is_inside(&other)));
}

#[test]
fn a_copy_that_is_not_in_force_completes_nothing() {
    let mut world = active();
    world.add_release(&release("v1", "one"), &alice()).unwrap();
    world
        .repo
        .put(&path(&format!("{INDEX}.signers.json")), new_file().artifact(1, [&mallory()]).text().as_bytes());
    assert!(matches!(world.sign(INDEX, &mallory()), Err(SignRefusal::Stored(_))));
}

proptest! {
    #![proptest_config(countersign_testing::few(steady(), 64))]

    /// D15 written down once more, over people instead of keys.
    #[test]
    fn an_update_completes_exactly_when_the_three_conditions_hold(
        order in Just(vec![1_u8, 2, 3, 4, 5, 7, 8]).prop_shuffle(),
        new_admin_threshold in 1_usize..=2,
        has_new_master in any::<bool>(),
    ) {
        let (seven, eight) = (key(7), key(8));
        let mut file = new_file().artifact(1, [&alice(), &seven]).admin(new_admin_threshold, [&carol(), &bob()]);
        if has_new_master {
            file = file.master(1, [&eight]);
        }
        let mut world = proposed(&file);
        let mut signed: Vec<u8> = Vec::new();
        let count = |signed: &[u8], people: &[u8]| people.iter().filter(|n| signed.contains(n)).count();
        for n in order {
            let accepted = matches!(n, 2 | 3 | 4 | 5 | 7) || (n == 8 && has_new_master);
            let outcome = world.sign(PENDING, &key(n));
            if !accepted {
                prop_assert!(matches!(outcome, Err(SignRefusal::NotAllowed { .. })), "{n}");
                continue;
            }
            signed.push(n);
            let current_agrees = count(&signed, &[3, 5]) >= 2 || signed.contains(&4);
            let new_agrees = count(&signed, &[3, 2]) >= new_admin_threshold || (has_new_master && signed.contains(&8));
            let added = signed.contains(&7) && (!has_new_master || signed.contains(&8));
            let is_complete = current_agrees && new_agrees && added;
            prop_assert_eq!(outcome, Ok(Signed { is_complete, waits_until: None }), "{:?}", &signed);
            if is_complete {
                prop_assert_eq!(Sha512::of(&world.repo.bytes(ACTIVE)), Sha512::of(file.text().as_bytes()));
                break;
            }
        }
    }
}
