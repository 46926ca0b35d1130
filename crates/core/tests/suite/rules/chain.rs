//! The chain of signers files: building it (D19), and who is named when one was tampered with. The vectors `chain` have
//! one for each way to tamper with it (D10, D12, D15).

use std::sync::LazyLock;

use countersign_core::documents::history::History;
use countersign_core::rules::{chain, chain::ChainFault, chain::ChainRefusal};
use countersign_core::values::{digest::Sha512, key::SecretKey};
use countersign_testing::evidence::{Past, founded, rotated, with_signature};
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

fn build(world: &World, file: &str) -> Result<usize, ChainRefusal> {
    world.repo.chain_of(file).map(|history| history.entries.len())
}

#[test]
fn every_beginning_of_a_chain_of_three_rotations_verifies() {
    let history = history();
    let verified = chain::verify(&history, &path(PROJECT)).unwrap();
    assert_eq!(verified.project, path(PROJECT));
    assert_eq!(verified.links.len(), 4);
    for (n, link) in verified.links.iter().enumerate() {
        assert_eq!(link.digest, Sha512::of(generation(n).0.text().as_bytes()));
        assert_eq!(link.activated_at, history.entries[n].timestamp);
    }
    assert_eq!(verified.last().signers.timestamp(), at("2026-01-04T00:00:00Z"));
    for length in 1..=4 {
        let beginning = History { entries: history.entries[..length].to_vec() };
        assert_eq!(chain::verify(&beginning, &path(PROJECT)).unwrap().links.len(), length);
    }
}

#[test]
fn a_chain_ends_with_the_signers_file_that_governed_the_artifact_or_is_in_force() {
    let world = world();
    for n in 0..3 {
        let history = world.repo.chain_of(&index(n)).unwrap();
        assert_eq!(history.entries.len(), n + 1);
        assert_eq!(history.entries[n].signers_config, generation(n).0.text());
        assert!(chain::verify(&history, &path(PROJECT)).is_ok());
    }
    assert_eq!(build(&world, ACTIVE), Ok(4));
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
fn a_fault_names_its_entry_and_the_key() {
    let fault = |past: Past| {
        let error = chain::verify(&past.history, &path(PROJECT)).expect_err("the chain verifies");
        let named = format!("entry {} of the signers history: ", error.entry);
        assert!(error.to_string().starts_with(&named), "{error}");
        (error.entry, error.fault)
    };
    let older = signers("2025-12-31T00:00:00Z").artifact(1, [&alice()]);
    assert_eq!(fault(founded(PROJECT).then(&older, &[&alice(), &bob()])), (1, ChainFault::NotLater));
    let wrong = rotated(PROJECT).with(1, |entry| {
        entry.signatures = with_signature(entry.signatures.clone(), &mallory(), "another text");
    });
    assert_eq!(fault(wrong), (1, ChainFault::BadSignature(mallory().public_key())));
    let doubled = founded(PROJECT).with(0, |entry| {
        entry.metadata = entry.metadata.replacen('{', "{\"version\": 1, ", 1);
    });
    assert!(matches!(fault(doubled), (0, ChainFault::Metadata(_))));
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
