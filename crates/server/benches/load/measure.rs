//! Measures one repository: reads on a server that has just started, then writes on another.
//!
//! The machine's speed drifts, so the compared servers take turns: the server, the bare handler, and a server whose
//! repository has the first size of the run.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::baseline::{Weight, Writes};
use crate::client::{Figures, Request};
use crate::operation::{Operation, WARM_UP};
use crate::report::{Afterwards, Grouped, Ratio, Reads, Row, SizeReport, Submitted};
use crate::seed::{IDLE_RELEASES, Seeded};
use crate::{
    Failure, baseline, client, documents::Collecting, listeners::Listeners, operation, options::Options,
    plan::Plan, process::Process, request, seed,
};

pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options,
    pub(crate) runtime: &'a Runtime,
    pub(crate) bare: &'a Process,
}

struct Prepared {
    plan: Plan,
    keeps_log: bool,
    seeded: Seeded,
}

impl Bench<'_> {
    /// `first` is the size to compare with.
    pub(crate) fn measure_size(&self, files: usize, first: Option<usize>) -> Result<SizeReport, Failure> {
        eprintln!("preparing about {files} files ...");
        let begun = Instant::now();
        let own = self.prepare(files, self.options.log && first.is_some())?;
        let prepared_s = begun.elapsed().as_secs_f64();
        let first = first.map(|files| self.prepare(files, false)).transpose()?;
        let repository = Weight::of(&own.seeded.repository())?;
        let (reads, mut rows) = self.measure_reads(&own, first.as_ref())?;
        let mut submitted = None;
        if self.options.operations.contains(&Operation::Submit) {
            let (writes, more) = self.measure_submissions(&own, first.as_ref())?;
            rows.extend(more);
            submitted = Some(writes);
        }
        Ok(SizeReport {
            shape: self.options.shape.to_string(),
            files: own.seeded.files,
            owners: own.plan.owners,
            releases_per_owner: own.plan.releases_per_owner,
            prepared_s,
            repository,
            reads,
            submitted,
            rows,
        })
    }

    fn prepare(&self, files: usize, keeps_log: bool) -> Result<Prepared, Failure> {
        let plan = Plan::new(self.options.shape, files);
        let seeded = match &self.options.keep {
            Some(keep) => seed::copy_kept(self.runtime, keep, (self.options.shape, files))?,
            None => seed::seed(self.runtime, plan)?,
        };
        Ok(Prepared { plan, keeps_log, seeded })
    }

    fn measure_reads(&self, own: &Prepared, first: Option<&Prepared>) -> Result<(Reads, Vec<Row>), Failure> {
        let server = own.serve()?;
        let memory_after_start = server.memory()?;
        server.wait_until_idle()?;
        check_list(&server)?;
        let first = first.map(|first| Ok::<_, Failure>((first, first.serve()?))).transpose()?;
        let mut rows = Vec::new();
        for operation in self.options.operations.iter().filter(|operation| **operation != Operation::Submit) {
            let first = first.as_ref().map(|(prepared, process)| (*prepared, process));
            rows.extend(self.measure_read(*operation, &operation.to_string(), (own, &server), first)?);
        }
        let reads = Reads {
            start_s: server.started_in.as_secs_f64(),
            memory_after_start,
            memory_after_reads: server.memory()?,
        };
        server.stop()?;
        Ok((reads, rows))
    }

    /// Measures one of the reads, as a row with this name.
    fn measure_read(
        &self,
        operation: Operation,
        name: &str,
        (own, server): (&Prepared, &Process),
        first: Option<(&Prepared, &Process)>,
    ) -> Result<Vec<Row>, Failure> {
        let clients = operation.clients(self.options.clients);
        let turns = |prepared: &Prepared, process| {
            let mut requests = operation.requests(prepared.plan)?;
            if operation.is_public() {
                client::drive(process, clients, &requests.split_off(requests.len() - WARM_UP))?;
            }
            Ok::<_, Failure>(requests)
        };
        let requests = turns(own, server.address)?;
        let bare = operation.is_public().then(|| vec![request::get("/"); requests.len()]);
        let bare = bare.map(|requests| Contestant::new("(bare handler)", self.bare, clients, requests));
        let bare = bare.map(|bare| ("the bare handler", bare));
        let first = first.map(|(prepared, process)| {
            let requests = turns(prepared, process.address)?;
            Ok::<_, Failure>(Contestant::new(&prepared.name(), process, clients, requests))
        });
        take_turns(
            operation.turns(),
            Contestant::new(name, server, clients, requests),
            first.transpose()?,
            bare,
        )
    }

    fn measure_submissions(
        &self,
        own: &Prepared,
        first: Option<&Prepared>,
    ) -> Result<(Submitted, Vec<Row>), Failure> {
        let (clients, submissions) = (self.options.clients, self.options.submissions);
        let mut repository_before = None;
        let mut serve = |prepared: &Prepared| -> Result<_, Failure> {
            let (dir, plan) = (prepared.seeded.data_dir(), prepared.plan);
            let parts = if self.options.listeners > 0 { 3 } else { 1 };
            let indexes = seed::add_collecting(self.runtime, &dir, plan, parts * submissions / 2)?;
            repository_before.get_or_insert(Weight::of(&prepared.seeded.repository())?);
            let server = prepared.serve()?;
            server.wait_until_idle()?;
            Ok((server, indexes))
        };
        let (server, mut indexes) = serve(own)?;
        let for_listeners = indexes.split_off(submissions / 2);
        let first = first.map(|first| Ok::<_, Failure>((first, serve(first)?))).transpose()?;
        let baseline_before = Writes::measure(own.seeded.beside())?;
        let submit = Operation::Submit.to_string();
        // Signed only now: the server refuses a request that is some minutes old.
        let contestant = Contestant::new(&submit, &server, clients, operation::submissions(&indexes));
        let first_contestant = first.as_ref().map(|(prepared, (process, indexes))| {
            Contestant::new(&prepared.name(), process, clients, operation::submissions(indexes))
        });
        let mut rows = take_turns(Operation::Submit.turns(), contestant, first_contestant, None)?;
        let baseline = baseline_before.mean(Writes::measure(own.seeded.beside())?);
        for row in rows.iter_mut().filter(|row| row.operation == submit) {
            let value = row.per_second / baseline.git_commits_per_second;
            row.ratio = Some(Ratio { value, to: "git commit" });
        }
        if self.options.listeners > 0 {
            rows.extend(self.measure_listened(&server, &for_listeners)?);
        }
        server.wait_until_idle()?;
        let memory_after_writes = server.memory()?;
        let rounds = server.stop()?;
        let repository_after = Weight::of(&own.seeded.repository())?;
        let (afterwards, more) = self.measure_afterwards(own)?;
        rows.extend(more);
        let submitted = Submitted {
            submissions,
            commits_per_fsync_round: submissions as f64 / rounds.max(1) as f64,
            afterwards,
            baseline,
            memory_after_writes,
            repository_before: repository_before.ok_or("nothing was served")?,
            repository_after,
        };
        Ok((submitted, rows))
    }
}

impl Bench<'_> {
    /// Submissions with and without listeners to events.
    fn measure_listened(&self, server: &Process, indexes: &[Collecting]) -> Result<Vec<Row>, Failure> {
        let Options { clients, listeners, listen_query, .. } = self.options;
        let (alone, listened) = indexes.split_at(indexes.len() / 2);
        let alone = Contestant::new("(no listeners)", server, *clients, operation::submissions(alone));
        let requests = operation::submissions(listened);
        let mut listened = Contestant::new(&format!("{listeners} listen"), server, *clients, requests);
        listened.listeners = Some((*listeners, listen_query.clone()));
        let bare = Some(("submissions without listeners", alone));
        take_turns(Operation::Submit.turns(), listened, None, bare)
    }

    /// A start, reads and a clone after the writes.
    fn measure_afterwards(&self, own: &Prepared) -> Result<(Afterwards, Vec<Row>), Failure> {
        let server = own.serve()?;
        let start_s = server.started_in.as_secs_f64();
        server.wait_until_idle()?;
        let mut rows = Vec::new();
        for operation in [Operation::Files, Operation::Signers] {
            rows.extend(self.measure_read(operation, &format!("{operation} after"), (own, &server), None)?);
        }
        server.stop()?;
        let clone_s = baseline::clone_time(&own.seeded.repository(), own.seeded.beside())?;
        Ok((Afterwards { start_s, clone_s }, rows))
    }
}

impl Prepared {
    fn serve(&self) -> Result<Process, Failure> {
        Process::start_server(&self.seeded.data_dir(), self.keeps_log, self.seeded.beside())
    }

    /// The name in comparisons.
    fn name(&self) -> String {
        format!("({} files)", Grouped(self.seeded.files))
    }
}

/// One of the compared servers.
struct Contestant<'a> {
    name: String,
    process: &'a Process,
    clients: usize,
    requests: Vec<Request>,
    figures: Figures,
    /// Turn by turn.
    rates: Vec<TurnRate>,
    cpu: Duration,
    /// How many clients listen meanwhile, and their query.
    listeners: Option<(usize, String)>,
}

#[derive(Clone, Copy)]
struct TurnRate {
    per_second: f64,
    p99_ms: f64,
}

/// The rows of all, with the measured server last. Rates are compared turn by turn.
fn take_turns(
    turns: usize,
    own: Contestant<'_>,
    first: Option<Contestant<'_>>,
    bare: Option<(&'static str, Contestant<'_>)>,
) -> Result<Vec<Row>, Failure> {
    let (has_first, (bare_name, bare)) = (first.is_some(), bare.unzip());
    let mut contestants: Vec<_> = bare.into_iter().chain(first).chain([own]).collect();
    for turn in 0..turns {
        contestants.iter_mut().try_for_each(|contestant| contestant.take_turn(turn, turns))?;
    }
    let rates: Vec<Vec<TurnRate>> =
        contestants.iter_mut().map(|each| std::mem::take(&mut each.rates)).collect();
    let mut rows: Vec<Row> = contestants.into_iter().map(Contestant::into_row).collect();
    if let (Some(own), Some(own_rates)) = (rows.last_mut(), rates.last()) {
        let compare = |to: usize, of: fn(&TurnRate) -> f64| median_ratio(own_rates, &rates[to], of);
        own.ratio = bare_name.map(|to| Ratio { value: compare(0, |rate| rate.per_second), to });
        own.p99_ratio = bare_name.map(|_| compare(0, |rate| rate.p99_ms));
        own.to_first_size =
            has_first.then(|| compare(usize::from(bare_name.is_some()), |rate| rate.per_second));
    }
    Ok(rows)
}

/// The median of the ratios of all turns.
fn median_ratio(own: &[TurnRate], other: &[TurnRate], of: fn(&TurnRate) -> f64) -> f64 {
    let mut ratios: Vec<f64> = own.iter().zip(other).map(|(own, other)| of(own) / of(other)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

impl<'a> Contestant<'a> {
    fn new(name: &str, process: &'a Process, clients: usize, requests: Vec<Request>) -> Self {
        let (figures, rates, cpu) = (Figures::default(), Vec::new(), Duration::ZERO);
        Self { name: name.to_owned(), process, clients, requests, figures, rates, cpu, listeners: None }
    }

    fn take_turn(&mut self, turn: usize, of: usize) -> Result<(), Failure> {
        let [begin, end] = [turn, turn + 1].map(|turn| self.requests.len() * turn / of);
        let open = |(count, query): &(usize, String)| Listeners::open(self.process.address, *count, query);
        let listeners = self.listeners.as_ref().map(open).transpose()?;
        let before = self.process.cpu_time()?;
        let figures = client::drive(self.process.address, self.clients, &self.requests[begin..end])?;
        let (per_second, p99_ms) = (figures.per_second(), figures.percentile_ms(0.99));
        self.rates.push(TurnRate { per_second, p99_ms });
        self.figures.add(figures);
        self.cpu += self.process.cpu_time()?.saturating_sub(before);
        listeners.map_or(Ok(()), Listeners::close)
    }

    fn into_row(self) -> Row {
        let Self { name, clients, figures, cpu, .. } = self;
        Row {
            operation: name,
            clients,
            count: figures.count(),
            per_second: figures.per_second(),
            p50_ms: figures.percentile_ms(0.5),
            p99_ms: figures.percentile_ms(0.99),
            p999_ms: figures.percentile_ms(0.999),
            server_cpu_us: cpu.as_secs_f64() * 1e6 / figures.count().max(1) as f64,
            answer_bytes: figures.bytes_per_answer(),
            ratio: None,
            p99_ratio: None,
            to_first_size: None,
        }
    }
}

/// An empty list would be fast for the wrong reason.
fn check_list(server: &Process) -> Result<(), Failure> {
    let listed = client::ask(server.address, &operation::list_of_idle())?;
    let count = listed.matches("svc.index.json").count();
    if count == IDLE_RELEASES {
        Ok(())
    } else {
        Err(format!("{count} files wait, not {IDLE_RELEASES}").into())
    }
}
