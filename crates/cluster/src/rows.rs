//! Reads rows of `svc_batch`, the order, and of `svc_repository`. Columns count by their position, so questions about
//! batches begin with those of [`BatchRow`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use countersign_core::values::time::Timestamp;
use countersign_store::{ObjectId, sequence::OrderPlace, sequence::OrderedBatch, sequence::SharedBatch};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::error::DatabaseError;

/// The number of the newest batch, for [`read_newest_seq`].
pub(crate) const NEWEST_SEQ: &str = "select coalesce(max(seq), 0) from svc_batch";

/// The first four columns of every question about batches.
#[derive(Debug)]
pub(crate) struct BatchRow {
    pub(crate) seq: i64,
    pub(crate) id: Uuid,
    pub(crate) node: String,
    pub(crate) head: ObjectId,
}

impl BatchRow {
    pub(crate) fn read(row: &Row) -> Result<Self, DatabaseError> {
        let head = parse_id(row.try_get(3)?)?;
        Ok(Self { seq: row.try_get(0)?, id: row.try_get(1)?, node: row.try_get(2)?, head })
    }

    pub(crate) fn place(&self) -> OrderPlace {
        OrderPlace { seq: self.seq, head: self.head }
    }
}

/// A batch with its place, from the columns of [`BatchRow`] and those after them.
pub(crate) fn read_batch(row: &Row, found: BatchRow) -> Result<OrderedBatch, DatabaseError> {
    let BatchRow { seq, node, head, .. } = found;
    let base = row.try_get::<_, Option<&[u8]>>(4)?.map(parse_id).transpose()?;
    let commits = usize::try_from(row.try_get::<_, i32>(5)?);
    let commits = commits.map_err(|_| DatabaseError::Strange("a negative number of commits".to_owned()))?;
    let body = row.try_get::<_, Option<&[u8]>>(6)?.map(Bytes::copy_from_slice);
    let body =
        body.ok_or_else(|| DatabaseError::Strange(format!("a batch too large, up to the commit {head}")))?;
    let batch = SharedBatch { base, head, commits, body };
    Ok(OrderedBatch { place: OrderPlace { seq, head }, node, batch })
}

pub(crate) fn starts_with(rows: &[Row], place: OrderPlace) -> Result<bool, DatabaseError> {
    Ok(match rows.first() {
        Some(row) => BatchRow::read(row)?.place() == place,
        None => false,
    })
}

/// Whether there is nothing after the batch `seq`.
pub(crate) fn ends_with(rows: &[Row], seq: i64) -> Result<bool, DatabaseError> {
    Ok(match rows {
        [] => seq == 0,
        [row] => BatchRow::read(row)?.seq == seq,
        [_, _, ..] => false,
    })
}

/// The number of the newest batch; 0 before the first one.
pub(crate) fn read_newest_seq(rows: &[Row]) -> Result<i64, DatabaseError> {
    Ok(rows.first().map_or(Ok(0), |row| row.try_get(0))?)
}

/// The one row of `svc_repository`.
pub(crate) fn repository_row(rows: &[Row]) -> Result<&Row, DatabaseError> {
    rows.first().ok_or_else(|| DatabaseError::Strange("svc_repository is empty".to_owned()))
}

pub(crate) fn parse_id(bytes: &[u8]) -> Result<ObjectId, DatabaseError> {
    ObjectId::try_from(bytes).map_err(|_| DatabaseError::Strange(format!("an id of {} bytes", bytes.len())))
}

// Times as the database has them: microseconds.

/// The time for the database, rounded up if its microseconds are too coarse.
pub(crate) fn to_system(time: Timestamp) -> SystemTime {
    let Ok(epoch) = Timestamp::from_unix_seconds(0) else { return UNIX_EPOCH };
    let micros = time.nanos_since(epoch).div_euclid(1_000) + i128::from(time.nanos_since(epoch) % 1_000 != 0);
    let distance = Duration::from_micros(u64::try_from(micros.unsigned_abs()).unwrap_or(u64::MAX));
    if micros < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

pub(crate) fn from_system(time: SystemTime) -> Option<Timestamp> {
    let since = time.duration_since(UNIX_EPOCH);
    let nanos = since.map_or_else(|error| -signed(error.duration()), signed);
    Timestamp::from_unix_nanos(nanos).ok()
}

fn signed(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}
