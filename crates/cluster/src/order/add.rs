//! The one statement that makes a batch the next one.

use countersign_store::sequence::SharedBatch;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::turn_lock::SHARE_TURN;
use crate::{
    database::{DatabaseSession, SqlParameter},
    error::DatabaseError,
    node::NodeState,
};

/// Another connection of this node has the lock alone.
const HAVE_TURN: &str = "select";

// The row before must end with our base. `exists` does not see what others add while this waits for the lock; but that
// has our `seq`, and then the key refuses ours.
const ADD: &str = "added as (
        insert into svc_batch (seq, id, node, base, head, commits, body)
        select $1, $2, $3, $4, $5, $6, $7 from turn
        where $1 = 1 or exists (select from svc_batch where seq = $1 - 1 and head = $4)
        on conflict do nothing returning seq)
    select pg_notify('svc_batch_' || 'svc_repository'::regclass::oid, $8) from added";

// A repetition also writes something else. The batch may be there already, but on this server alone. The commit of what
// is written now waits until the synchronous standby has both.
const TOUCH: &str = "touched as (insert into svc_node (name, seen) values ($9, now()) on conflict (name) do update set seen = now())";

#[derive(Debug)]
pub(super) struct NewBatch<'a> {
    pub(super) batch: &'a SharedBatch,
    pub(super) seq: i64,
    pub(super) id: Uuid,
    /// The node that made it first.
    pub(super) author: &'a str,
    pub(super) sender: &'a NodeState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    Repeated,
}

/// Whether the batch is the one with its number. After an error that is not known.
pub(super) async fn send(
    session: &DatabaseSession,
    new: &NewBatch<'_>,
    attempt: Attempt,
    in_turn: bool,
) -> Result<bool, DatabaseError> {
    let touch = match attempt {
        Attempt::First => String::new(),
        Attempt::Repeated => format!("{TOUCH}, "),
    };
    let turn = if in_turn { HAVE_TURN } else { SHARE_TURN };
    let sql = format!("with turn as materialized ({turn}), {touch}{ADD}");
    let base = new.batch.base.as_ref().map(|base| base.as_slice());
    let (head, body) = (new.batch.head.as_slice(), &*new.batch.body);
    let commits = i32::try_from(new.batch.commits).unwrap_or(i32::MAX);
    let (sender, name) = (new.sender.instance(), new.sender.name());
    let parameters: [SqlParameter<'_>; 9] = [
        (&new.seq, Type::INT8),
        (&new.id, Type::UUID),
        (&new.author, Type::TEXT),
        (&base, Type::BYTEA),
        (&head, Type::BYTEA),
        (&commits, Type::INT4),
        (&body, Type::BYTEA),
        (&sender, Type::TEXT),
        (&name, Type::TEXT),
    ];
    if !session.query(&sql, &parameters).await?.is_empty() {
        return Ok(true);
    }
    let owner = "select id from svc_batch where seq = $1";
    let owner = session.query(owner, &[(&new.seq, Type::INT8)]).await?;
    let owner = owner.first().map(|row| row.try_get::<_, Uuid>(0)).transpose()?;
    Ok(owner == Some(new.id))
}
