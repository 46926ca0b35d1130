//! Forgets expired nonces (D71), in two steps. The mark in `svc_repository` is moved first: from then on a request
//! whose nonce would expire before it is refused. The nonces up to it go later, when no statement that could have seen
//! the mark before is under way any more.
//!
//! The mark is the expiry of a nonce, not a time of a clock. So a database whose clock is ahead for a while refuses
//! requests that were signed before those that it forgot, and no others.

use std::time::{Duration, Instant, SystemTime};

use tokio_postgres::types::Type;

use crate::{
    database::{DatabaseSession, SqlParameter, within},
    error::DatabaseError,
    nonces::NONCE_LIMIT,
};

/// How often a node looks for expired nonces.
const INTERVAL: Duration = Duration::from_secs(30);
/// The most nonces that one statement deletes, so that no request waits for a large one.
const MAX_PURGED: i64 = 1_000;
const MAX_STATEMENTS: usize = 20;
const LIMIT: Duration = Duration::from_secs(5);

/// How far a node's clock can be behind the database's without requests being refused.
pub(crate) const MARGIN: &str = "interval '10 minutes'";

const DELETE: &str = "delete from svc_nonce where nonce in (
        select nonce from svc_nonce where expires <= $1 order by expires limit $2 for update skip locked)
    returning 1";

/// The purge of nonces: the mark, and the time at which this node moved or read it, by its own clock.
#[derive(Debug, Default)]
pub(crate) struct NoncePurge {
    mark: Option<SystemTime>,
    marked: Option<Instant>,
}

impl NoncePurge {
    /// The number of nonces in the database, about, if it was looked at.
    pub(crate) async fn run(&mut self, session: &DatabaseSession) -> Result<Option<u64>, DatabaseError> {
        if let Some(mark) = self.mark
            && self.marked.is_some_and(|marked| marked.elapsed() > NONCE_LIMIT * 2)
        {
            let mut statements = 0;
            while statements < MAX_STATEMENTS {
                let parameters: [SqlParameter<'_>; 2] =
                    [(&mark, Type::TIMESTAMPTZ), (&MAX_PURGED, Type::INT8)];
                let deleted = within(LIMIT, session.query(DELETE, &parameters)).await?.len();
                statements += 1;
                if i64::try_from(deleted).unwrap_or(MAX_PURGED) < MAX_PURGED {
                    self.mark = None;
                    break;
                }
            }
        }
        if self.mark.is_some() || self.marked.is_some_and(|marked| marked.elapsed() < INTERVAL) {
            return Ok(None);
        }
        self.move_mark(session).await.map(Some)
    }

    async fn move_mark(&mut self, session: &DatabaseSession) -> Result<u64, DatabaseError> {
        let mark = format!(
            "with expired as (select max(expires) as latest from svc_nonce where expires < now() - {MARGIN})
            update svc_repository set nonce_purged = greatest(nonce_purged, latest) from expired
            where latest is not null
            returning nonce_purged"
        );
        let rows = within(LIMIT, session.query(&mark, &[])).await?;
        self.mark = rows.first().map(|row| row.try_get(0)).transpose()?;
        self.marked = Some(Instant::now());
        let count = "select greatest(reltuples, 0)::bigint from pg_class where oid = 'svc_nonce'::regclass";
        let rows = within(LIMIT, session.query(count, &[])).await?;
        let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        Ok(count.unsigned_abs())
    }
}
