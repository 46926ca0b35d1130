//! Connections to the database: from the runtime and from other threads, and how rows and times are read.

use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::{future::Future, io, time::Duration, time::SystemTime, time::UNIX_EPOCH};

use bytes::Bytes;
use countersign_core::values::time::Timestamp;
use countersign_store::{ObjectId, sequence::OrderPosition, sequence::OrderedBatch, sequence::SharedBatch};
use futures_util::{StreamExt as _, stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::{runtime::Builder, runtime::Runtime, sync::mpsc, sync::watch, task::AbortHandle, time::timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Connection, Row, Socket, error::SqlState};
use uuid::Uuid;

pub use crate::tls::DatabaseTlsError;
use crate::{error::DatabaseError, settings::DatabaseSettings, settings::Encryption, tls::DatabaseTls};

/// How long connecting can take: all hosts of a URL together, and TLS and passwords with them.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The time limit for one host, if the URL says nothing.
const HOST_LIMIT: Duration = Duration::from_secs(2);
/// The time without a packet from the database after which the kernel asks whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A parameter of a statement. Types are given, so that no round trip has to ask for them, and no prepared statement is
/// needed, which some poolers do not have.
pub(crate) type SqlParameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A database that connections can be made to.
#[derive(Debug, Clone)]
pub struct Database {
    settings: DatabaseSettings,
    tls: Option<DatabaseTls>,
    /// Whether this program waits for the database no longer. All copies share it.
    given_up: Arc<watch::Sender<bool>>,
}

impl Database {
    /// Reads the certificates that are needed. Connects to nothing.
    pub fn new(settings: DatabaseSettings) -> Result<Self, DatabaseTlsError> {
        let tls = match settings.encryption {
            Encryption::Off => None,
            Encryption::VerifyFull => Some(DatabaseTls::new(settings.root_file.as_deref())?),
        };
        Ok(Self { settings, tls, given_up: Arc::new(watch::Sender::new(false)) })
    }

    pub fn settings(&self) -> &DatabaseSettings {
        &self.settings
    }

    /// Ends every connection and every wait for one: the program stops, and the database cannot be reached. An append
    /// without an answer is then as after a crash.
    pub fn give_up(&self) {
        self.given_up.send_replace(true);
    }

    /// The time that the clock of the database shows.
    pub async fn now(&self) -> Result<Timestamp, DatabaseError> {
        let session = self.connect("clock", CONNECT_LIMIT).await?;
        let row = within(CONNECT_LIMIT, session.query_one("select clock_timestamp()", &[])).await?;
        from_system(row.try_get(0)?)
    }

    /// Connects to the database. `purpose` is what the database's list of connections shows. A transaction that waits
    /// for this program for longer than `idle` is undone, and its connection closed by the database.
    pub(crate) async fn connect(
        &self,
        purpose: &str,
        idle: Duration,
    ) -> Result<DatabaseSession, DatabaseError> {
        let connecting = timeout(CONNECT_LIMIT, self.open(purpose, idle));
        let connected = tokio::select! {
            biased;
            () = given_up(self.given_up.subscribe()) => return Err(DatabaseError::GivenUp),
            connected = connecting => connected,
        };
        connected.unwrap_or_else(|_| {
            Err(DatabaseError::ConnectTime { address: self.settings.to_string(), limit: CONNECT_LIMIT })
        })
    }

    async fn open(&self, purpose: &str, idle: Duration) -> Result<DatabaseSession, DatabaseError> {
        let mut config = self.settings.config.clone();
        if config.get_application_name().is_none() {
            config.application_name(format!("countersign {purpose}"));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(HOST_LIMIT);
        }
        config.keepalives_idle(KEEPALIVE);
        let failed =
            |source| DatabaseError::Connect { address: self.settings.to_string(), source: Arc::new(source) };
        let session = match self.tls.clone() {
            None => {
                let (client, connection) = config.connect(tokio_postgres::NoTls).await.map_err(failed)?;
                DatabaseSession::start(client, connection, self.given_up.subscribe())
            }
            Some(tls) => {
                let (client, connection) = config.connect(tls).await.map_err(failed)?;
                DatabaseSession::start(client, connection, self.given_up.subscribe())
            }
        };
        // What an operator may have set for a role would change what our statements mean: warnings must reach us, and a
        // time limit of the database must not cancel an append.
        let setup = format!(
            "set client_min_messages = warning; set default_transaction_isolation = 'read committed'; \
             set statement_timeout = 0; set lock_timeout = 0; \
             set idle_in_transaction_session_timeout = {}",
            idle.as_millis()
        );
        session.client.batch_execute(&setup).await.map_err(failed)?;
        Ok(session)
    }
}

/// One connection. It closes at once when this is dropped, whatever it does: nothing is ever cancelled, since a
/// cancelled append may be reported as done without being replicated.
#[derive(Debug)]
pub(crate) struct DatabaseSession {
    pub(crate) client: Arc<Client>,
    unreplicated: Arc<AtomicBool>,
    notifications: mpsc::Receiver<String>,
    driver: AbortHandle,
}

impl Drop for DatabaseSession {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl DatabaseSession {
    fn start<S>(client: Client, connection: Connection<Socket, S>, stop: watch::Receiver<bool>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let unreplicated = Arc::new(AtomicBool::new(false));
        // One is enough: it says that there is something, and the payload only whether to look.
        let (notify, notifications) = mpsc::channel(64);
        let driving = drive(connection, Arc::clone(&unreplicated), notify);
        let driver = tokio::spawn(async move {
            tokio::select! {
                () = driving => {}
                () = given_up(stop) => {}
            }
        });
        let driver = driver.abort_handle();
        Self { client: Arc::new(client), unreplicated, notifications, driver }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// The payload of the next notification; `None` when the connection is gone.
    pub(crate) async fn next_notification(&mut self) -> Option<String> {
        self.notifications.recv().await
    }

    /// Runs one statement in one round trip.
    pub(crate) async fn query(
        &self,
        sql: &str,
        parameters: &[SqlParameter<'_>],
    ) -> Result<Vec<Row>, DatabaseError> {
        self.certain(async { Ok(self.client.query_typed(sql, parameters).await?) }).await
    }

    /// Runs one statement that always gives a row.
    pub(crate) async fn query_one(
        &self,
        sql: &str,
        parameters: &[SqlParameter<'_>],
    ) -> Result<Row, DatabaseError> {
        let row = self.query(sql, parameters).await?.into_iter().next();
        row.ok_or_else(|| DatabaseError::Strange("no answer".to_owned()))
    }

    /// Runs something that may commit. If the database stopped waiting for its synchronous standby, it says success
    /// and warns; the warning comes before the success, and makes it an error here.
    pub(crate) async fn certain<T>(
        &self,
        work: impl Future<Output = Result<T, DatabaseError>>,
    ) -> Result<T, DatabaseError> {
        self.unreplicated.store(false, Ordering::Release);
        let done = work.await?;
        if self.unreplicated.load(Ordering::Acquire) {
            return Err(DatabaseError::Unreplicated);
        }
        Ok(done)
    }
}

async fn given_up(mut stop: watch::Receiver<bool>) {
    // The sender lives as long as the database that this connection is to.
    if stop.wait_for(|has_given_up| *has_given_up).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Moves the bytes of one connection, and looks at what the database says unasked.
async fn drive<S>(
    mut connection: Connection<Socket, S>,
    unreplicated: Arc<AtomicBool>,
    notify: mpsc::Sender<String>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
    while let Some(message) = messages.next().await {
        match message {
            // By its code: the words depend on the database's language.
            Ok(AsyncMessage::Notice(notice)) if *notice.code() == SqlState::WARNING => {
                unreplicated.store(true, Ordering::Release);
                tracing::warn!(notice = notice.message(), "the database warns");
            }
            Ok(AsyncMessage::Notice(notice)) => {
                tracing::debug!(notice = notice.message(), "the database notes");
            }
            Ok(AsyncMessage::Notification(notification)) => {
                let _ = notify.try_send(notification.payload().to_owned());
            }
            // The library's, and marked as one that can grow.
            Ok(_) => {}
            // Callers that wait hear of it as well.
            Err(error) => {
                tracing::debug!(%error, "a connection to the database broke");
                break;
            }
        }
    }
}

/// Bounds the time of one exchange. The caller drops the session afterwards if it was exceeded.
pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, DatabaseError>>,
) -> Result<T, DatabaseError> {
    timeout(limit, work).await.unwrap_or(Err(DatabaseError::Time(limit)))
}

/// The session in `slot`, or a new one if that is gone. The caller empties the slot after an error.
pub(crate) async fn connected<'a>(
    database: &Database,
    slot: &'a mut Option<DatabaseSession>,
    purpose: &str,
    idle: Duration,
) -> Result<&'a mut DatabaseSession, DatabaseError> {
    let session = match slot.take().filter(|session| !session.is_closed()) {
        Some(session) => session,
        None => database.connect(purpose, idle).await?,
    };
    Ok(slot.insert(session))
}

// Asks the database from a thread that is not of an async runtime.

/// Runs async code in the thread that calls. Connections rest while no one asks.
#[derive(Debug)]
pub(crate) struct ThreadRuntime {
    runtime: Option<Runtime>,
    given_up: Arc<watch::Sender<bool>>,
}

impl ThreadRuntime {
    pub(crate) fn new(database: &Database) -> io::Result<Self> {
        let runtime = Some(Builder::new_current_thread().enable_all().build()?);
        Ok(Self { runtime, given_up: Arc::clone(&database.given_up) })
    }

    pub(crate) fn block_on<T>(
        &self,
        work: impl Future<Output = Result<T, DatabaseError>>,
    ) -> Result<T, DatabaseError> {
        let Some(runtime) = &self.runtime else { return Err(DatabaseError::Lost) };
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = given_up(self.given_up.subscribe()) => Err(DatabaseError::GivenUp),
                done = work => done,
            }
        })
    }
}

/// A runtime must not wait for its end where others run.
impl Drop for ThreadRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

// Reads rows of `svc_batch`, the order. Columns count by their position, so questions about
// batches begin with those of [`BatchRow`].

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

    pub(crate) fn position(&self) -> OrderPosition {
        OrderPosition { seq: self.seq, head: self.head }
    }
}

/// A batch with its place, from the columns of [`BatchRow`] and those after them.
pub(crate) fn read_batch(row: &Row, found: BatchRow) -> Result<OrderedBatch, DatabaseError> {
    let BatchRow { seq, node, head, .. } = found;
    let base = read_id(row, 4)?;
    let commits = usize::try_from(row.try_get::<_, i32>(5)?);
    let commits = commits.map_err(|_| DatabaseError::Strange("a negative number of commits".to_owned()))?;
    let body = row.try_get::<_, Option<&[u8]>>(6)?.map(Bytes::copy_from_slice);
    let body =
        body.ok_or_else(|| DatabaseError::Strange(format!("a batch too large, up to the commit {head}")))?;
    let batch = SharedBatch { base, head, commits, body };
    Ok(OrderedBatch { position: OrderPosition { seq, head }, node, batch })
}

/// Whether there is nothing after the batch `seq`.
pub(crate) fn ends_with(rows: &[Row], seq: i64) -> Result<bool, DatabaseError> {
    Ok(match rows {
        [] => seq == 0,
        [row] => BatchRow::read(row)?.seq == seq,
        [_, _, ..] => false,
    })
}

/// The id of a commit in this column, if there is one.
pub(crate) fn read_id(row: &Row, column: usize) -> Result<Option<ObjectId>, DatabaseError> {
    row.try_get::<_, Option<&[u8]>>(column)?.map(parse_id).transpose()
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

pub(crate) fn from_system(time: SystemTime) -> Result<Timestamp, DatabaseError> {
    let since = time.duration_since(UNIX_EPOCH);
    let nanos = since.map_or_else(|error| -signed(error.duration()), signed);
    let strange = |_| DatabaseError::Strange("a time out of the calendar".to_owned());
    Timestamp::from_unix_nanos(nanos).map_err(strange)
}

/// The time in this column, if there is one that the calendar has.
pub(crate) fn read_time(row: &Row, column: usize) -> Result<Option<Timestamp>, DatabaseError> {
    let time: Option<SystemTime> = row.try_get(column)?;
    Ok(time.and_then(|time| from_system(time).ok()))
}

fn signed(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}
