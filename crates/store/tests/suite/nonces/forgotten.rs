//! Which nonces were forgotten, by the times at which they expired.

use countersign_store::nonces::{Forgotten, MAX_SPANS, NEAR, TABLE, latest, note};
use rusqlite::Connection;

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
