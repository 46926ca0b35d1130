//! `cargo run --release -p countersign-simulator [-- --seed SEED | --seeds COUNT [--from SEED]]`

use std::{process::ExitCode, time::Instant};

use countersign_simulator::{run, run_all, script::RunFigures};

const SEEDS: u64 = 5_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let parsed = |text: &str| text.parse::<u64>().ok();
    let seeds = match arguments[..] {
        [] => Some(0..SEEDS),
        ["--seed", seed] => parsed(seed).map(|seed| seed..seed + 1),
        ["--seeds", count] => parsed(count).map(|count| 0..count),
        ["--seeds", count, "--from", from] => {
            parsed(count).zip(parsed(from)).map(|(count, from)| from..from + count)
        }
        _ => None,
    };
    let Some(seeds) = seeds else {
        eprintln!("Usage: countersign-simulator [--seed SEED | --seeds COUNT [--from SEED]]");
        return ExitCode::from(2);
    };
    // The run of one seed is told in full.
    if seeds.end - seeds.start == 1 {
        let played = run(seeds.start);
        println!("{played}");
        return if played.result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let begin = Instant::now();
    let RunFigures { steps, crashes, commits, answered } = match run_all(seeds.clone()) {
        Ok(total) => total,
        Err(failed) => {
            println!("{failed}");
            return ExitCode::FAILURE;
        }
    };
    println!(
        "{} seeds: {steps} steps of disks, {crashes} crashes, {commits} commits, {answered} answers; {:.1} s",
        seeds.end - seeds.start,
        begin.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}
