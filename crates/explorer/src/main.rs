//! Prints a table of all worlds: `cargo run --release -p countersign-explorer [-- --quick | --long] [WORLD …]`.

use std::{process::ExitCode, sync::Mutex};

use countersign_explorer::{
    search::{Counterexample, Extent, Visited, explore},
    world::World,
    worlds,
};

/// How many states of a world are visited at most: as a rule, with `--quick`, and with `--long`.
const MOST: usize = 160_000;
const MOST_QUICK: usize = 5_000;
const MOST_LONG: usize = 10_000_000;
/// Worlds are visited side by side.
const THREADS: usize = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (flags, names): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|it| it.starts_with("--"));
    let most = match flags[..] {
        [] => MOST,
        ["--quick"] => MOST_QUICK,
        ["--long"] => MOST_LONG,
        _ => {
            eprintln!("Usage: countersign-explorer [--quick | --long] [WORLD …]");
            return ExitCode::from(2);
        }
    };
    let worlds: Vec<World> = worlds::whole().into_iter().chain([worlds::large()]).collect();
    let chosen = worlds.iter().filter(|world| names.is_empty() || names.contains(&world.name));
    // The largest come first, so that no thread waits long for the other.
    let waiting: Mutex<Vec<&World>> = Mutex::new(chosen.collect());
    println!("{HEAD}");
    let results: Mutex<Vec<Result<Visited, Box<Counterexample>>>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(world) = take(&waiting) {
                    let extent = Extent {
                        most_states: most,
                        every_byte: world.name == "tiny" && most > MOST_QUICK,
                        ..Extent::WHOLE
                    };
                    let result = explore(world, extent);
                    match &result {
                        Ok(visited) => println!("{}", row(world, visited)),
                        // One counterexample is enough.
                        Err(_) => waiting.lock().expect("no thread has panicked").clear(),
                    }
                    results.lock().expect("no thread has panicked").push(result);
                }
            });
        }
    });
    report(&results.into_inner().expect("no thread has panicked"))
}

fn take<'w>(waiting: &Mutex<Vec<&'w World>>) -> Option<&'w World> {
    waiting.lock().expect("no thread has panicked").pop()
}

const HEAD: &str = "\
| world | thresholds | keys | projects | files | releases | clocks | requests | states | whole | steps | refused | depth | replayed | bytes | staples | seconds |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

fn row(world: &World, visited: &Visited) -> String {
    let sum = |count: fn(&countersign_explorer::world::ProjectPlan) -> usize| -> usize {
        world.projects.iter().map(count).sum()
    };
    let people: std::collections::BTreeSet<u8> = world.actions.iter().filter_map(|it| it.person()).collect();
    let whole = if visited.is_whole { "yes" } else { "no" };
    let Visited { states, steps, refused, depth, replayed, bytes_changed, staples, seconds, .. } = visited;
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
        depth.to_string(),
        replayed.to_string(),
        bytes_changed.to_string(),
        staples.to_string(),
        format!("{seconds:.1}"),
    ];
    format!("| {} |", cells.join(" | "))
}

fn report(results: &[Result<Visited, Box<Counterexample>>]) -> ExitCode {
    let visited: Vec<&Visited> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
    let states: usize = visited.iter().map(|visited| visited.states).sum();
    let steps: u64 = visited.iter().map(|visited| visited.steps).sum();
    println!("\n{states} states, {steps} steps");
    let mut code = ExitCode::SUCCESS;
    for counterexample in results.iter().filter_map(|result| result.as_ref().err()) {
        print!("\n{counterexample}");
        code = ExitCode::FAILURE;
    }
    code
}
