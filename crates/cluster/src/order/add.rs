//! The one statement that makes a batch the next one.

use countersign_core::values::time::Timestamp;
use countersign_store::sequence::{BatchTimes, OrderPosition, SharedBatch};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::database::{DatabaseSession, SqlParameter};
use crate::{database, error::DatabaseError, node::NodeState};

/// The part of the statement in place of `SHARE_TURN` if another connection of this node has the lock alone.
const HAVE_TURN: &str = "select";

// The row before must be the newest one that this node has judged. `exists` does not see what others add while this
// waits for the lock; but that has our `seq`, and then the key refuses ours. The times are compared with the clock when
// the row is written, after all waiting (D194): 5 s is `MAX_CLOCK_ERROR`, and `ORDER_LIMIT` adds 10 s for the way. A
// history that is ahead of the clock stands still at the time of the base.
const ADD: &str = "added as (
        insert into svc_batch (seq, id, node, base, head, commits, body)
        select $1, $2, $3, $4, $5, $6, $7 from turn
        where ($1 = 1 or exists (select from svc_batch where seq = $1 - 1 and head = $10))
            and ($11::timestamptz is null
                or $11 >= clock_timestamp() - interval '15 seconds'
                    and $12 <= greatest(clock_timestamp() + interval '5 seconds', $13))
        on conflict do nothing returning seq)
    select pg_notify('svc_batch_' || 'svc_repository'::regclass::oid, $8) from added";

// A repetition also writes something else. The batch may be there already, but on this server alone. The commit of what
// is written now waits until the synchronous standby has both.
const TOUCH: &str = "touched as (insert into svc_node (name, seen) values ($9, now()) on conflict (name) do update set seen = now())";

#[derive(Debug)]
pub(crate) struct NewBatch<'a> {
    pub(crate) batch: &'a SharedBatch,
    /// The row before.
    pub(crate) after: Option<OrderPosition>,
    pub(crate) times: Option<BatchTimes>,
    pub(crate) id: Uuid,
    /// The node that made the batch first.
    pub(crate) author: &'a str,
    pub(crate) sender: &'a NodeState,
}

impl NewBatch<'_> {
    pub(crate) fn seq(&self) -> i64 {
        self.after.map_or(0, |after| after.seq) + 1
    }
}

/// What has the number of a batch that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Ours,
    Another,
    /// Nothing has the number: the clock of the database shows this, and the batch has other times.
    Untimely(Timestamp),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    Repeated,
}

/// Sends the batch, and finds out what has its number. After an error that is not known.
pub(crate) async fn send(
    session: &DatabaseSession,
    new: &NewBatch<'_>,
    attempt: Attempt,
    in_turn: bool,
) -> Result<Sent, DatabaseError> {
    let touch = match attempt {
        Attempt::First => String::new(),
        Attempt::Repeated => format!("{TOUCH}, "),
    };
    let turn = if in_turn { HAVE_TURN } else { SHARE_TURN };
    let sql = format!("with turn as materialized ({turn}), {touch}{ADD}");
    let base = new.batch.base.as_ref().map(|base| base.as_slice());
    let (head, body) = (new.batch.head.as_slice(), &*new.batch.body);
    let commits = i32::try_from(new.batch.commits).unwrap_or(i32::MAX);
    let (sender, name, seq) = (new.sender.instance(), new.sender.name(), new.seq());
    let before = new.after.as_ref().map(|after| after.head.as_slice());
    let time = |time: fn(&BatchTimes) -> Timestamp| new.times.as_ref().map(time).map(database::to_system);
    let (oldest, newest) = (time(|times| times.oldest), time(|times| times.newest));
    let base_time = time(|times| times.base);
    let parameters: [SqlParameter<'_>; 13] = [
        (&seq, Type::INT8),
        (&new.id, Type::UUID),
        (&new.author, Type::TEXT),
        (&base, Type::BYTEA),
        (&head, Type::BYTEA),
        (&commits, Type::INT4),
        (&body, Type::BYTEA),
        (&sender, Type::TEXT),
        (&name, Type::TEXT),
        (&before, Type::BYTEA),
        (&oldest, Type::TIMESTAMPTZ),
        (&newest, Type::TIMESTAMPTZ),
        (&base_time, Type::TIMESTAMPTZ),
    ];
    if !session.query(&sql, &parameters).await?.is_empty() {
        return Ok(Sent::Ours);
    }
    let found = "select (select id from svc_batch where seq = $1), \
        $1 = 1 or exists (select from svc_batch where seq = $1 - 1 and head = $2), clock_timestamp()";
    let row = session.query_one(found, &[(&seq, Type::INT8), (&before, Type::BYTEA)]).await?;
    let (owner, is_continued): (Option<Uuid>, bool) = (row.try_get(0)?, row.try_get(1)?);
    match owner {
        Some(owner) if owner == new.id => Ok(Sent::Ours),
        Some(_) => Ok(Sent::Another),
        None if !is_continued => Ok(Sent::Another),
        // An earlier try may have been in time, and wait for its commit.
        None if attempt == Attempt::Repeated => Err(DatabaseError::Late),
        None => Ok(Sent::Untimely(database::from_system(row.try_get(2)?)?)),
    }
}

// The lock of the turn (D70): an advisory lock of the database, with the number of our table. Appends share it; a node
// whose turn it is has it alone, and the queue for it is fair. It only saves work: the primary key decides.

/// Opens the transaction that holds the lock.
pub(super) const TAKE_TURN: &str =
    "begin; select pg_advisory_xact_lock('svc_repository'::regclass::oid::int, 1)";
/// The part of the appending statement that shares the turn.
pub(super) const SHARE_TURN: &str =
    "select pg_advisory_xact_lock_shared('svc_repository'::regclass::oid::int, 1)";
