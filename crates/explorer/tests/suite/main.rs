//! Small runs of the explorer. The whole one is `cargo run --release -p countersign-explorer` (docs/assurance.md).

use countersign_explorer::{
    action::Action,
    invariants::Invariant,
    search::{Extent, explore},
    worlds,
};

/// So many states of each world take a few seconds without optimisation.
const FEW: usize = 1_500;

#[test]
fn what_must_hold_holds_in_the_first_states_of_every_world() {
    for world in worlds::whole().iter().chain([&worlds::large()]) {
        let visited = explore(world, Extent { most_states: FEW, ..Extent::WHOLE });
        let visited = visited.unwrap_or_else(|counterexample| panic!("{counterexample}"));
        println!("{}: {} states, {} steps", world.name, visited.states, visited.steps);
        assert!(visited.states >= FEW.min(300) && visited.steps > visited.states as u64, "{}", world.name);
    }
}

#[test]
fn equal_people_make_as_many_classes_as_a_search_that_renames_them_has_states() {
    let world = worlds::equals();
    let of = |symmetric, count_classes| {
        let extent = Extent { symmetric, count_classes, ..Extent::WHOLE };
        explore(&world, extent).unwrap_or_else(|counterexample| panic!("{counterexample}"))
    };
    let (renamed, plain) = (of(true, false), of(false, true));
    println!("{} states, {} with people renamed", plain.states, renamed.states);
    assert!(renamed.is_whole && plain.is_whole);
    assert_eq!(plain.classes, renamed.states);
    assert!(plain.states > 3 * renamed.states);
}

#[test]
fn a_state_that_locks_people_out_is_told_as_the_shortest_script() {
    let mut world = worlds::tiny();
    // Bob alone is left to register releases, and in this world he does not.
    world.actions.retain(|action| !matches!(action, Action::Assets { by: 1, .. }));
    let counterexample = explore(&world, Extent::WHOLE).expect_err("a counterexample");
    assert_eq!(counterexample.broken.invariant, Invariant::NoOneLockedOut);
    assert_eq!(counterexample.script.len(), 5, "{counterexample}");
    assert!(counterexample.to_string().contains("bob: signatures on the proposed signers of"));
}
