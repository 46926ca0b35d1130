//! How fast the server is, and how the size of its repository changes that. Prints figures; asserts nothing about time.
//!
//! `cargo bench -p countersign-server --bench load -- --help` lists the options.

use std::{error::Error, process::ExitCode, thread};

use measure::Bench;
use options::{Command, Options};
use process::Process;
use report::{NOTES, Report};

mod baseline;
mod client;
mod documents;
mod listeners;
mod measure;
mod operation;
mod options;
mod plan;
mod process;
mod report;
mod request;
mod seed;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    match Command::parse(std::env::args().skip(1))? {
        Command::Help => {
            print!("{}", options::HELP);
            Ok(())
        }
        Command::Measure(options) => measure_all(&options),
        Command::Serve { data_dir, keeps_log } => process::serve(&data_dir, keeps_log),
        Command::Bare => process::serve_bare(),
    }
}

fn measure_all(options: &Options) -> Result<(), Failure> {
    let runtime = process::runtime()?;
    let bare = Process::start_bare()?;
    let bench = Bench { options, runtime: &runtime, bare: &bare };
    let processors = thread::available_parallelism()?.get();
    let mut report = Report { processors, notes: NOTES, sizes: Vec::new() };
    if !options.json {
        println!("{NOTES}\n{processors} processors");
    }
    for files in &options.sizes {
        let first = options.sizes.first().filter(|_| !report.sizes.is_empty());
        let size = bench.measure_size(*files, first.copied())?;
        if !options.json {
            print!("{size}");
        }
        report.sizes.push(size);
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    Ok(())
}
