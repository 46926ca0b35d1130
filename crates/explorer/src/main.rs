//! Prints a table of all worlds: `cargo run --release -p countersign-explorer [-- --quick | --long] [WORLD …]`.

use std::process::ExitCode;

use countersign_explorer::{search::HEAD, search::row, search::visit, worlds};

/// How many states of a world are visited at most: as a rule, with `--quick`, and with `--long`.
const MOST: usize = 700_000;
const MOST_QUICK: usize = 5_000;
const MOST_LONG: usize = 10_000_000;

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
    let mut chosen = worlds::all();
    chosen.retain(|world| names.is_empty() || names.contains(&world.name));
    println!("{HEAD}");
    let results = visit(&chosen, |_| most, |world, visited| println!("{}", row(world, visited)));
    let visited = || results.iter().flatten();
    let states: usize = visited().map(|visited| visited.states).sum();
    let steps: u64 = visited().map(|visited| visited.steps).sum();
    println!("\n{states} states, {steps} steps");
    let counterexamples: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    counterexamples.iter().for_each(|counterexample| print!("\n{counterexample}"));
    if counterexamples.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
