//! The tables, and whether this program can use them.

use std::time::Duration;

use thiserror::Error;
use tokio_postgres::{error::SqlState, types::Type};
use uuid::Uuid;

use crate::database::{Database, DatabaseSession, within};
use crate::error::DatabaseError;

/// The format of the tables below. A program refuses a database with a higher one.
pub const FORMAT: i32 = 2;
/// The oldest version of the server: PostgreSQL 13.
const OLDEST_SERVER: i32 = 130_000;
/// How long one statement about tables can take.
const LIMIT: Duration = Duration::from_secs(30);

/// Advisory locks: this one while tables are made, in the whole database; the other one with the table's number.
const SCHEMA_LOCK: &str = "select pg_advisory_xact_lock(6011731)";

/// Values of `nonce_purged` are the latest expiry among forgotten nonces (see `purge`). A row of `svc_passed` says that
/// a node passes over a batch (D195).
const TABLES: &str = "
    create table svc_repository (
        one boolean primary key default true check (one),
        repo uuid not null,
        format integer not null,
        nonce_floor timestamptz,
        nonce_purged timestamptz);
    create table svc_batch (
        seq bigint primary key,
        id uuid not null unique,
        node text not null,
        base bytea,
        head bytea not null,
        commits integer not null,
        at timestamptz not null default now(),
        body bytea not null);
    alter table svc_batch alter column body set storage external;
    create index svc_batch_head on svc_batch (head);
    create table svc_nonce (
        nonce uuid primary key,
        expires timestamptz not null);
    create index svc_nonce_expires on svc_nonce (expires);
    create table svc_webhook (
        name text primary key,
        commit bytea);
    create table svc_checkpoint (
        one boolean primary key default true check (one),
        size bigint not null,
        note bytea not null);
    create table svc_passed (
        seq bigint not null,
        node text not null,
        head bytea not null,
        author text not null,
        reason text not null,
        at timestamptz not null default now(),
        primary key (seq, head, node));
    create table svc_node (
        name text primary key,
        position bigint,
        commit bytea,
        version text,
        started timestamptz,
        seen timestamptz,
        clock_millis bigint,
        halted text);";

/// What is true of a database that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedDatabase {
    /// Warnings of which an operator must know, but which keep nothing from working.
    pub warnings: Vec<String>,
    /// Whether there were no tables.
    pub was_empty: bool,
}

#[derive(Debug, Error)]
pub enum SchemaError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("PostgreSQL {0} is too old. Countersign needs PostgreSQL 13 or newer")]
    TooOld(String),
    #[error(
        "the database was written by a newer program (format {found}; this program knows {FORMAT}). Upgrade this node"
    )]
    Newer { found: i32 },
    #[error(
        "the database was written by an older program (format {found}; this program writes {FORMAT}). Stop all nodes, and \
         put the data directory of one of them into an empty database with `countersign admin cluster init`"
    )]
    Older { found: i32 },
    #[error(
        "the role `{role}` may not create tables in the schema `{schema}`. Let it: grant usage, create on schema \
         \"{schema}\" to \"{role}\";"
    )]
    MayNotCreate { role: String, schema: String },
    #[error(
        "the database has no schema for the tables. Create one, or set search_path for the role `{role}`"
    )]
    NoSchema { role: String },
    #[error(
        "the role `{role}` may not use the tables in the database. Let it: grant select, insert, update, delete on all tables in schema \"{schema}\" to \"{role}\";"
    )]
    MayNotUse { role: String, schema: String },
    #[error("the database has no tables of Countersign")]
    Absent,
}

/// Makes the tables if there are none, and looks whether all is well.
pub async fn prepare(database: &Database) -> Result<PreparedDatabase, SchemaError> {
    let (session, facts, found) = look_at(database).await?;
    if found.was_empty {
        create(&session).await.map_err(|error| facts.explain(error))?;
    }
    Ok(found)
}

/// Looks whether all is well, and changes nothing.
pub async fn inspect(database: &Database) -> Result<PreparedDatabase, SchemaError> {
    look_at(database).await.map(|(_, _, found)| found)
}

async fn look_at(
    database: &Database,
) -> Result<(DatabaseSession, ServerFacts, PreparedDatabase), SchemaError> {
    let session = database.connect("setup", LIMIT).await?;
    let facts = ServerFacts::ask(&session).await?;
    if facts.version_number < OLDEST_SERVER {
        return Err(SchemaError::TooOld(facts.version));
    }
    let was_empty = match check_format(&session).await {
        Ok(()) => false,
        Err(SchemaError::Absent) => true,
        Err(SchemaError::Database(error)) => return Err(facts.explain(error)),
        Err(error) => return Err(error),
    };
    let found = PreparedDatabase { warnings: facts.warnings(database), was_empty };
    Ok((session, facts, found))
}

/// Whether there are tables that this program understands.
pub(crate) async fn check_format(session: &DatabaseSession) -> Result<(), SchemaError> {
    let there = "select to_regclass('svc_repository') is not null";
    if !within(LIMIT, session.query_one(there, &[])).await?.try_get(0).unwrap_or(false) {
        return Err(SchemaError::Absent);
    }
    let row = within(LIMIT, session.query_one("select format from svc_repository", &[])).await?;
    match row.try_get(0).map_err(DatabaseError::from)? {
        FORMAT => Ok(()),
        found if found > FORMAT => Err(SchemaError::Newer { found }),
        found => Err(SchemaError::Older { found }),
    }
}

/// Creates the tables, all of them or none. Of two nodes that start at once, the second one waits, and finds the tables
/// of the first.
async fn create(session: &DatabaseSession) -> Result<(), DatabaseError> {
    let repo = Uuid::new_v4();
    let work = async {
        session.client.batch_execute("begin").await?;
        session.client.batch_execute(SCHEMA_LOCK).await?;
        // Not `to_regclass`: it would answer from what was known before the lock.
        let absent = "select not exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where c.relname = 'svc_repository' and n.nspname = current_schema())";
        if session.query_one(absent, &[]).await?.try_get(0)? {
            session.client.batch_execute(TABLES).await?;
            let insert = "insert into svc_repository (repo, format) values ($1, $2)";
            session.query(insert, &[(&repo, Type::UUID), (&FORMAT, Type::INT4)]).await?;
        }
        session.client.batch_execute("commit").await?;
        Ok(())
    };
    // After an error the session is dropped, and the transaction with it.
    within(LIMIT, session.certain(work)).await
}

struct ServerFacts {
    version: String,
    version_number: i32,
    role: String,
    schema: Option<String>,
    standbys: String,
    fsync: String,
    full_page_writes: String,
    synchronous_commit: String,
}

impl ServerFacts {
    async fn ask(session: &DatabaseSession) -> Result<Self, DatabaseError> {
        // `true`: a compatible database may not have them all.
        const ASK: &str = "select current_setting('server_version'), current_setting('server_version_num')::int, \
            current_user::text, current_schema()::text, current_setting('synchronous_standby_names', true), \
            current_setting('fsync', true), current_setting('full_page_writes', true), \
            current_setting('synchronous_commit', true)";
        let row = within(LIMIT, session.query_one(ASK, &[])).await?;
        let text = |at: usize| row.try_get::<_, Option<String>>(at).map(Option::unwrap_or_default);
        Ok(Self {
            version: text(0)?,
            version_number: row.try_get(1)?,
            role: text(2)?,
            schema: row.try_get(3)?,
            standbys: text(4)?,
            fsync: text(5)?,
            full_page_writes: text(6)?,
            synchronous_commit: text(7)?,
        })
    }

    fn explain(&self, error: DatabaseError) -> SchemaError {
        let (role, schema) = (self.role.clone(), self.schema.clone());
        let is_denied = error.sql_state() == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
        let is_about_table = matches!(&error, DatabaseError::Query(source)
            if source.as_db_error().is_some_and(|error| error.message().contains("svc_")));
        match schema {
            None => SchemaError::NoSchema { role },
            Some(schema) if is_denied && is_about_table => SchemaError::MayNotUse { role, schema },
            Some(schema) if is_denied => SchemaError::MayNotCreate { role, schema },
            Some(_) => SchemaError::Database(error),
        }
    }

    fn warnings(&self, database: &Database) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.standbys.is_empty() && !database.settings().is_local() {
            warnings.push(
                "the database has no synchronous standby (synchronous_standby_names is empty): if its machine is lost, \
                 the newest changes are lost, although they were confirmed"
                    .to_owned(),
            );
        }
        let off = [
            ("fsync", &self.fsync),
            ("full_page_writes", &self.full_page_writes),
            ("synchronous_commit", &self.synchronous_commit),
        ];
        for (name, _) in off.into_iter().filter(|(_, value)| *value == "off") {
            warnings.push(format!(
                "{name} is off in the database: a crash can lose changes that were confirmed. Turn it on"
            ));
        }
        warnings
    }
}
