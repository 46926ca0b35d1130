//! Nonces are remembered: once, on disk, for long enough.

use std::{path::PathBuf, sync::Arc, sync::atomic::AtomicI64, sync::atomic::Ordering};

use countersign_core::values::time::Timestamp;
use countersign_store::nonces::{NonceError, Nonces, RepositoryAge};
use countersign_store::{Disk, machine::clock::Clock, nonces};
use tempfile::TempDir;

struct Fixture {
    dir: TempDir,
    now: Arc<AtomicI64>,
}

impl Fixture {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap(), now: Arc::new(AtomicI64::new(1_700_000_000)) }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("nonces.sqlite")
    }

    fn open(&self, repository: RepositoryAge) -> Nonces {
        let now = Arc::clone(&self.now);
        let clock = Clock::new(move || at(now.load(Ordering::Relaxed)));
        Nonces::open(Disk::default(), &self.path(), repository, clock).unwrap()
    }

    /// How many nonces a second connection sees.
    fn rows(&self) -> i64 {
        let other = rusqlite::Connection::open(self.path()).unwrap();
        other.query_row("SELECT count(*) FROM nonces", [], |row| row.get(0)).unwrap()
    }

    fn set_now(&self, seconds: i64) {
        self.now.store(1_700_000_000 + seconds, Ordering::Relaxed);
    }

    /// Remembers the nonce for ten minutes from now; whether it was new.
    async fn is_new(&self, nonces: &Nonces, nonce: u8) -> bool {
        let expires_at = at(self.now.load(Ordering::Relaxed) + 600);
        is_new(nonces.remember([nonce; 16], expires_at).await)
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(seconds).unwrap()
}

fn is_new(answer: Result<(), NonceError>) -> bool {
    match answer {
        Ok(()) => true,
        Err(NonceError::Used | NonceError::Forgotten) => false,
        Err(NonceError::Busy) => panic!("no one else waits"),
        Err(NonceError::Unavailable(source)) => panic!("{source}"),
    }
}

#[tokio::test]
async fn a_nonce_is_new_once_across_restarts() {
    let fixture = Fixture::new();
    let nonces = fixture.open(RepositoryAge::Unborn);
    assert!(fixture.is_new(&nonces, 1).await);
    assert!(!fixture.is_new(&nonces, 1).await);
    assert!(fixture.is_new(&nonces, 2).await);
    assert_eq!(fixture.rows(), 2, "what a crash at this moment would leave");
    drop(nonces);
    let nonces = fixture.open(RepositoryAge::HasCommits);
    assert_eq!(nonces.floor(), None);
    assert!(!fixture.is_new(&nonces, 1).await);
    assert!(!fixture.is_new(&nonces, 2).await);
    assert!(fixture.is_new(&nonces, 3).await);
}

#[tokio::test]
async fn of_many_that_bring_the_same_nonce_at_once_one_wins() {
    let fixture = Fixture::new();
    let nonces = Arc::new(fixture.open(RepositoryAge::Unborn));
    let callers: Vec<_> = (0..256u32)
        .map(|n| {
            let nonces = Arc::clone(&nonces);
            let nonce = [(n % 4) as u8; 16];
            tokio::spawn(async move { is_new(nonces.remember(nonce, at(1_700_000_600)).await) })
        })
        .collect();
    let mut won = 0;
    for caller in callers {
        won += usize::from(caller.await.unwrap());
    }
    assert_eq!(won, 4);
}

#[tokio::test]
async fn an_expired_nonce_is_removed_and_still_not_new_when_the_clock_goes_back() {
    let fixture = Fixture::new();
    let nonces = fixture.open(RepositoryAge::Unborn);
    assert!(fixture.is_new(&nonces, 1).await);
    fixture.set_now(599);
    assert!(fixture.is_new(&nonces, 2).await);
    assert!(!fixture.is_new(&nonces, 1).await, "not expired yet");
    fixture.set_now(700);
    assert!(fixture.is_new(&nonces, 3).await);
    assert_eq!(fixture.rows(), 2, "the first one is gone");
    fixture.set_now(0);
    assert!(!fixture.is_new(&nonces, 1).await, "forgotten, but known to be from before the last clean-up");
    drop(nonces);
    assert!(!fixture.is_new(&fixture.open(RepositoryAge::HasCommits), 1).await);
}

/// Remembers a nonce as requests do: it is kept for seven minutes after it was signed.
async fn signed_at(fixture: &Fixture, nonces: &Nonces, nonce: u8) -> bool {
    is_new(nonces.remember([nonce; 16], at(fixture.now.load(Ordering::Relaxed) + 420)).await)
}

#[tokio::test]
async fn a_clock_that_was_a_day_ahead_leaves_fresh_requests_accepted_and_makes_no_nonce_new() {
    const DAY: i64 = 86_400;
    let fixture = Fixture::new();
    let nonces = fixture.open(RepositoryAge::Unborn);
    assert!(signed_at(&fixture, &nonces, 1).await);
    // Ahead, for long enough that nonces of that time expire.
    for (seconds, nonce) in [(DAY, 2), (DAY + 500, 3), (DAY + 1_000, 4)] {
        fixture.set_now(seconds);
        assert!(signed_at(&fixture, &nonces, nonce).await);
    }
    fixture.set_now(60);
    assert!(signed_at(&fixture, &nonces, 5).await, "fresh");
    drop(nonces);
    let nonces = fixture.open(RepositoryAge::HasCommits);
    assert!(signed_at(&fixture, &nonces, 6).await, "fresh, after a restart");
    // Whatever the clock says, what was used stays used.
    for (seconds, nonce) in [(0, 1), (DAY, 2), (DAY + 500, 3), (DAY + 1_000, 4), (60, 5), (60, 6)] {
        fixture.set_now(seconds);
        assert!(!signed_at(&fixture, &nonces, nonce).await, "{nonce}");
    }
    // And when the day has come, only what cannot be told from used requests is refused.
    for (seconds, expected) in [(DAY - 2_000, true), (DAY + 200, false), (DAY + 2_000, true)] {
        fixture.set_now(seconds);
        assert_eq!(signed_at(&fixture, &nonces, 7 + u8::from(seconds > DAY)).await, expected, "{seconds}");
    }
}

#[tokio::test]
async fn a_reset_refuses_what_came_before_it_and_accepts_the_rest() {
    const DAY: i64 = 86_400;
    let fixture = Fixture::new();
    fixture.set_now(DAY);
    assert_eq!(fixture.open(RepositoryAge::HasCommits).floor(), Some(at(1_700_000_000 + DAY)), "a day ahead");
    let nonces = fixture.open(RepositoryAge::HasCommits);
    for (seconds, nonce) in [(DAY, 1), (DAY + 1_000, 2)] {
        fixture.set_now(seconds);
        assert!(signed_at(&fixture, &nonces, nonce).await);
    }
    drop(nonces);
    let now = at(1_700_000_000);
    let reset = nonces::reset(&fixture.path(), now).unwrap();
    assert_eq!((reset.floor, reset.floor_before), (now, Some(at(1_700_000_000 + DAY))));
    assert_eq!(reset.forgotten_until.map(Timestamp::unix_seconds), Some(1_700_000_000 + DAY + 421));
    fixture.set_now(0);
    let nonces = fixture.open(RepositoryAge::HasCommits);
    assert_eq!(nonces.floor(), Some(now));
    assert!(signed_at(&fixture, &nonces, 3).await);
    fixture.set_now(DAY + 1_000);
    assert!(!signed_at(&fixture, &nonces, 2).await, "what was known stays known");
}

#[test]
fn a_repository_without_its_nonces_refuses_what_came_before() {
    let fixture = Fixture::new();
    assert_eq!(fixture.open(RepositoryAge::HasCommits).floor(), Some(at(1_700_000_000)));
    fixture.set_now(60);
    assert_eq!(fixture.open(RepositoryAge::HasCommits).floor(), Some(at(1_700_000_000)), "it is kept");
}

#[tokio::test]
async fn a_nonce_that_cannot_be_stored_is_refused() {
    let fixture = Fixture::new();
    let nonces = fixture.open(RepositoryAge::Unborn);
    let other = rusqlite::Connection::open(fixture.path()).unwrap();
    other.execute_batch("ALTER TABLE nonces RENAME TO gone").unwrap();
    let answer = nonces.remember([1; 16], at(1_700_000_600)).await;
    assert!(matches!(answer, Err(NonceError::Unavailable(_))), "{answer:?}");
    other.execute_batch("ALTER TABLE gone RENAME TO nonces").unwrap();
    assert!(fixture.is_new(&nonces, 1).await);
}

/// What a crash leaves of the log while the sixth nonce is being written, cut off at any place.
#[tokio::test]
async fn a_torn_write_makes_no_nonce_new_that_was_answered() {
    let fixture = Fixture::new();
    let nonces = fixture.open(RepositoryAge::Unborn);
    let log = fixture.dir.path().join("nonces.sqlite-wal");
    for nonce in 1..=5 {
        assert!(fixture.is_new(&nonces, nonce).await);
    }
    let answered = std::fs::read(&log).unwrap().len();
    assert!(fixture.is_new(&nonces, 6).await);
    let (database, log) = (std::fs::read(fixture.path()).unwrap(), std::fs::read(&log).unwrap());
    assert!(log.len() > answered);
    for length in (answered..log.len()).step_by(389) {
        for filling in [0, 0xff] {
            let crashed = Fixture::new();
            std::fs::write(crashed.path(), &database).unwrap();
            let mut torn = log.clone();
            torn[length..].fill(filling);
            torn.truncate(if filling == 0 { length } else { log.len() });
            std::fs::write(crashed.dir.path().join("nonces.sqlite-wal"), torn).unwrap();
            let nonces = crashed.open(RepositoryAge::HasCommits);
            assert_eq!(nonces.floor(), None);
            for nonce in 1..=5 {
                assert!(!crashed.is_new(&nonces, nonce).await, "{nonce} after {length} bytes");
            }
            assert!(crashed.is_new(&nonces, 7).await);
        }
    }
}

#[test]
fn a_database_that_is_none_is_an_error_and_is_not_reset() {
    let fixture = Fixture::new();
    assert!(matches!(nonces::reset(&fixture.path(), at(0)), Err(NonceError::Unavailable(_))));
    assert!(!fixture.path().exists());
    std::fs::write(fixture.path(), "certainly not a database".repeat(100)).unwrap();
    let clock = Clock::new(|| at(0));
    let opened = Nonces::open(Disk::default(), &fixture.path(), RepositoryAge::Unborn, clock);
    assert!(matches!(opened, Err(NonceError::Unavailable(_))));
}
