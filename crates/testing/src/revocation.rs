//! A complete index that two people have signed, and how others withdraw it.

use countersign_core::{
    documents::signatures::SignatureSet,
    rules::decide::statement::{Stated, StatementRefusal},
    values::key::SecretKey,
};

use super::{INDEX, PROJECT, Signers, World, alice, bob, carol, dave, key, signers};

pub type RevokeResult = Result<Stated, StatementRefusal>;
pub const REVOKED: RevokeResult = Ok(Stated { in_force: true });
pub const RECORDED: RevokeResult = Ok(Stated { in_force: false });

/// A team in which Alice and Bob sign releases and are admins, both needed; Dave is master.
pub fn team() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]).master(1, [&dave()])
}

/// A complete index of a project that leaves revocation to its admins.
pub fn complete() -> World {
    let mut world = World::with(&team(), &[&alice(), &bob(), &dave()]);
    world.release_signed_by(&[&alice(), &bob()]);
    world
}

/// A complete index of a project in which two of Carol, key 5 and key 6 revoke.
pub fn two_of_three() -> World {
    let file = team().revocation(2, [&carol(), &key(5), &key(6)]);
    let mut world = World::with(&file, &[&alice(), &bob(), &carol(), &dave(), &key(5), &key(6)]);
    world.release_signed_by(&[&alice(), &bob()]);
    world
}

pub fn post(world: &mut World, document: &str, by: &SecretKey) -> RevokeResult {
    let request = world.revoke_request(document, by);
    world.revoke(&request)
}

/// A refusal, which leaves everything as it was.
#[track_caller]
pub fn refusal(world: &mut World, document: &str, by: &SecretKey) -> StatementRefusal {
    let before = world.repo.clone();
    let refusal = post(world, document, by).expect_err("a refusal");
    assert_eq!(world.repo, before);
    refusal
}

pub fn names(world: &World) -> Vec<&str> {
    let below = world.repo.names_below(&format!("{PROJECT}/releases/tag/v1"));
    below.into_iter().map(|name| name.strip_prefix("svc.index.json").expect("a file of the index")).collect()
}

pub fn set(world: &World, suffix: &str) -> SignatureSet {
    SignatureSet::parse(&world.repo.bytes(&format!("{INDEX}{suffix}"))).expect("a signatures file")
}
