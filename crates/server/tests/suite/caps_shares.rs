//! A thief of one admin key replaces proposals until no more may be replaced. The others can still propose (D171).

use countersign_core::values::key::SecretKey;
use countersign_server::{http::error::ApiError, operate::config::ServiceLimits};
use countersign_testing::*;

fn caps() -> ServiceLimits {
    ServiceLimits { superseded_per_project: 6, rotations_per_day: 2, ..Default::default() }
}

/// Bob and Carol administrate, Dave is the master.
fn team(second: usize) -> Signers {
    let time = format!("2026-02-01T09:{:02}:{:02}Z", second / 60, second % 60);
    signers(&time).artifact(1, [&alice()]).admin(2, [&bob(), &carol()]).master(1, [&dave()])
}

/// As the server does it: the rules, and then the caps.
fn propose(world: &mut World, second: usize, by: &SecretKey) -> Result<(), ApiError> {
    let proposal = world.proposal(&team(second), by);
    caps().check_update(&world.repo, &proposal, world.now)?;
    world.update(&team(second), by).expect("a proposal");
    Ok(())
}

#[test]
fn one_thief_does_not_use_up_what_the_others_may_propose() {
    let mut world = World::with(&team(0), &[&alice(), &bob(), &carol(), &dave()]);
    let mut second = 0;
    let mut next = || {
        second += 1;
        second
    };
    // One more than the cap, because the last one is pending.
    for _ in 0..=caps().superseded_per_project {
        propose(&mut world, next(), &bob()).expect("room");
    }
    let refused = propose(&mut world, next(), &bob()).expect_err("no room for the thief");
    assert_mentions(&refused.message, &["6 proposals", "limits.superseded_per_project"]);
    // Six for three leaders are two for each. The thief replaces each of them with what is known.
    for honest in [carol(), dave()] {
        for _ in 0..2 {
            propose(&mut world, next(), &honest).expect("a share of its own");
            propose(&mut world, next(), &bob()).expect_err("no room for the thief");
            let known = 1 + usize::from(world.repo.text(PENDING) == team(1).text());
            propose(&mut world, known, &bob()).expect("what is known comes back");
        }
        propose(&mut world, next(), &honest).expect_err("the share is used up");
    }
}
