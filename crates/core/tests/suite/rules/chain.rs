//! The chain of signers files: building it (D19), and who is named when one was tampered with. The vectors `chain` have one
//! for each way to tamper with it (D10, D12, D15).

use std::sync::LazyLock;

use countersign_core::documents::history::{History, HistoryEntry};
use countersign_core::documents::{signatures::Collected, signatures::SignatureSet, signers::Metadata};
use countersign_core::rules::{chain, chain::ChainFault, chain::ChainRefusal};
use countersign_core::values::{digest::Sha512, key::SecretKey};
use countersign_testing::{
    ACTIVE, HISTORY, INDEX, PENDING, PROJECT, Signers, World, alice, at, bob, carol, dave, key, mallory,
    path, release, signers,
};

/// The four generations of signers: each one with the people whose signatures put it into effect.
fn generation(n: usize) -> (Signers, Vec<SecretKey>) {
    match n {
        0 => (
            signers("2026-01-01T00:00:00Z").artifact(2, [&alice(), &bob()]).master(1, [&dave()]),
            vec![alice(), bob(), dave()],
        ),
        1 => (
            signers("2026-01-02T00:00:00Z").artifact(2, [&alice(), &carol()]).master(1, [&dave()]),
            vec![alice(), bob(), carol()],
        ),
        2 => (
            signers("2026-01-03T00:00:00Z").artifact(1, [&key(5)]).admin(2, [&carol(), &key(6)]),
            vec![dave(), carol(), key(5), key(6)],
        ),
        3 => (
            signers("2026-01-04T00:00:00Z").artifact(1, [&key(7)]).admin(1, [&carol()]),
            vec![carol(), key(6), key(7)],
        ),
        _ => unreachable!("there are four generations"),
    }
}

/// A world with three rotations behind it; before each a release was signed, v0 to v2.
fn world() -> World {
    let (first, everyone) = generation(0);
    let mut world = World::with(&first, &everyone.iter().collect::<Vec<_>>());
    let artifact_signers = [vec![alice(), bob()], vec![alice(), carol()], vec![key(5)]];
    for (n, signers) in artifact_signers.iter().enumerate() {
        world.pass(3_600);
        world.add_release(&release(&format!("v{n}"), "content"), &signers[0]).expect("a release");
        world.sign_all(&index(n), &signers.iter().collect::<Vec<_>>());
        world.pass(3_600);
        let (next, people) = generation(n + 1);
        world.rotate(&next, &people.iter().collect::<Vec<_>>());
    }
    world
}

fn index(n: usize) -> String {
    format!("{PROJECT}/releases/tag/v{n}/svc.index.json")
}

fn history() -> History {
    static VALID: LazyLock<History> = LazyLock::new(|| world().repo.history(PROJECT));
    VALID.clone()
}

/// Signs both texts of an entry anew, as these people would if they agreed.
fn sign_anew(entry: &mut HistoryEntry, people: &[SecretKey]) {
    let set = |text: &str| {
        let mut set = SignatureSet::default();
        for person in people {
            let signature = person.sign(&Sha512::of(text.as_bytes()));
            set.add(person.public_key(), Collected { signature, collected_at: at("2026-02-01T12:00:00Z") });
        }
        set
    };
    (entry.signatures, entry.metadata_signatures) = (set(&entry.signers_config), set(&entry.metadata));
}

/// Rewrites an entry's metadata; its signers sign the new text.
fn rewrite_metadata(entry: &mut HistoryEntry, people: &[SecretKey], change: impl FnOnce(&mut Metadata)) {
    let mut metadata = Metadata::parse(entry.metadata.as_bytes()).expect("sound metadata");
    change(&mut metadata);
    entry.metadata = String::from_utf8(metadata.write()).expect("text");
    sign_anew(entry, people);
}

fn people(n: usize) -> Vec<SecretKey> {
    generation(n).1
}

/// Tampers with a valid chain, and expects to be found out at this entry, for this reason.
#[track_caller]
fn assert_found_out(entry: usize, fault: &ChainFault, tamper: impl FnOnce(&mut History)) {
    let mut history = history();
    tamper(&mut history);
    let error = chain::verify(&history, &path(PROJECT)).expect_err("the chain verifies");
    assert_eq!((error.entry, &error.fault), (entry, fault));
}

fn build(world: &World, file: &str) -> Result<usize, ChainRefusal> {
    world.repo.chain_of(file).map(|history| history.entries.len())
}

#[test]
fn a_chain_of_three_rotations_verifies() {
    let history = history();
    let verified = chain::verify(&history, &path(PROJECT)).unwrap();
    assert_eq!(verified.project, path(PROJECT));
    assert_eq!(verified.links.len(), 4);
    for (n, link) in verified.links.iter().enumerate() {
        assert_eq!(link.digest, Sha512::of(generation(n).0.text().as_bytes()));
        assert_eq!(link.activated_at, history.entries[n].timestamp);
    }
    assert_eq!(verified.last().signers.timestamp(), at("2026-01-04T00:00:00Z"));
}

#[test]
fn every_beginning_of_a_chain_verifies() {
    for length in 1..=4 {
        let mut history = history();
        history.entries.truncate(length);
        assert_eq!(chain::verify(&history, &path(PROJECT)).unwrap().links.len(), length);
    }
}

#[test]
fn a_chain_ends_with_the_signers_file_that_governed_the_artifact() {
    let world = world();
    for n in 0..3 {
        let history = world.repo.chain_of(&index(n)).unwrap();
        assert_eq!(history.entries.len(), n + 1);
        assert_eq!(history.entries[n].signers_config, generation(n).0.text());
        assert!(chain::verify(&history, &path(PROJECT)).is_ok());
    }
}

#[test]
fn the_active_signers_file_has_the_whole_history() {
    assert_eq!(build(&world(), ACTIVE), Ok(4));
}

#[test]
fn a_revoked_artifact_still_has_its_chain() {
    let mut world = World::with(&generation(0).0, &[&alice(), &bob(), &dave()]);
    world.release_signed_by(&[&alice(), &bob()]);
    world.revoke_index(&alice());
    let (next, by) = generation(1);
    world.rotate(&next, &by.iter().collect::<Vec<_>>());
    assert_eq!(build(&world, INDEX), Ok(1));
}

#[test]
fn what_is_not_complete_has_no_chain() {
    let mut world = world();
    world.add_release(&release("v3", "content"), &key(7)).unwrap();
    let next = signers("2026-01-05T00:00:00Z").artifact(1, [&key(7)]);
    world.update(&next, &carol()).unwrap();
    let copy = format!("{}.signers.json", index(0));
    for file in
        [&index(3), &index(9), PENDING, HISTORY, PROJECT, &copy, "x", "a/svc.signers/svc.signers.json"]
    {
        let refusal = build(&world, file).unwrap_err();
        assert_eq!(refusal, ChainRefusal::NotSigned(path(file)));
        assert!(refusal.to_string().starts_with("Invalid artifact path:"), "{refusal}");
    }
}

#[test]
fn a_copy_that_the_history_does_not_hold_is_a_fault_of_ours() {
    let mut world = world();
    world.repo.put(
        &path(&format!("{}.signers.json", index(0))),
        generation(0).0.text().replace(", ", ",").as_bytes(),
    );
    assert!(matches!(build(&world, &index(0)), Err(ChainRefusal::Stored(_))));
}

#[test]
fn the_chain_of_another_project_is_refused() {
    let other = path("https/github.com/443/acme/other");
    let error = chain::verify(&history(), &other).unwrap_err();
    assert_eq!((error.entry, error.fault), (0, ChainFault::OtherProject(path(PROJECT))));
}

#[test]
fn a_signers_file_that_is_older_is_refused() {
    assert_found_out(3, &ChainFault::NotLater, |history| {
        let entry = &mut history.entries[3];
        entry.signers_config = generation(3).0.text().replace("2026-01-04T00:00:00Z", "2026-01-02T00:00:00Z");
        let digest = Sha512::of(entry.signers_config.as_bytes());
        rewrite_metadata(entry, &people(3), |metadata| metadata.signers_file_digest = digest);
    });
}

#[test]
fn a_wrong_signature_is_refused_even_where_no_one_needs_it() {
    assert_found_out(1, &ChainFault::BadSignature(mallory().public_key()), |history| {
        let signature = mallory().sign(&Sha512::of(b"other"));
        let wrong = Collected { signature, collected_at: at("2026-02-01T12:00:00Z") };
        history.entries[1].signatures.add(mallory().public_key(), wrong);
    });
}

#[test]
fn metadata_are_read_strictly() {
    let mut history = history();
    let entry = &mut history.entries[0];
    entry.metadata = entry.metadata.replacen('{', "{\"version\": 1, ", 1);
    sign_anew(entry, &people(0));
    let doubled = chain::verify(&history, &path(PROJECT)).expect_err("the chain verifies").fault;
    assert!(matches!(doubled, ChainFault::Metadata(_)), "{doubled:?}");
}

#[test]
fn another_root_is_another_digest_and_only_its_user_can_tell() {
    let mut world = World::new();
    let theirs = signers("2026-01-01T00:00:00Z").artifact(1, [&mallory()]);
    world.register(&theirs, &mallory()).unwrap();
    world.sign(PENDING, &mallory()).unwrap();
    let history = world.repo.chain_of(ACTIVE).unwrap();
    let verified = chain::verify(&history, &path(PROJECT)).unwrap();
    assert_ne!(verified.links[0].digest, Sha512::of(generation(0).0.text().as_bytes()));
}
