//! What the operator asks and does: the state of the cluster, and moving a single server into it.

use std::{error::Error as StdError, time::Duration};

use countersign_core::values::time::Timestamp;
use countersign_store::ObjectId;
use countersign_store::sequence::{OrderPosition, PassedBatch, SharedBatch};
use thiserror::Error;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::database::{Database, DatabaseSession, parse_id, read_id, read_time, within};
use crate::order::{add, add::Attempt, add::NewBatch, add::Sent};
use crate::{database, error::DatabaseError, node::NodeState, nonces::RAISE_NONCE_FLOOR};
use crate::{passed, schema, schema::SchemaError};

const LIMIT: Duration = Duration::from_secs(30);
/// A node says every few seconds that it is there. One that is silent for longer does not run, or is cut off.
const MAX_SILENCE: Duration = Duration::from_secs(20);

/// What is known about the cluster, all of it at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    pub repository: Uuid,
    pub format: i32,
    /// Requests from before are refused.
    pub nonce_floor: Option<Timestamp>,
    pub newest: Option<NewestBatch>,
    /// The nodes by name, also those that were here once.
    pub nodes: Vec<NodeStatus>,
    /// The newest batches that nodes have passed over, oldest first.
    pub passed: Vec<PassedBatch>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestBatch {
    pub seq: i64,
    pub commit: ObjectId,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    pub name: String,
    /// The newest batch that the node had published when it was last seen.
    pub position: i64,
    pub commit: Option<ObjectId>,
    /// How many batches the node did not have when it was last seen. One that is gone has none of the newer ones
    /// either.
    pub lag: u64,
    pub version: String,
    pub started: Option<Timestamp>,
    /// How long ago the node was seen, by the database's clock.
    pub seen_ago: Duration,
    /// How many milliseconds its clock was ahead of the database's.
    pub clock_millis: Option<i64>,
    /// Why the node has stopped following the others.
    pub halted: Option<String>,
}

impl NodeStatus {
    pub fn is_here(&self) -> bool {
        self.seen_ago <= MAX_SILENCE
    }
}

pub async fn read_status(database: &Database) -> Result<ClusterStatus, SchemaError> {
    let session = database.connect("status", LIMIT).await?;
    schema::check_format(&session).await?;
    session
        .client
        .batch_execute("begin isolation level repeatable read")
        .await
        .map_err(DatabaseError::from)?;
    Ok(within(LIMIT, read(&session)).await?)
}

async fn read(session: &DatabaseSession) -> Result<ClusterStatus, DatabaseError> {
    let row = session.query_one("select repo, format, nonce_floor from svc_repository", &[]).await?;
    let (repository, format, nonce_floor) = (row.try_get(0)?, row.try_get(1)?, read_time(&row, 2)?);
    let rows = session.query("select seq, head, at from svc_batch order by seq desc limit 1", &[]).await?;
    let newest = match rows.first() {
        None => None,
        Some(row) => Some(NewestBatch {
            seq: row.try_get(0)?,
            commit: parse_id(row.try_get(1)?)?,
            at: database::from_system(row.try_get(2)?)?,
        }),
    };
    // A node reports every few seconds how far it is. It does not lag behind batches that came after its report, or a
    // moment before, when it was reading them.
    let nodes = "select name, coalesce(position, 0), commit, coalesce(version, ''), started, \
        coalesce(extract(epoch from now() - seen), 0)::bigint, clock_millis, halted, \
        coalesce((select seq from svc_batch where at <= seen - interval '1 second' or seen < now() - make_interval(secs => $1) \
            order by seq desc limit 1), 0) \
        from svc_node order by name";
    let silence = MAX_SILENCE.as_secs_f64();
    let mut statuses = Vec::new();
    for row in session.query(nodes, &[(&silence, Type::FLOAT8)]).await? {
        let (position, expected): (i64, i64) = (row.try_get(1)?, row.try_get(8)?);
        statuses.push(NodeStatus {
            name: row.try_get(0)?,
            position,
            commit: read_id(&row, 2)?,
            lag: u64::try_from(expected - position).unwrap_or(0),
            version: row.try_get(3)?,
            started: read_time(&row, 4)?,
            seen_ago: Duration::from_secs(u64::try_from(row.try_get::<_, i64>(5)?).unwrap_or(0)),
            clock_millis: row.try_get(6)?,
            halted: row.try_get(7)?,
        });
    }
    let passed = passed::read_passed(session).await?;
    Ok(ClusterStatus { repository, format, nonce_floor, newest, nodes: statuses, passed })
}

#[derive(Debug, Error)]
pub enum InitError {
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(
        "the database is not empty: its newest batch is number {newest}. Start a node on it, or use an empty database"
    )]
    NotEmpty { newest: i64 },
    #[error("batch {seq} does not continue the one before. The data directory may have changed meanwhile")]
    Broken { seq: i64 },
    #[error("the commits cannot be read")]
    Source(#[source] Box<dyn StdError + Send + Sync>),
}

/// Puts the batches of a stopped server into an empty database; how many there were. All of them or none: if it is
/// interrupted, the database is as empty as before. Requests from before `now` are refused, since the nonces of that
/// server are not known here.
pub async fn init<E>(
    database: &Database,
    node: &str,
    now: Timestamp,
    batches: impl Iterator<Item = Result<SharedBatch, E>>,
) -> Result<i64, InitError>
where
    E: StdError + Send + Sync + 'static,
{
    schema::prepare(database).await?;
    let session = database.connect("init", Duration::ZERO).await?;
    let begin = "begin; lock table svc_batch in exclusive mode";
    within(LIMIT, async { Ok(session.client.batch_execute(begin).await?) }).await?;
    let newest = session.query_one("select coalesce(max(seq), 0) from svc_batch", &[]).await?;
    let newest = newest.try_get(0).map_err(DatabaseError::from)?;
    if newest > 0 {
        return Err(InitError::NotEmpty { newest });
    }
    let (node, mut after) = (NodeState::new(node), None);
    for batch in batches {
        let batch = &batch.map_err(|error| InitError::Source(Box::new(error)))?;
        let (id, author, sender) = (Uuid::new_v4(), node.name(), &*node);
        let new = NewBatch { batch, after, times: None, id, author, sender };
        let continues = batch.base == after.map(|after: OrderPosition| after.head);
        // The table is locked, so the turn is this connection's.
        if !continues || within(LIMIT, add::send(&session, &new, Attempt::First, true)).await? != Sent::Ours {
            return Err(InitError::Broken { seq: new.seq() });
        }
        after = Some(OrderPosition { seq: new.seq(), head: batch.head });
    }
    session.query(RAISE_NONCE_FLOOR, &[(&database::to_system(now), Type::TIMESTAMPTZ)]).await?;
    // The commit of much data can take long, and ending it early would leave it open whether it happened.
    session.certain(async { Ok(session.client.batch_execute("commit").await?) }).await?;
    Ok(after.map_or(0, |after| after.seq))
}
