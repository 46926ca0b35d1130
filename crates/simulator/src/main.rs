//! `cargo run --release -p countersign-simulator [-- --seed SEED | --seeds COUNT [--from SEED]]`

use std::{
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use countersign_simulator::{figures::RunFigures, run};

const SEEDS: u64 = 5_000;
const THREADS: usize = 2;

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
    let is_told = seeds.end - seeds.start == 1;
    let (begin, next, has_failed) = (Instant::now(), AtomicU64::new(seeds.start), AtomicBool::new(false));
    let total = Mutex::new(RunFigures::default());
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(usize::try_from(seeds.end - seeds.start).unwrap_or(THREADS)) {
            scope.spawn(|| {
                while !has_failed.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let played = run(seed);
                    match played.result {
                        Ok(figures) => total.lock().expect("no thread panics with it").add(figures),
                        // One failure is enough.
                        Err(_) => has_failed.store(true, Ordering::Relaxed),
                    }
                    if is_told || played.result.is_err() {
                        println!("{played}");
                    }
                }
            });
        }
    });
    if has_failed.into_inner() {
        return ExitCode::FAILURE;
    }
    let RunFigures { steps, crashes, commits, answered } =
        total.into_inner().expect("no thread panics with it");
    println!(
        "{} seeds: {steps} steps of disks, {crashes} crashes, {commits} commits, {answered} answers; {:.1} s",
        seeds.end - seeds.start,
        begin.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}
