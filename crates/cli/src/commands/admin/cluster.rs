//! `countersign admin cluster`: moving a server into a database, and looking at the nodes.

use countersign_cluster::{
    admin::{self, ClusterStatus, InitError, NodeStatus},
    database::Database,
    error::DatabaseError,
    schema::SchemaError,
};
use countersign_server::config::{ConfigFile, GivenDatabase};
use countersign_store::{clock::Clock, journal::batches::JournalBatches};
use serde_json::{Value, json};

use super::data_dir::{find_data_dir, open_stopped};
use crate::{
    args::{ClusterArgs, ClusterCommand},
    error::CliError,
    output::Output,
    setup,
    table::Table,
};

/// What the first node is called that no server has started yet.
const SENDER: &str = "init";
/// A node says that it is there every few seconds.
const MAX_SILENCE_SECONDS: u64 = 20;

pub(super) fn run(command: ClusterCommand, output: Output) -> Result<(), CliError> {
    match command {
        ClusterCommand::Init(args) => init(args, output),
        ClusterCommand::Status(args) => show_status(&args, output),
    }
}

fn init(args: ClusterArgs, output: Output) -> Result<(), CliError> {
    let given = args.database();
    let (file, path) = find_data_dir(args.files)?;
    let database = find_database(&file, given)?;
    let (_data_dir, opened) = open_stopped(&file, &path)?;
    let export = opened.store.journal(None)?;
    let export = export
        .ok_or_else(|| CliError::other("the repository has no commits", "start it with `serve` first"))?;
    let commit = opened.store.head().commit;
    let batches = JournalBatches::new(export, None, |_| false);
    let address = database.settings().to_string();
    let written = setup::runtime()?.block_on(admin::init(&database, SENDER, Clock::system().now(), batches));
    let written = written.map_err(|error| explain_init(error, &address))?;
    let text = format!(
        "The database {address} has everything up to the commit {commit}. Start this server and others with --database \
         now. They refuse requests that were signed before; clients sign again.\n"
    );
    output.result(&text, &json!({ "database": address, "commit": commit.to_string(), "batches": written }))
}

fn show_status(args: &ClusterArgs, output: Output) -> Result<(), CliError> {
    let file = setup::read_config(&args.files)?;
    let database = find_database(&file, args.database())?;
    let address = database.settings().to_string();
    let status = setup::runtime()?.block_on(admin::read_status(&database));
    let status = status.map_err(|error| explain(error, &address))?;
    output.answer(&describe(&status, &address), &to_json(&status))
}

fn find_database(file: &ConfigFile, given: Option<GivenDatabase>) -> Result<Database, CliError> {
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
    let mut table = Table::new(vec!["NODE", "POSITION", "BEHIND", "SEEN", "VERSION"]);
    for node in &status.nodes {
        table.push(vec![
            node.name.clone(),
            node.position.to_string(),
            node.lag.to_string(),
            describe_seen(node),
            node.version.clone(),
        ]);
    }
    if status.nodes.is_empty() {
        text.push_str("No node has used it yet.\n");
    } else {
        text.push_str(&format!("\n{table}"));
    }
    text
}

fn describe_seen(node: &NodeStatus) -> String {
    let seconds = node.seen_ago.as_secs();
    let gone = if seconds > MAX_SILENCE_SECONDS { ": not running, or cut off" } else { "" };
    format!("{seconds} s ago{gone}")
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
