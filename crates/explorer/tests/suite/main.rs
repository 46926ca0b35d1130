//! A run of the explorer with bounds. The longer ones are `cargo run --release -p countersign-explorer`
//! (docs/assurance.md).

use std::io::Write as _;

use countersign_explorer::search::{Extent, HEAD, explore, row, visit};
use countersign_explorer::{action::Action, invariants::Invariant, world::World, worlds};

mod bulk;

/// How many states of each world are visited at most: together more than 300,000.
fn most_states(world: &World) -> usize {
    match world.name {
        "large" => 300_000,
        // Their decisions are costly: few states agree in what they read.
        "waiting" | "patience" => 1_500,
        _ => 10_000,
    }
}

/// The table goes to the log of a run, past the test program that keeps what passing tests print.
#[test]
fn what_must_hold_holds_in_every_state_up_to_the_bound() {
    let tell = |line: &str| writeln!(std::io::stderr(), "{line}").expect("standard error is open");
    tell(HEAD);
    let results = visit(&worlds::all(), most_states, |world, visited| tell(&row(world, visited)));
    let mut states = 0;
    for result in results {
        let visited = result.unwrap_or_else(|counterexample| panic!("{counterexample}"));
        assert!(visited.steps > visited.states as u64);
        states += visited.states;
    }
    tell(&format!("{states} states"));
    assert!(states >= 300_000);
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
fn what_is_remembered_of_a_decision_is_what_the_rules_decide_anew() {
    let whole = usize::MAX;
    for (world, most_states) in
        [(worlds::equals(), whole), (worlds::neighbours(), whole), (worlds::patience(), 1_000)]
    {
        let of = |remember| {
            let visited = explore(&world, Extent { remember, most_states, ..Extent::WHOLE });
            let visited = visited.unwrap_or_else(|counterexample| panic!("{counterexample}"));
            (visited.decisions, (visited.states, visited.steps, visited.refused, visited.depth))
        };
        let ((few, remembered), (all, anew)) = (of(true), of(false));
        assert_eq!(remembered, anew, "{}", world.name);
        assert!(all > 3 * few, "{}: {all} decisions, {few} remembered", world.name);
    }
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
