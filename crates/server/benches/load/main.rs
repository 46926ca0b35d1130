//! How fast the server is, and how its size changes that. Prints figures; asserts nothing about time.
//!
//! `cargo bench -p countersign-server --bench load` measures repositories of 100, 1,000 and 100,000 files;
//! `… -- 1000 50000` measures others. Machines differ and are noisy: compare the figures of one run with each other.

mod client;
mod measure;
mod seed;

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use countersign_core::path::RepoPath;
use countersign_server::{
    app::{self, Running},
    clock::Clock,
    config::{ConfigFile, Overrides, Settings},
};
use measure::Figures;
use seed::Seeded;

const CLIENTS: usize = 64;
const SUBMISSIONS: usize = 6_400;
const READS: usize = 40_000;
const LISTS: usize = 2_000;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let sizes: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![100, 1_000, 100_000] } else { sizes };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("baseline: {:.0} rounds of write and fsync per second", measure::fsync_rate()?);
    let bare = runtime.block_on(measure::bare_handler_address())?;
    let bare = measure::run(CLIENTS, READS, |client| client.connect(bare).map(|mut c| move |_| c.get("/")))?;
    println!("baseline: bare handler, {CLIENTS} clients: {}", bare.summary());
    for files in sizes {
        let _inside = runtime.enter();
        measure_size(&runtime, files, &bare)?;
    }
    Ok(())
}

fn measure_size(runtime: &tokio::runtime::Runtime, files: usize, bare: &Figures) -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let overrides = Overrides {
        listen: Some(([127, 0, 0, 1], 0).into()),
        data_dir: Some(directory.path().to_owned()),
        dev: Some(true),
        ..Overrides::default()
    };
    let settings = Settings::resolve(overrides, ConfigFile::default())?;
    let started = Instant::now();
    let seeded = runtime.block_on(seed::seed(&settings, files))?;
    println!(
        "\n{} files in {} projects (seeded in {:.1?})",
        seeded.files,
        seeded.projects,
        started.elapsed()
    );

    let started = Instant::now();
    let running = runtime.block_on(app::start(settings, Clock::system()))?;
    println!("  start                 {:.3} s", started.elapsed().as_secs_f64());

    let reads = measure_reads(&running, &seeded)?;
    let ratio = reads.per_second() / bare.per_second();
    println!("  GET files             {}  ({ratio:.2} of the bare handler)", reads.summary());
    println!("  GET pending, 1 client {}", measure_lists(&running, &seeded)?.summary());
    let releases = runtime.block_on(seed::add_collecting(running.app(), &seeded.signers, SUBMISSIONS / 2))?;
    let before = running.app().store().publishes();
    let submissions = measure_submissions(&running, &seeded, &releases)?;
    let rounds = running.app().store().publishes() - before;
    println!("  POST signatures       {}", submissions.summary());
    println!("                        {:.1} commits per round of fsync", SUBMISSIONS as f64 / rounds as f64);
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(10), running.stop()).await })??;
    Ok(())
}

fn measure_reads(running: &Running, seeded: &Seeded) -> Result<Figures, Failure> {
    measure::run(CLIENTS, READS, |client| {
        let mut connection = client.connect(running.address)?;
        Ok(move |i: usize| {
            let path = &seeded.indexes[(i * 7_919) % seeded.indexes.len()];
            connection.get(&format!("/v1/files/{path}"))
        })
    })
}

fn measure_lists(running: &Running, seeded: &Seeded) -> Result<Figures, Failure> {
    measure::run(1, LISTS, |client| {
        let mut connection = client.connect(running.address)?;
        Ok(move |_| connection.signed_get(&seeded.idle_signer, "/v1/pending_signatures"))
    })
}

/// Each index is signed by two of three signers, so that every second submission completes one.
fn measure_submissions(
    running: &Running,
    seeded: &Seeded,
    releases: &[(RepoPath, Arc<[u8]>)],
) -> Result<Figures, Failure> {
    measure::run(CLIENTS, SUBMISSIONS, |client| {
        let mut connection = client.connect(running.address)?;
        Ok(move |i: usize| {
            let (path, content) = &releases[i / 2];
            connection.submit(&seeded.signers[i % 2], path, content)
        })
    })
}
