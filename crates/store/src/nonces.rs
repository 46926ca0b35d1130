//! Nonces that were used (D31). A nonce is remembered on disk before its request is acted upon, so that no restart and
//! no crash makes a request valid twice.

use std::{error::Error as StdError, fs, io, path::Path, path::PathBuf, sync::Arc, time::Instant};

use countersign_core::values::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Statement, Transaction, TransactionBehavior, params};
use thiserror::Error;
use tokio::sync::{mpsc, mpsc::error::TrySendError, oneshot};

use crate::machine::clock::{Clock, JoinedThread, RecentFailure, WriteFailure};
use crate::machine::disk::{Disk, ignore_missing, sync_parent};
use crate::writer::stats::Counter;

/// Nonces that can wait to be stored.
pub const QUEUE: usize = 1_024;
/// Nonces that are stored together.
pub const MAX_BATCH: usize = 512;
/// The most expired rows that one batch removes, so that no request waits for a large clean-up.
const MAX_PURGED: i64 = 1_000;
const SCHEMA_VERSION: i64 = 2;
const SCHEMA: &str = "
    CREATE TABLE nonces (nonce BLOB PRIMARY KEY, expires_at INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX nonces_by_expiry ON nonces (expires_at);
    CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;";
const FLOOR: &str = "floor";

type Nonce = [u8; 16];

/// The store of nonces. Dropping it answers the callers that still wait, then closes the database.
#[derive(Debug)]
pub struct Nonces {
    floor: Option<Timestamp>,
    queue: NonceQueue<Nonce, i64, ()>,
    _keeper: JoinedThread,
}

/// Whether the repository had commits when it was opened. With commits but without nonces it came from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepositoryAge {
    Unborn,
    HasCommits,
}

#[derive(Debug, Clone, Error)]
pub enum NonceError {
    #[error("the nonce was used before")]
    Used,
    /// The nonce may have been used before. Only a clock that was wrong leads here (D50).
    #[error("the nonces of requests from this time were forgotten")]
    Forgotten,
    #[error("too many requests wait for their nonces to be stored")]
    Busy,
    #[error("the nonce could not be stored")]
    Unavailable(#[source] Arc<dyn StdError + Send + Sync>),
}

impl NonceError {
    /// Whether there is no room on the disk.
    pub fn is_disk_full(&self) -> bool {
        let Self::Unavailable(source) = self else { return false };
        let code = source.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
        code == Some(rusqlite::ErrorCode::DiskFull)
    }
}

impl From<io::Error> for NonceError {
    fn from(error: io::Error) -> Self {
        unavailable(error)
    }
}

impl From<rusqlite::Error> for NonceError {
    fn from(error: rusqlite::Error) -> Self {
        unavailable(error)
    }
}

/// A nonce to be stored until it `expires`, and the way back to its caller.
#[derive(Debug)]
pub struct NonceRequest<N, E, A> {
    pub nonce: N,
    pub expires: E,
    pub reply: oneshot::Sender<Result<A, NonceError>>,
}

/// Nonces that wait to be stored. Dropping it lets their keeper answer them, and then end.
#[derive(Debug)]
pub struct NonceQueue<N, E, A> {
    requests: mpsc::Sender<NonceRequest<N, E, A>>,
    stats: Arc<NonceStats>,
}

impl<N, E, A> NonceQueue<N, E, A> {
    /// A queue, and where its keeper finds what waits.
    pub fn new(stats: Arc<NonceStats>) -> (Self, mpsc::Receiver<NonceRequest<N, E, A>>) {
        let (requests, waiting) = mpsc::channel(QUEUE);
        (Self { requests, stats }, waiting)
    }

    /// Waits until the keeper has answered.
    pub async fn store(&self, nonce: N, expires: E) -> Result<A, NonceError> {
        let (reply, answer) = oneshot::channel();
        let closed = || unavailable(io::Error::other("the nonce store is closed"));
        self.stats.waiting.add(1);
        self.requests.try_send(NonceRequest { nonce, expires, reply }).map_err(|error| {
            self.stats.waiting.subtract(1);
            match error {
                TrySendError::Full(_) => NonceError::Busy,
                TrySendError::Closed(_) => closed(),
            }
        })?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    pub fn stats(&self) -> &Arc<NonceStats> {
        &self.stats
    }
}

type Request = NonceRequest<Nonce, i64, ()>;

struct Keeper {
    disk: Disk,
    path: PathBuf,
    database: Connection,
    clock: Clock,
    stats: Arc<NonceStats>,
}

/// What happened to nonces since the start.
#[derive(Debug, Default)]
pub struct NonceStats {
    pub stored: Counter,
    /// Nonces that were refused, because they had been used before.
    pub repeated: Counter,
    /// Nonces in the database, expired ones that were not removed yet among them.
    pub kept: Counter,
    /// Nonces in the queue.
    pub waiting: Counter,
    trouble: RecentFailure,
}

impl NonceStats {
    /// Why the newest nonces could not be stored, a moment ago.
    pub fn failing(&self, now: Instant) -> Option<WriteFailure> {
        self.trouble.recent(now)
    }

    pub fn note_outcome(&self, failure: Option<&NonceError>) {
        let failure = failure.map(|error| WriteFailure::of(error.is_disk_full()));
        self.trouble.note(failure, Instant::now());
    }

    /// Notes the answers to a batch: whether each nonce was new.
    pub fn note_stored(&self, answers: impl Iterator<Item = bool>) {
        for is_new in answers {
            let counter = if is_new { &self.stored } else { &self.repeated };
            counter.add(1);
        }
    }
}

impl Nonces {
    /// Opens the database at `path`, or makes one. One made beside a repository that has commits means that the nonces
    /// were lost: every request from before now is refused from then on, see [`Nonces::floor`].
    pub fn open(
        disk: Disk,
        path: &Path,
        repository: RepositoryAge,
        clock: Clock,
    ) -> Result<Self, NonceError> {
        let mut database = connect(path)?;
        let floor = match repository {
            RepositoryAge::HasCommits => Some(clock.now()),
            RepositoryAge::Unborn => None,
        };
        disk.commit(path, || prepare(&mut database, floor))?;
        // SQLite makes the content durable; the name of a new database is on us.
        disk.sync_parent(path)?;
        let floor = read_floor(&database)?;
        if let Some(floor) = floor {
            tracing::info!(%floor, "the nonces from before were lost or reset: requests signed earlier than this are refused");
        }
        let kept = database.query_row("SELECT count(*) FROM nonces", [], |row| row.get::<_, i64>(0))?;
        let stats = Arc::<NonceStats>::default();
        stats.kept.set(kept.unsigned_abs());
        let path = path.to_owned();
        let mut keeper = Keeper { disk, path, database, clock, stats: Arc::clone(&stats) };
        let (queue, waiting) = NonceQueue::new(stats);
        let keeper = JoinedThread::start("nonces", move || keeper.run(waiting)).map_err(unavailable)?;
        Ok(Self { floor, queue, _keeper: keeper })
    }

    /// Requests with an earlier timestamp must be refused: whether their nonces were used is not known.
    pub fn floor(&self) -> Option<Timestamp> {
        self.floor
    }

    pub fn stats(&self) -> &NonceStats {
        self.queue.stats()
    }

    /// Remembers `nonce` until `expires_at`. After `Ok` it is on disk, and no other caller got `Ok` for it.
    pub async fn remember(&self, nonce: [u8; 16], expires_at: Timestamp) -> Result<(), NonceError> {
        // Rounded up: a fraction of a second too long is harmless.
        self.queue.store(nonce, expires_at.unix_seconds().saturating_add(1)).await
    }
}

impl Keeper {
    /// Callers that wait while a batch is synced are in the next one: many share one fsync.
    fn run(&mut self, mut queue: mpsc::Receiver<Request>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while queue.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
            self.stats.waiting.subtract(batch.len() as u64);
            let stored = self.store(&batch);
            self.stats.note_outcome(stored.as_ref().err());
            // After an error nothing is known to be on disk, so no caller may go on.
            let answers = stored.unwrap_or_else(|error| vec![Err(error); batch.len()]);
            for (waiting, answer) in batch.drain(..).zip(answers) {
                let _ = waiting.reply.send(answer);
            }
        }
    }

    fn store(&mut self, batch: &[Request]) -> Result<Vec<Result<(), NonceError>>, NonceError> {
        let now = self.clock.now().unix_seconds();
        let transaction = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let answers = insert(&transaction, batch)?;
        let purged = purge(&transaction, now)?;
        // With synchronous=FULL this returns after the fsync of the write-ahead log.
        self.disk.commit(&self.path, || transaction.commit().map_err(NonceError::from))?;
        // The only thread that changes it.
        let stored = answers.iter().filter(|answer| answer.is_ok()).count() as u64;
        self.stats.kept.set((self.stats.kept.get() + stored).saturating_sub(purged as u64));
        self.stats.note_stored(answers.iter().map(Result::is_ok));
        Ok(answers)
    }
}

fn insert(transaction: &Transaction<'_>, batch: &[Request]) -> rusqlite::Result<Vec<Result<(), NonceError>>> {
    let mut forgotten = Forgotten::of(transaction)?;
    let mut insert = transaction.prepare("INSERT OR IGNORE INTO nonces VALUES (?1, ?2)")?;
    batch
        .iter()
        .map(|waiting| {
            if forgotten.has(waiting.expires)? {
                return Ok(Err(NonceError::Forgotten));
            }
            let is_new = insert.execute(params![waiting.nonce, waiting.expires])? == 1;
            Ok(if is_new { Ok(()) } else { Err(NonceError::Used) })
        })
        .collect()
}

/// Forgets nonces that expired, and remembers which times these are from. How many there were.
fn purge(transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<usize> {
    let mut expired = transaction
        .prepare("SELECT nonce, expires_at FROM nonces WHERE expires_at < ?1 ORDER BY expires_at LIMIT ?2")?;
    let rows = expired
        .query_map(params![now, MAX_PURGED], |row| Ok((row.get::<_, Nonce>(0)?, row.get::<_, i64>(1)?)))?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut delete = transaction.prepare("DELETE FROM nonces WHERE nonce = ?1")?;
    for (nonce, _) in &rows {
        delete.execute([nonce])?;
    }
    let expiries: Vec<i64> = rows.iter().map(|(_, expires_at)| *expires_at).collect();
    note(transaction, &expiries)?;
    Ok(rows.len())
}

/// What a reset changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NonceReset {
    /// Requests with an earlier timestamp are refused from now on.
    pub floor: Timestamp,
    /// The floor before the reset, if there was one.
    pub floor_before: Option<Timestamp>,
    /// Nonces that expire up to this time had been forgotten, while the clock was ahead. Those requests could be used
    /// again when their time comes.
    pub forgotten_until: Option<Timestamp>,
}

/// The way out for an operator whose clock was wrong (D50), on the database of a stopped server: requests from before
/// `now` are refused, and all that was refused because of the clock is accepted again. Nonces that are still known
/// stay.
pub fn reset(path: &Path, now: Timestamp) -> Result<NonceReset, NonceError> {
    if !path.is_file() {
        return Err(unavailable(io::Error::from(io::ErrorKind::NotFound)));
    }
    let mut database = connect(path)?;
    prepare(&mut database, Some(now))?;
    let floor_before = read_floor(&database)?;
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let latest = latest(&transaction)?.and_then(|latest| Timestamp::from_unix_seconds(latest).ok());
    clear(&transaction)?;
    write_floor(&transaction, now)?;
    transaction.commit()?;
    let forgotten_until = latest.filter(|latest| *latest > countersign_core::rules::auth::nonce_expiry(now));
    Ok(NonceReset { floor: now, floor_before, forgotten_until })
}

/// Removes the nonces, for a server that shares them with others or has none. The next server that opens them here
/// refuses what was signed before.
pub fn remove(path: &Path) -> Result<(), NonceError> {
    // The database last: the rest alone could not be told from that of a new one.
    for ending in ["-wal", "-shm", ""] {
        let mut file = path.as_os_str().to_owned();
        file.push(ending);
        ignore_missing(fs::remove_file(file)).map_err(unavailable)?;
    }
    sync_parent(path).map_err(unavailable)
}

fn connect(path: &Path) -> Result<Connection, NonceError> {
    let database = Connection::open(path)?;
    database.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    database.pragma_update(None, "synchronous", "full")?;
    Ok(database)
}

/// Makes the tables of a new database, and the floor with them: a crash leaves both or neither.
fn prepare(database: &mut Connection, floor: Option<Timestamp>) -> Result<(), NonceError> {
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == SCHEMA_VERSION {
        return Ok(());
    }
    if version > 0 {
        let is_newer = version > SCHEMA_VERSION;
        let age = if is_newer { "newer than this program" } else { "from an older program: remove the file" };
        let message = format!("version {version} of the nonce store is {age}");
        return Err(unavailable(io::Error::other(message)));
    }
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.execute_batch(TABLE)?;
    if let Some(floor) = floor {
        write_floor(&transaction, floor)?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    Ok(transaction.commit()?)
}

fn read_floor(database: &Connection) -> Result<Option<Timestamp>, NonceError> {
    let mut query = database.prepare("SELECT value FROM facts WHERE name = ?1")?;
    let text: Option<String> = query.query_row([FLOOR], |row| row.get(0)).optional()?;
    text.map(|text| Timestamp::parse(&text)).transpose().map_err(unavailable)
}

fn write_floor(transaction: &Transaction<'_>, floor: Timestamp) -> rusqlite::Result<()> {
    let mut replace = transaction.prepare("INSERT OR REPLACE INTO facts VALUES (?1, ?2)")?;
    replace.execute(params![FLOOR, floor.to_string()]).map(drop)
}

pub fn unavailable(source: impl StdError + Send + Sync + 'static) -> NonceError {
    NonceError::Unavailable(Arc::new(source))
}

// Which nonces were forgotten, by the times at which they expired (D50). A request whose nonce would expire within such
// a span is refused: nothing is known about it. Outside the spans every used nonce is still in the database.
//
// A clock that is far ahead for a while adds a span in the future, and takes away nothing but that span: requests of
// the right time are in none. One mark, "all up to here", would refuse them until the right time has come that far.

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
