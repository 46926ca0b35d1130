//! The command line.

use std::{path::PathBuf, str::FromStr};

use crate::{Failure, operation::Operation, plan::Shape};

/// Enough for some seconds of writing.
const SUBMISSIONS: usize = 6_400;

pub(crate) const HELP: &str = "\
How fast the server is, how its size changes that, and how it compares with what the machine allows.

Usage: cargo bench -p countersign-server --bench load -- [OPTIONS]

  --files N,N,...   sizes of the repository, in files of its tree; one table each [default: 1000,100000;
                    owners: 450000, which are 50,000 owners; tags: 60006, which are 20,000 tags]
  --shape SHAPE     standard: up to 1,000 owners, who share the releases evenly [default]
                    owners: one release each
                    tags: one project with all the releases
  --clients N       connections at a time [default: 64]
  --only OP,...     files, files-hot, signers, chain, status, pending, pending-many, submit [default: all]
  --submissions N   how many signatures are submitted, half as many releases are signed [default: 6400]
  --listeners N     measure submissions also while so many clients listen to events, and alone in turns with that
  --listen QUERY    what they listen to, such as prefix=https/example.org [default: everything]
  --log             servers of all sizes but the first keep a log; a size that stands there twice shows what it costs
  --keep DIR        seed into DIR where it has no such repository yet, and measure a copy of that
  --json            one JSON object on standard output instead of tables
";

pub(crate) enum Command {
    Help,
    Measure(Options),
    /// Hidden: this process is the server that is measured, with a log or without.
    Serve {
        data_dir: PathBuf,
        keeps_log: bool,
    },
    /// Hidden: this process is the bare handler to compare with.
    Bare,
}

pub(crate) struct Options {
    pub(crate) sizes: Vec<usize>,
    pub(crate) shape: Shape,
    pub(crate) clients: usize,
    pub(crate) operations: Vec<Operation>,
    pub(crate) submissions: usize,
    pub(crate) listeners: usize,
    pub(crate) listen_query: String,
    pub(crate) log: bool,
    pub(crate) keep: Option<PathBuf>,
    pub(crate) json: bool,
}

impl Command {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let (mut sizes, mut operations) = (Vec::new(), Operation::ALL.to_vec());
        let (mut shape, mut clients, mut keep, mut json) = (Shape::Standard, 64, None, false);
        let mut log = false;
        let (mut submissions, mut listeners, mut listen_query) = (SUBMISSIONS, 0, String::new());
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value; see --help"));
            match argument.as_str() {
                "--files" => sizes = parse_list(&value()?)?,
                "--shape" => shape = value()?.parse()?,
                "--clients" => clients = value()?.parse()?,
                "--only" => operations = parse_list(&value()?)?,
                "--submissions" => submissions = value()?.parse::<usize>()?.next_multiple_of(2).max(2),
                "--listeners" => listeners = value()?.parse()?,
                "--listen" => listen_query = value()?,
                "--log" => log = true,
                "--keep" => keep = Some(PathBuf::from(value()?)),
                "--json" => json = true,
                "--serve" => {
                    return Ok(Self::Serve { data_dir: PathBuf::from(value()?), keeps_log: log });
                }
                "--bare" => return Ok(Self::Bare),
                "--help" | "-h" => return Ok(Self::Help),
                // Cargo passes this to every bench target.
                "--bench" => {}
                _ => return Err(format!("unknown argument {argument}; see --help").into()),
            }
        }
        if sizes.is_empty() {
            sizes = shape.default_sizes();
        }
        if clients == 0 || sizes.contains(&0) {
            return Err("--clients and --files must be above 0".into());
        }
        Ok(Self::Measure(Options {
            sizes,
            shape,
            clients,
            operations,
            submissions,
            listeners,
            listen_query,
            log,
            keep,
            json,
        }))
    }
}

fn parse_list<T: FromStr<Err: Into<Failure>>>(text: &str) -> Result<Vec<T>, Failure> {
    let parse = |item: &str| item.parse().map_err(|error: T::Err| format!("{item}: {}", error.into()).into());
    text.split(',').map(parse).collect()
}
