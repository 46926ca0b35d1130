mod activation;
mod assets;
mod auth;
mod chain;
mod create;
mod delays;
mod formats;
mod masters_against_admins;
mod object;
mod place;
mod query;
mod quorum;
mod rebuild;
mod register;
mod registrars;
mod revoke;
mod revoke_rotation;
mod sign;
mod stored;
mod tally;
mod update;
mod url_places;
mod veto;
mod withdraw;

use countersign_core::rules::decide::sign::{SignRefusal, Signed};
use countersign_core::values::key::SecretKey;
use countersign_testing::{Signers, World, alice, bob, carol, dave, key, release, signers};

const COMPLETE: Result<Signed, SignRefusal> = Ok(Signed { is_complete: true, waits_until: None });
const INCOMPLETE: Result<Signed, SignRefusal> = Ok(Signed { is_complete: false, waits_until: None });

/// A registrar.
fn machine() -> SecretKey {
    key(7)
}

/// Alice and Bob sign releases, Carol and key 5 administrate together, Dave is master, key 6 revokes.
fn whole_team() -> Signers {
    signers("2026-01-31T10:00:00Z")
        .artifact(1, [&alice(), &bob()])
        .admin(2, [&carol(), &key(5)])
        .master(1, [&dave()])
        .revocation(1, [&key(6)])
}

fn active() -> World {
    World::with(&whole_team(), &[&alice(), &bob(), &carol(), &dave(), &key(5), &key(6)])
}

/// Two of Alice, Bob and Carol sign releases, Dave is master.
fn team() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob(), &carol()]).master(1, [&dave()])
}

/// This team, and the release v1 that waits for its signatures.
fn collecting() -> World {
    let mut world = World::with(&team(), &[&alice(), &bob(), &carol(), &dave()]);
    world.add_release(&release("v1", "one"), &alice()).expect("a release");
    world
}
