//! Which nonces were forgotten, by the times at which they expired (D50). A request whose nonce would expire within such
//! a span is refused: nothing is known about it. Outside the spans every used nonce is still in the database.
//!
//! A clock that is far ahead for a while adds a span in the future, and takes away nothing but that span: requests of
//! the right time are in none. One mark, "all up to here", would refuse them until the right time has come that far.

use rusqlite::{Connection, OptionalExtension as _, Statement, Transaction, params};

pub(crate) const TABLE: &str = "CREATE TABLE forgotten (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);";

/// Spans that are nearer to each other, in seconds, become one. Little more than the life of a nonce: what lies between
/// them is refused for that long at most, should the clock be set back there.
const NEAR: i64 = 10 * 60;
/// Beyond this, the two spans with the least between them become one. An idle server has a span for each request.
const MAX_SPANS: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    first: i64,
    last: i64,
}

/// The question whether a nonce is among them, ready to be asked many times.
pub(crate) struct Forgotten<'c>(Statement<'c>);

impl<'c> Forgotten<'c> {
    pub(crate) fn of(database: &'c Connection) -> rusqlite::Result<Self> {
        let nearest = "SELECT last FROM forgotten WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
        database.prepare(nearest).map(Self)
    }

    pub(crate) fn has(&mut self, expires_at: i64) -> rusqlite::Result<bool> {
        let last: Option<i64> = self.0.query_row([expires_at], |row| row.get(0)).optional()?;
        Ok(last.is_some_and(|last| expires_at <= last))
    }
}

/// Notes that nonces with these expiries are forgotten; they must be in order.
pub(crate) fn note(transaction: &Transaction<'_>, expiries: &[i64]) -> rusqlite::Result<()> {
    let runs = expiries.chunk_by(|one, next| next.saturating_sub(*one) <= NEAR);
    for run in runs {
        if let (Some(&first), Some(&last)) = (run.first(), run.last()) {
            add(transaction, Span { first, last })?;
        }
    }
    Ok(())
}

/// The latest expiry that was forgotten.
pub(crate) fn latest(database: &Connection) -> rusqlite::Result<Option<i64>> {
    database.query_row("SELECT max(last) FROM forgotten", [], |row| row.get(0))
}

pub(crate) fn clear(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Connection {
        let database = Connection::open_in_memory().unwrap();
        database.execute_batch(TABLE).unwrap();
        database
    }

    fn noted(database: &mut Connection, expiries: &[i64]) {
        let transaction = database.transaction().unwrap();
        note(&transaction, expiries).unwrap();
        transaction.commit().unwrap();
    }

    fn spans(database: &Connection) -> Vec<(i64, i64)> {
        let mut query = database.prepare("SELECT first, last FROM forgotten ORDER BY first").unwrap();
        let spans = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        spans.map(Result::unwrap).collect()
    }

    #[test]
    fn spans_that_are_near_each_other_become_one() {
        let mut database = table();
        noted(&mut database, &[1_000, 1_005]);
        noted(&mut database, &[1_005 + NEAR]);
        assert_eq!(spans(&database), [(1_000, 1_005 + NEAR)], "just near enough");
        noted(&mut database, &[5_000, 5_000 + NEAR + 1]);
        assert_eq!(spans(&database), [(1_000, 1_005 + NEAR), (5_000, 5_000), (5_601, 5_601)], "just too far");
        noted(&mut database, &[5_300]);
        assert_eq!(spans(&database), [(1_000, 1_005 + NEAR), (5_000, 5_601)], "joined by what lies between");
        noted(&mut database, &[400, 999]);
        assert_eq!(spans(&database), [(400, 1_005 + NEAR), (5_000, 5_601)], "and at the front");
    }

    #[test]
    fn what_lies_in_a_span_is_forgotten_and_nothing_else() {
        let mut database = table();
        noted(&mut database, &[1_000, 1_100, 90_000]);
        for (expires_at, expected) in [
            (999, false),
            (1_000, true),
            (1_050, true),
            (1_100, true),
            (1_101, false),
            (90_000, true),
            (90_001, false),
        ] {
            assert_eq!(Forgotten::of(&database).unwrap().has(expires_at).unwrap(), expected, "{expires_at}");
        }
        assert_eq!(latest(&database).unwrap(), Some(90_000));
    }

    #[test]
    fn the_number_of_spans_is_bounded_and_the_nearest_are_joined() {
        let mut database = table();
        let hourly: Vec<i64> = (0..MAX_SPANS as i64 - 1).map(|hour| hour * 3_600).collect();
        noted(&mut database, &hourly);
        let far = 86_400 * 365;
        noted(&mut database, &[far]);
        assert_eq!(spans(&database).len(), MAX_SPANS);
        noted(&mut database, &[hourly[500] + 1_000]);
        let spans = spans(&database);
        assert_eq!(spans.len(), MAX_SPANS);
        assert_eq!(spans[500], (hourly[500], hourly[500] + 1_000));
        assert_eq!(spans[MAX_SPANS - 1], (far, far), "the future is not joined with the past");
        for expires_at in hourly {
            assert!(Forgotten::of(&database).unwrap().has(expires_at).unwrap());
        }
    }
}
