//! The figures, as tables and as JSON.

use std::fmt;

use serde::Serialize;

use crate::{baseline::Weight, baseline::Writes, process::Memory};

#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) processors: usize,
    pub(crate) notes: &'static str,
    pub(crate) sizes: Vec<SizeReport>,
}

pub(crate) const NOTES: &str = "\
Server and bare handler are processes of their own; the load shares the machine with them. Requests were signed before
the clock started. `cpu us` is the processor time of the server for one request. `ratio` is throughput compared with
the bare handler, which takes turns with the server (reads), with a loop of durable `git commit` (submit), or with
submissions without listeners, in turns with those that many listen to (listen); `p99` compares the 99th
percentiles of the same two; `to first` is throughput compared with a repository of the run's first size, which takes
turns as well. Of turns, the median of their ratios is given.";

#[derive(Serialize)]
pub(crate) struct SizeReport {
    pub(crate) shape: String,
    /// In the tree, without the releases for the submissions.
    pub(crate) files: usize,
    pub(crate) owners: usize,
    pub(crate) releases_per_owner: usize,
    pub(crate) prepared_s: f64,
    pub(crate) repository: Weight,
    pub(crate) reads: Reads,
    pub(crate) submitted: Option<Submitted>,
    pub(crate) rows: Vec<Row>,
}

#[derive(Serialize)]
pub(crate) struct Reads {
    pub(crate) start_s: f64,
    pub(crate) memory_after_start: Memory,
    pub(crate) memory_after_reads: Memory,
}

/// How the writes changed a start and a clone.
#[derive(Serialize)]
pub(crate) struct Afterwards {
    pub(crate) start_s: f64,
    /// `git clone --mirror --no-local`
    pub(crate) clone_s: f64,
}

#[derive(Serialize)]
pub(crate) struct Submitted {
    /// Two on each of half as many releases, of three files each, which exist only for this part.
    pub(crate) submissions: usize,
    pub(crate) afterwards: Afterwards,
    pub(crate) commits_per_fsync_round: f64,
    pub(crate) baseline: Writes,
    /// The memory of another process than that of the reads.
    pub(crate) memory_after_writes: Memory,
    pub(crate) repository_before: Weight,
    pub(crate) repository_after: Weight,
}

#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) operation: String,
    pub(crate) clients: usize,
    pub(crate) count: usize,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) p999_ms: f64,
    pub(crate) server_cpu_us: f64,
    pub(crate) answer_bytes: usize,
    pub(crate) ratio: Option<Ratio>,
    /// The 99th percentile compared with that of the same contestant.
    pub(crate) p99_ratio: Option<f64>,
    /// The throughput compared with that of a repository of the run's first size, which took turns with this one.
    pub(crate) to_first_size: Option<f64>,
}

#[derive(Serialize)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) to: &'static str,
}

impl fmt::Display for SizeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shape, files, owners, releases_per_owner, prepared_s, repository, reads, .. } = self;
        writeln!(
            f,
            "\n{shape}: {} files ({} owners x {} complete releases), prepared in {prepared_s:.1} s",
            Grouped(*files),
            Grouped(*owners),
            Grouped(*releases_per_owner),
        )?;
        writeln!(f, "  repository  {}", Shown(repository))?;
        writeln!(f, "  start       {:.3} s, with {}", reads.start_s, Shown(&reads.memory_after_start))?;
        writeln!(f, "  reads       left {}", Shown(&reads.memory_after_reads))?;
        if let Some(submitted) = &self.submitted {
            write!(f, "{}", Shown(submitted))?;
        }
        writeln!(
            f,
            "  {:<17}{:>8}{:>12}{:>10}{:>10}{:>10}{:>9}{:>8}{:>8}{:>10}",
            "operation",
            "clients",
            "per second",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
            "cpu us",
            "ratio",
            "p99",
            "to first"
        )?;
        self.rows.iter().try_for_each(|row| writeln!(f, "  {}", Shown(row)))
    }
}

/// Writes this as a part of the table.
struct Shown<'a, T>(&'a T);

impl fmt::Display for Shown<'_, Row> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.0;
        let optional = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        write!(
            f,
            "{:<17}{:>8}{:>12}{:>10.3}{:>10.3}{:>10.3}{:>9.1}{:>8}{:>8}{:>10}",
            row.operation,
            row.clients,
            Grouped(row.per_second as usize).to_string(),
            row.p50_ms,
            row.p99_ms,
            row.p999_ms,
            row.server_cpu_us,
            optional(row.ratio.as_ref().map(|ratio| ratio.value)),
            optional(row.p99_ratio),
            optional(row.to_first_size),
        )
    }
}

impl fmt::Display for Shown<'_, Submitted> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Submitted { submissions, baseline, repository_before, repository_after, .. } = self.0;
        let grown = repository_after.bytes.saturating_sub(repository_before.bytes);
        writeln!(
            f,
            "  writes      {} submissions on {} more releases left {}",
            Grouped(*submissions),
            Grouped(*submissions / 2),
            Shown(&self.0.memory_after_writes),
        )?;
        writeln!(
            f,
            "              {:.1} commits per round of fsync; {}, which is {} bytes more per submission",
            self.0.commits_per_fsync_round,
            Shown(repository_after),
            Grouped(grown as usize / submissions),
        )?;
        let Afterwards { start_s, clone_s } = self.0.afterwards;
        writeln!(f, "              afterwards a start takes {start_s:.3} s, and a git clone {clone_s:.2} s")?;
        writeln!(
            f,
            "  baseline    {:.0} rounds of write and fsync, {:.1} durable git commits per second",
            baseline.fsyncs_per_second, baseline.git_commits_per_second
        )
    }
}

impl fmt::Display for Shown<'_, Memory> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Memory { resident_bytes, mapped_bytes, peak_bytes } = *self.0;
        let [resident, mapped, peak] = [resident_bytes, mapped_bytes, peak_bytes].map(mebibytes);
        write!(f, "{resident:.0} MiB of memory, {mapped:.0} of them mapped files; {peak:.0} MiB at most")
    }
}

impl fmt::Display for Shown<'_, Weight> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Weight { bytes, packs, objects } = *self.0;
        let (size, objects) = (mebibytes(bytes), Grouped(objects as usize));
        write!(f, "{size:.1} MiB on disk, {packs} packs, {objects} objects")
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// 1,000,000 rather than 1000000.
pub(crate) struct Grouped(pub(crate) usize);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::new();
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.write_str(&text)
    }
}
