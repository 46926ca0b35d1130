//! Worlds side by side in two threads, and one row of the table of bounds for each.

use std::{collections::BTreeSet, sync::Mutex};

use crate::search::{Counterexample, Extent, Visited, explore};
use crate::world::{ProjectPlan, World};

const THREADS: usize = 2;
/// Worlds of which so many states or more are asked for have every byte of a step changed, where their care says so.
const EVERY_BYTE: usize = 100_000;

/// Visits each world up to so many states, and tells of each as it is done. One counterexample is enough.
pub fn visit(
    worlds: &[World],
    most_states: impl Fn(&World) -> usize + Sync,
    tell: impl Fn(&World, &Visited) + Sync,
) -> Vec<Result<Visited, Box<Counterexample>>> {
    // The largest are last in the list, and come first, so that no thread waits long for the other.
    let waiting: Mutex<Vec<&World>> = Mutex::new(worlds.iter().collect());
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(world) = take(&waiting) {
                    let most_states = most_states(world);
                    let every_byte = world.care.every_byte && most_states >= EVERY_BYTE;
                    let result = explore(world, Extent { most_states, every_byte, ..Extent::WHOLE });
                    match &result {
                        Ok(visited) => tell(world, visited),
                        Err(_) => waiting.lock().expect("no thread has panicked").clear(),
                    }
                    results.lock().expect("no thread has panicked").push(result);
                }
            });
        }
    });
    results.into_inner().expect("no thread has panicked")
}

fn take<'w>(waiting: &Mutex<Vec<&'w World>>) -> Option<&'w World> {
    waiting.lock().expect("no thread has panicked").pop()
}

/// The first two lines of the table.
pub const HEAD: &str = "\
| world | thresholds | keys | projects | files | releases | clocks | requests | states | whole | steps | refused | decisions | depth | replayed | bytes | staples | seconds |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

pub fn row(world: &World, visited: &Visited) -> String {
    let sum = |count: fn(&ProjectPlan) -> usize| -> usize { world.projects.iter().map(count).sum() };
    let people: BTreeSet<u8> = world.actions.iter().filter_map(|it| it.person()).collect();
    let whole = if visited.is_whole { "yes" } else { "no" };
    let Visited {
        states, steps, refused, decisions, depth, replayed, bytes_changed, staples, seconds, ..
    } = visited;
    let cells = [
        world.name.to_owned(),
        world.about.to_owned(),
        people.len().to_string(),
        world.projects.len().to_string(),
        sum(|plan| plan.files.len()).to_string(),
        sum(|plan| plan.releases.len() * plan.contents.len()).to_string(),
        world.clocks.len().to_string(),
        world.actions.len().to_string(),
        states.to_string(),
        whole.to_owned(),
        steps.to_string(),
        refused.to_string(),
        decisions.to_string(),
        depth.to_string(),
        replayed.to_string(),
        bytes_changed.to_string(),
        staples.to_string(),
        format!("{seconds:.1}"),
    ];
    format!("| {} |", cells.join(" | "))
}
