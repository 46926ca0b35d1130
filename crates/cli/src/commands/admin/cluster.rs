//! `countersign admin cluster`: moving a server into a database, and looking at the nodes.

use std::{path::Path, time::Duration};

use countersign_cluster::admin::{ClusterStatus, InitError, NodeStatus};
use countersign_cluster::{admin, database::Database, error::DatabaseError, schema::SchemaError};
use countersign_core::values::shown::shown_text;
use countersign_forge::forges::speaks_for;
use countersign_server::operate::config::{GivenDatabase, GivenSettings};
use countersign_store::sequence::{MAX_CLOCK_ERROR, PassedBatch};
use countersign_store::{audit, journal::export::JournalBatches, machine::clock::Clock};
use serde_json::{Value, json};

use crate::commands::admin::socket::{find_data_dir, open_stopped, read_settings};
use crate::words::{error::CliError, output::Output, table::Table, table::seconds_text};
use crate::{args::ClusterArgs, client::session};

/// What the first node is called that no server has started yet.
const SENDER: &str = "init";

pub(super) fn init(args: ClusterArgs, output: Output) -> Result<(), CliError> {
    let given = args.database();
    let (file, path) = find_data_dir(args.files)?;
    let database = find_database(&file, given)?;
    let (data_dir, opened) = open_stopped(&file, &path)?;
    check_history(data_dir.path())?;
    let export = opened.store.journal(None)?;
    let export = export
        .ok_or_else(|| CliError::other("the repository has no commits", "start it with `serve` first"))?;
    let commit = opened.store.head().commit;
    let batches = JournalBatches::new(export, None, |_| false);
    let address = database.settings().to_string();
    let written =
        session::runtime()?.block_on(admin::init(&database, SENDER, Clock::system().now(), batches));
    let written = written.map_err(|error| explain_init(error, &address))?;
    let text = format!(
        "The database {address} has everything up to the commit {commit}. Start this server and others with --database \
         now. They refuse requests that were signed before; clients sign again.\n"
    );
    output.result(&text, &json!({ "database": address, "commit": commit.to_string(), "batches": written }))
}

/// Nodes would pass over what the rules do not give, and each of them would stop at another place.
fn check_history(path: &Path) -> Result<(), CliError> {
    let checked = audit::walk::check(path, None, speaks_for, &mut |_| {})?;
    let Some(finding) = checked.findings.first() else { return Ok(()) };
    let files = finding.files.first().map(|file| format!("{file}: ")).unwrap_or_default();
    Err(CliError::other(
        format!("the commit {} breaks the rules: {files}{}", finding.commit, finding.reason),
        "nothing was changed. `countersign fsck` tells all of it. Use the data directory of a server that is right \
         (docs/cluster.md, A wrong node)",
    ))
}

pub(super) fn show_status(args: &ClusterArgs, output: Output) -> Result<(), CliError> {
    // Who names the database need not be able to read the packaged configuration.
    let file = match args.database() {
        Some(_) => GivenSettings::read(args.files.config.as_deref())?,
        None => read_settings(&args.files)?,
    };
    let database = find_database(&file, args.database())?;
    let address = database.settings().to_string();
    let status = session::runtime()?.block_on(admin::read_status(&database));
    let status = status.map_err(|error| explain(error, &address))?;
    output.answer(&describe(&status, &address), &to_json(&status))
}

fn find_database(file: &GivenSettings, given: Option<GivenDatabase>) -> Result<Database, CliError> {
    let node = file.database(given)?;
    let node = node.ok_or_else(|| {
        CliError::usage(
            "no database is set",
            "pass --database, set COUNTERSIGN_DATABASE, or set `url_file` in `[database]` of the configuration file",
        )
    })?;
    Database::new(node.database).map_err(|error| {
        CliError::other(error.to_string(), "docs/cluster.md, The settings, says what is needed")
            .because(error)
    })
}

fn describe(status: &ClusterStatus, address: &str) -> String {
    let mut text = match &status.newest {
        None => {
            format!("The database {address} is empty: the first node that starts makes a new repository.\n")
        }
        Some(newest) => {
            format!("{address}\nnewest batch {} of {}, commit {}\n", newest.seq, newest.at, newest.commit)
        }
    };
    if let Some(floor) = status.nonce_floor {
        text.push_str(&format!("requests signed before {floor} are refused\n"));
    }
    let mut table = Table::new(vec!["NODE", "POSITION", "SEEN", "CLOCK", "VERSION", "STATE"]);
    for node in &status.nodes {
        table.push(vec![
            node.name.clone(),
            node.position.to_string(),
            format!("{} ago", seconds_text(node.seen_ago.as_secs())),
            node.clock_millis.map(describe_clock).unwrap_or_default(),
            node.version.clone(),
            describe_state(node, status),
        ]);
    }
    if status.nodes.is_empty() {
        text.push_str("No node has used it yet.\n");
    } else {
        text.push_str(&format!("\n{table}"));
    }
    for node in &status.nodes {
        if let Some(reason) = &node.halted {
            text.push_str(&format!("\n{} has stopped: {}\n", node.name, shown_text(reason)));
        }
    }
    for batch in &status.passed {
        text.push_str(&format!("\n{}\n", describe_passed(batch)));
    }
    text
}

/// How far a clock is ahead of the database's; below 0 if it is behind.
fn describe_clock(millis: i64) -> String {
    format!("{:+.1}s", millis as f64 / 1_000.0)
}

/// What is wrong with a node, in a word or two.
fn describe_state(node: &NodeStatus, status: &ClusterStatus) -> String {
    let is_far = |millis: i64| Duration::from_millis(millis.unsigned_abs()) > MAX_CLOCK_ERROR;
    let differs = |other: &NodeStatus| {
        other.position == node.position && other.commit != node.commit && other.is_here() && node.is_here()
    };
    if node.halted.is_some() {
        "stopped".to_owned()
    } else if !node.is_here() {
        "gone".to_owned()
    } else if node.clock_millis.is_some_and(is_far) {
        "wrong clock".to_owned()
    } else if status.nodes.iter().any(differs) {
        "another history".to_owned()
    } else if node.lag > 0 {
        format!("{} behind", node.lag)
    } else {
        "ok".to_owned()
    }
}

fn describe_passed(batch: &PassedBatch) -> String {
    let PassedBatch { position, node, reason, votes } = batch;
    let others = if votes.others.is_empty() {
        String::new()
    } else {
        format!(" These have not: {}.", votes.others.join(", "))
    };
    format!(
        "Batch {} of the node {}, up to the commit {}, breaks the rules, and does not count. Passed over by: {}.{others}\n  {}\n  \
         If that node is still running, stop it (docs/cluster.md, A wrong node).",
        position.seq,
        shown_text(node),
        position.head,
        votes.against.join(", "),
        shown_text(reason)
    )
}

fn to_json(status: &ClusterStatus) -> Value {
    let node = |node: &NodeStatus| {
        json!({
            "name": node.name,
            "position": node.position,
            "commit": node.commit.map(|commit| commit.to_string()),
            "behind": node.lag,
            "version": node.version,
            "started": node.started.map(|time| time.to_string()),
            "seen_seconds_ago": node.seen_ago.as_secs(),
            "clock_seconds_ahead": node.clock_millis.map(|millis| millis as f64 / 1_000.0),
            "state": describe_state(node, status),
            "stopped": node.halted,
        })
    };
    let passed = |batch: &PassedBatch| {
        json!({
            "position": batch.position.seq,
            "commit": batch.position.head.to_string(),
            "node": batch.node,
            "reason": batch.reason,
            "passed_over_by": batch.votes.against,
            "not_by": batch.votes.others,
        })
    };
    json!({
        "newest": status.newest.as_ref().map(|newest| json!({
            "position": newest.seq,
            "commit": newest.commit.to_string(),
            "at": newest.at.to_string(),
        })),
        "nonce_floor": status.nonce_floor.map(|floor| floor.to_string()),
        "format": status.format,
        "nodes": status.nodes.iter().map(node).collect::<Vec<_>>(),
        "passed_over": status.passed.iter().map(passed).collect::<Vec<_>>(),
    })
}

fn explain(error: SchemaError, address: &str) -> CliError {
    match error {
        SchemaError::Database(error) => unreachable(error, address),
        SchemaError::Absent => CliError::other(
            format!("no node has used the database {address} yet"),
            "start one with `countersign serve --database URL`, or move a server there with `countersign admin cluster init`",
        ),
        error => CliError::other(error.to_string(), "docs/cluster.md says what a database needs"),
    }
}

fn explain_init(error: InitError, address: &str) -> CliError {
    match error {
        InitError::Schema(error) => explain(error, address),
        InitError::Database(error) => unreachable(error, address),
        error @ (InitError::NotEmpty { .. } | InitError::Broken { .. } | InitError::Source(_)) => {
            CliError::other(error.to_string(), "nothing was changed")
        }
    }
}

fn unreachable(error: DatabaseError, address: &str) -> CliError {
    CliError::unreachable(
        format!("the database {address} cannot be used"),
        "check the URL, and that the database runs and accepts connections from here",
    )
    .because(error)
}
