//! Batches that nodes pass over, because the rules do not give them (D195), and what the nodes say of each.

use std::collections::BTreeSet;

use countersign_store::sequence::{OrderPosition, PassedBatch, Votes};
use tokio_postgres::Row;

use crate::{database::DatabaseSession, database::parse_id, error::DatabaseError};

/// Notes that this node passes over a batch, and wakes the others.
pub(crate) const PASS_OVER: &str = "with passed as (
        insert into svc_passed (seq, node, head, author, reason) values ($1, $2, $3, $4, left($5, 2000))
        on conflict do nothing)
    select pg_notify('svc_batch_' || 'svc_repository'::regclass::oid, $6)";

/// The nodes that are there, and whether each passes over the batch.
pub(crate) const VOTES: &str = "select node, true from svc_passed where seq = $1 and head = $2
    union all
    select name, false from svc_node
    where halted is null and seen > now() - interval '20 seconds'
        and name not in (select node from svc_passed where seq = $1 and head = $2)";

// So many of the newest are looked at.
const NEWEST: &str = "select seq, head, author, reason, node from svc_passed
    where (seq, head) in (select seq, head from svc_passed group by seq, head order by seq desc limit 100)
    order by seq, head, at";
const PRESENT: &str =
    "select name from svc_node where halted is null and seen > now() - interval '20 seconds'";

pub(crate) fn read_votes(rows: &[Row]) -> Result<Votes, DatabaseError> {
    let mut votes = Votes { against: Vec::new(), others: Vec::new() };
    for row in rows {
        let node: String = row.try_get(0)?;
        if row.try_get(1)? { votes.against.push(node) } else { votes.others.push(node) }
    }
    Ok(votes)
}

/// The newest batches that nodes have passed over, oldest first.
pub(crate) async fn read_passed(session: &DatabaseSession) -> Result<Vec<PassedBatch>, DatabaseError> {
    let mut present = BTreeSet::new();
    for row in session.query(PRESENT, &[]).await? {
        present.insert(row.try_get::<_, String>(0)?);
    }
    let mut batches: Vec<PassedBatch> = Vec::new();
    for row in session.query(NEWEST, &[]).await? {
        let position = OrderPosition { seq: row.try_get(0)?, head: parse_id(row.try_get(1)?)? };
        let node: String = row.try_get(4)?;
        match batches.last_mut().filter(|last| last.position == position) {
            Some(last) => last.votes.against.push(node),
            None => batches.push(PassedBatch {
                position,
                node: row.try_get(2)?,
                reason: row.try_get(3)?,
                votes: Votes { against: vec![node], others: Vec::new() },
            }),
        }
    }
    for PassedBatch { votes, .. } in &mut batches {
        votes.others = present.iter().filter(|node| !votes.against.contains(*node)).cloned().collect();
    }
    Ok(batches)
}
