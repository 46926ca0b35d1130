//! Used nonces, in the database that the nodes share (D71). The statement that stores a nonce also says how far the
//! order has come, and the request goes on when this node has come that far: so it sees every change that was confirmed
//! before it was sent, by whichever node.

use std::time::{Duration, Instant, SystemTime};
use std::{collections::HashSet, io, sync::Arc};

use countersign_core::values::time::Timestamp;
use countersign_store::nonces::{MAX_BATCH, NonceError, NonceQueue, NonceRequest, NonceStats, unavailable};
use countersign_store::{ObjectId, machine::clock::Clock};
use tokio::{runtime::Handle, sync::mpsc, task::JoinHandle, time::timeout};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::database::{Database, DatabaseSession, SqlParameter, connected, read_id, read_time, within};
use crate::node::{AppliedBatch, ClockQuestion, KnownPlace, NodeState, NonceMark};
use crate::{database, error::DatabaseError};

/// How long a nonce can take to be stored, and then how long this node can take to come as far as the order has.
pub const NONCE_LIMIT: Duration = Duration::from_secs(5);
/// How long requests are refused at once after the database could not be reached or was silent, instead of waiting in a
/// queue.
const REST: Duration = Duration::from_millis(500);

const FORKED: &str = "the database does not have the batches that this node has";
/// How long the writer may take for its own batches before the reader of news is woken all the same.
const OWN_GRACE: Duration = Duration::from_millis(50);

const STORE: &str = "with stored as (
        insert into svc_nonce (nonce, expires)
        select * from unnest($1::uuid[], $2::timestamptz[])
        on conflict do nothing returning nonce)
    select coalesce(newest.seq, 0), nonce_floor, nonce_purged, array(select nonce from stored), newest.head,
        clock_timestamp(),
        coalesce($4 > clock_timestamp() and not exists (select from svc_nonce where nonce = $3), false)
    from svc_repository left join (select seq, head from svc_batch order by seq desc limit 1) as newest on true";

/// Has requests refused that were made before now, by `$1` or the database's clock, since their nonces are not known.
pub(crate) const RAISE_NONCE_FLOOR: &str =
    "update svc_repository set nonce_floor = greatest(nonce_floor, $1, clock_timestamp())";

/// Says that nonces are gone which this node has stored.
pub(crate) fn note_lost() {
    tracing::warn!("the database has lost nonces: requests that were signed before now are refused");
}

/// The store of nonces of a node in a cluster.
#[derive(Debug)]
pub struct SharedNonces {
    queue: NonceQueue<Uuid, SystemTime, StoredNonce>,
    node: Arc<NodeState>,
    limit: Duration,
    keeper: JoinHandle<()>,
}

impl Drop for SharedNonces {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

type Request = NonceRequest<Uuid, SystemTime, StoredNonce>;

/// What the database said with a nonce that it stored.
#[derive(Debug, Clone, Copy)]
struct StoredNonce {
    newest: i64,
    head: Option<ObjectId>,
    /// Requests with an earlier timestamp are refused: whether their nonces were used is not known.
    floor: Option<Timestamp>,
}

impl SharedNonces {
    /// Starts the store. `limit` is [`NONCE_LIMIT`], or less for a test.
    pub fn start(
        runtime: &Handle,
        database: Database,
        node: Arc<NodeState>,
        clock: Clock,
        limit: Duration,
    ) -> Self {
        let stats = Arc::<NonceStats>::default();
        let keeper = NonceKeeper {
            database,
            node: Arc::clone(&node),
            clock,
            stats: Arc::clone(&stats),
            limit,
            session: None,
            since: Instant::now(),
            resting: None,
        };
        let (queue, waiting) = NonceQueue::new(stats);
        let keeper = runtime.spawn(keeper.run(waiting));
        Self { queue, node, limit, keeper }
    }

    pub fn stats(&self) -> &Arc<NonceStats> {
        self.queue.stats()
    }

    /// Remembers `nonce` of a request that was signed at `signed_at`, until `expires_at`. After `Ok` it is stored, no
    /// other caller on any node got `Ok` for it, and this node has published all that was confirmed before.
    pub async fn remember(
        &self,
        nonce: [u8; 16],
        expires_at: Timestamp,
        signed_at: Timestamp,
    ) -> Result<(), NonceError> {
        let stored = self.queue.store(Uuid::from_bytes(nonce), database::to_system(expires_at)).await?;
        if stored.floor.is_some_and(|floor| signed_at < floor) {
            return Err(NonceError::Forgotten);
        }
        self.await_applied(stored.newest, stored.head).await
    }

    /// Waits until this node has judged the batch that was the newest then, and it is the same one.
    async fn await_applied(&self, seq: i64, head: Option<ObjectId>) -> Result<(), NonceError> {
        let mut applied = self.node.watch_applied();
        applied.borrow_and_update();
        match self.node.know(seq, head) {
            KnownPlace::Judged => return Ok(()),
            KnownPlace::Differs => {
                self.node.wake();
                return Err(failed(FORKED));
            }
            KnownPlace::Unknown => {}
        }
        let is_judged = |_: &AppliedBatch| self.node.know(seq, head) == KnownPlace::Judged;
        // The writer publishes what it appended, and catches up after a lost race. To wake the reader of news for it
        // would make the writer ask the database for nothing.
        if self.node.has_offered(seq)
            && let Ok(Ok(_)) = timeout(OWN_GRACE, applied.wait_for(is_judged)).await
        {
            return Ok(());
        }
        self.node.wake();
        let caught_up = timeout(self.limit, applied.wait_for(is_judged)).await;
        let is_ok = matches!(caught_up, Ok(Ok(_)));
        if is_ok { Ok(()) } else { Err(failed("this node has not caught up with the others")) }
    }
}

struct NonceKeeper {
    database: Database,
    node: Arc<NodeState>,
    clock: Clock,
    stats: Arc<NonceStats>,
    limit: Duration,
    session: Option<DatabaseSession>,
    /// The time since when there is a session, or none because the database did not answer.
    since: Instant,
    /// The time until which nothing is tried, and why.
    resting: Option<(Instant, NonceError)>,
}

impl NonceKeeper {
    /// Callers that wait while a statement runs are in the next one: many share one commit.
    async fn run(mut self, mut queue: mpsc::Receiver<Request>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while queue.recv_many(&mut batch, MAX_BATCH).await > 0 {
            self.stats.waiting.subtract(batch.len() as u64);
            let stored = self.store(&batch).await;
            self.stats.note_outcome(stored.as_ref().err());
            // After an error nothing is known, so no caller may go on. The client signs again, with another nonce.
            let answers = stored.unwrap_or_else(|error| vec![Err(error); batch.len()]);
            for (waiting, answer) in batch.drain(..).zip(answers) {
                let _ = waiting.reply.send(answer);
            }
        }
    }

    async fn store(&mut self, batch: &[Request]) -> Result<Vec<Result<StoredNonce, NonceError>>, NonceError> {
        // Another connection has found the database again: this one may be dead without knowing.
        if self.node.back_since().is_some_and(|back| back > self.since) {
            (self.session, self.resting) = (None, None);
        }
        if let Some((until, error)) = &self.resting
            && Instant::now() < *until
        {
            return Err(error.clone());
        }
        let sent = Instant::now();
        let answer = within(self.limit, self.exchange(batch)).await;
        self.node.note_answer(sent, &answer);
        self.resting = None;
        let answers = answer.map_err(|error| {
            let is_silent = matches!(error, DatabaseError::Time(_));
            let could_connect = self.session.take().is_some();
            let error = unavailable(error);
            if is_silent || !could_connect {
                self.since = Instant::now();
                self.resting = Some((self.since + REST, error.clone()));
            }
            error
        })?;
        self.stats.note_stored(answers.iter().map(Result::is_ok));
        Ok(answers)
    }

    async fn exchange(
        &mut self,
        batch: &[Request],
    ) -> Result<Vec<Result<StoredNonce, NonceError>>, DatabaseError> {
        if self.session.as_ref().is_none_or(DatabaseSession::is_closed) {
            self.since = Instant::now();
        }
        let session = connected(&self.database, &mut self.session, "nonces", self.limit).await?;
        // In order: two nodes that store the same nonces must not wait for each other in a circle.
        let mut given: Vec<_> = batch.iter().map(|waiting| (waiting.nonce, waiting.expires)).collect();
        given.sort_unstable();
        let (nonces, expiries): (Vec<_>, Vec<_>) = given.into_iter().unzip();
        let mark = self.node.nonce_mark();
        let (marked, expiry) = (mark.map(|mark| mark.nonce), mark.map(|mark| mark.expires));
        let parameters: [SqlParameter<'_>; 4] = [
            (&nonces, Type::UUID_ARRAY),
            (&expiries, Type::TIMESTAMPTZ_ARRAY),
            (&marked, Type::UUID),
            (&expiry, Type::TIMESTAMPTZ),
        ];
        let (question, judged) = (ClockQuestion::begin(), self.node.applied());
        let row = session.query_one(STORE, &parameters).await?;
        self.node.note_clock(question.end(&self.clock, row.try_get(5)?)?);
        if row.try_get(6)? {
            note_lost();
            let now = database::to_system(self.clock.now());
            session.query(RAISE_NONCE_FLOOR, &[(&now, Type::TIMESTAMPTZ)]).await?;
            self.node.forget_nonce_mark(mark);
            return Ok(vec![Err(failed("the database has lost nonces")); batch.len()]);
        }
        let newest: i64 = row.try_get(0)?;
        if newest < judged.seq {
            self.node.wake();
            return Ok(vec![Err(failed(FORKED)); batch.len()]);
        }
        let (head, floor) = (read_id(&row, 4)?, read_time(&row, 1)?);
        let purged: Option<SystemTime> = row.try_get(2)?;
        let mut new: HashSet<Uuid> = row.try_get::<_, Vec<Uuid>>(3)?.into_iter().collect();
        self.node.note_heard(newest);
        Ok(batch
            .iter()
            .map(|waiting| {
                // Of two with the same nonce, the first one takes it.
                if !new.remove(&waiting.nonce) {
                    Err(NonceError::Used)
                } else if purged.is_some_and(|purged| waiting.expires <= purged) {
                    Err(NonceError::Forgotten)
                } else {
                    self.node.note_nonce(NonceMark { nonce: waiting.nonce, expires: waiting.expires });
                    Ok(StoredNonce { newest, head, floor })
                }
            })
            .collect())
    }
}

fn failed(reason: &str) -> NonceError {
    unavailable(io::Error::other(reason))
}

// Forgets expired nonces (D71), in two steps. The mark in `svc_repository` is moved first: from then on a request
// whose nonce would expire before it is refused. The nonces up to it go later, when no statement that could have seen
// the mark before is under way any more.
//
// The mark is the expiry of a nonce, not a time of a clock. So a database whose clock is ahead for a while refuses
// requests that were signed before those that it forgot, and no others.

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
        let count = within(LIMIT, session.query_one(count, &[])).await?;
        Ok(count.try_get::<_, i64>(0)?.unsigned_abs())
    }
}
