//! Which nonces were forgotten, by the times at which they expired (D50). A request whose nonce would expire within such
//! a span is refused: nothing is known about it. Outside the spans every used nonce is still in the database.
//!
//! A clock that is far ahead for a while adds a span in the future, and takes away nothing but that span: requests of
//! the right time are in none. One mark, "all up to here", would refuse them until the right time has come that far.

use rusqlite::{Connection, OptionalExtension as _, Statement, Transaction, params};

pub const TABLE: &str = "CREATE TABLE forgotten (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);";

/// Spans that are nearer to each other, in seconds, become one. Little more than the life of a nonce: what lies between
/// them is refused for that long at most, should the clock be set back there.
pub const NEAR: i64 = 10 * 60;
/// The most spans. Beyond it, the two with the least between them become one. An idle server has a span for each
/// request.
pub const MAX_SPANS: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    first: i64,
    last: i64,
}

/// The question whether a nonce is among them, ready to be asked many times.
#[derive(Debug)]
pub struct Forgotten<'c>(Statement<'c>);

impl<'c> Forgotten<'c> {
    pub fn of(database: &'c Connection) -> rusqlite::Result<Self> {
        let nearest = "SELECT last FROM forgotten WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
        database.prepare(nearest).map(Self)
    }

    pub fn has(&mut self, expires_at: i64) -> rusqlite::Result<bool> {
        let last: Option<i64> = self.0.query_row([expires_at], |row| row.get(0)).optional()?;
        Ok(last.is_some_and(|last| expires_at <= last))
    }
}

/// Notes that nonces with these expiries are forgotten; they must be in order.
pub fn note(transaction: &Transaction<'_>, expiries: &[i64]) -> rusqlite::Result<()> {
    let runs = expiries.chunk_by(|one, next| next.saturating_sub(*one) <= NEAR);
    for run in runs {
        if let (Some(&first), Some(&last)) = (run.first(), run.last()) {
            add(transaction, Span { first, last })?;
        }
    }
    Ok(())
}

/// The latest expiry that was forgotten.
pub fn latest(database: &Connection) -> rusqlite::Result<Option<i64>> {
    database.query_row("SELECT max(last) FROM forgotten", [], |row| row.get(0))
}

pub fn clear(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM forgotten", []).map(drop)
}

/// Spans in the table are never near each other.
fn add(transaction: &Transaction<'_>, span: Span) -> rusqlite::Result<()> {
    let near = params![span.first.saturating_sub(NEAR), span.last.saturating_add(NEAR)];
    const OVERLAP: &str = "FROM forgotten WHERE last >= ?1 AND first <= ?2";
    let mut around = transaction.prepare(&format!("SELECT min(first), max(last) {OVERLAP}"))?;
    let (first, last): (Option<i64>, Option<i64>) =
        around.query_row(near, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let first = first.map_or(span.first, |first| first.min(span.first));
    let last = last.map_or(span.last, |last| last.max(span.last));
    transaction.prepare(&format!("DELETE {OVERLAP}"))?.execute(near)?;
    transaction.prepare("INSERT INTO forgotten VALUES (?1, ?2)")?.execute([first, last])?;
    join_excess(transaction)
}

fn join_excess(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut query = transaction.prepare("SELECT first, last FROM forgotten ORDER BY first")?;
    let spans = query.query_map([], |row| Ok(Span { first: row.get(0)?, last: row.get(1)? }))?;
    let spans = spans.collect::<rusqlite::Result<Vec<_>>>()?;
    if spans.len() <= MAX_SPANS {
        return Ok(());
    }
    let nearest = spans.windows(2).min_by_key(|pair| pair[1].first.saturating_sub(pair[0].last));
    if let Some([one, next]) = nearest {
        transaction.execute("DELETE FROM forgotten WHERE first = ?1", [next.first])?;
        transaction.execute("UPDATE forgotten SET last = ?2 WHERE first = ?1", [one.first, next.last])?;
    }
    Ok(())
}
