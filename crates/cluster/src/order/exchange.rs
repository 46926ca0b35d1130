//! What the order asks the database, and when it asks again.

use std::{collections::HashMap, collections::VecDeque, sync::Arc, time::Duration, time::Instant};

use countersign_core::values::bounds::SHARED_BATCH_BYTES;
use countersign_store::sequence::{
    Appended, BatchOffer, OrderGap, OrderPosition, OrderedBatch, SharedBatch, Votes,
};
use countersign_store::{ObjectId, machine::clock::Clock};
use tokio::{task::JoinHandle, time::sleep};
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;

use crate::database::{BatchRow, Database, DatabaseSession, SqlParameter, connected, within};
use crate::node::{AppliedBatch, NodeState};
use crate::order::{add, add::Attempt, add::NewBatch, add::Sent, add::TAKE_TURN};
use crate::{database, error::DatabaseError, nonces::RAISE_NONCE_FLOOR, passed, passed::PASS_OVER};

/// How long a node can have its turn.
#[derive(Debug, Clone, Copy)]
pub struct TurnTimes {
    /// The time for batch after batch, while changes wait. Meanwhile the others repeat what it did, and have little
    /// left to do when their own turn comes.
    pub kept: Duration,
    /// The time in which it does nothing. It may be paused, and all others wait for it.
    pub idle: Duration,
}

impl Default for TurnTimes {
    fn default() -> Self {
        Self { kept: Duration::from_millis(50), idle: Duration::from_secs(1) }
    }
}

/// How long after a lost race it is better to take turns.
const CONTENTION: Duration = Duration::from_secs(1);
/// The most bytes of bodies that one question gives, unless a single one is larger.
const MAX_GIVEN_BYTES: i64 = 4 << 20;
/// The most bytes of one body. A larger one is neither added nor read: each node has it in memory.
pub const MAX_BODY_BYTES: usize = SHARED_BATCH_BYTES;
const MAX_GIVEN_BATCHES: i64 = 1_000;

// The first row is the one before, to see that it is there; its body is not needed. To add up the lengths reads none.
const GIVE: &str =
    "select seq, id, node, head, base, commits, case when seq > $1 and octet_length(body) <= $4 then body end
    from (
        select *, sum(octet_length(body)) over (order by seq) as total
        from (select * from svc_batch where seq >= $1 order by seq limit $2) as next) as bounded
    where seq <= $1 + 1 or total <= $3
    order by seq";

/// How many of the newest batches are looked at for one that is missing among them.
pub(crate) const LOOKED_AT: i64 = 1_000;
// The last batch before the first one that is missing among the newest, how many are, and what the next one continues.
const FIND_GAP: &str = "select this.seq, this.id, this.node, this.head, next.seq - this.seq - 1, next.base
    from svc_batch as this,
        lateral (select seq, base from svc_batch where seq > this.seq order by seq limit 1) as next
    where this.seq >= (select max(seq) from svc_batch) - $1 and next.seq > this.seq + 1
    order by this.seq limit 1";

const TOUCH_NODE: &str =
    "insert into svc_node (name, seen) values ($1, now()) on conflict (name) do update set seen = now()";

/// Whether this node goes before others (D70).
#[derive(Debug)]
enum Turn {
    None,
    /// Another node was faster: the next time this node reads what is new, it keeps the others from appending.
    Wanted,
    /// The database was asked for the turn. Meanwhile this node goes on reading what is new.
    Asked(JoinHandle<Result<(), tokio_postgres::Error>>),
    /// A transaction is open on the turn's session since then, and holds the lock.
    Held(Instant),
}

#[derive(Debug)]
pub(super) struct OrderExchange {
    database: Database,
    pub(super) node: Arc<NodeState>,
    clock: Clock,
    pub(super) limit: Duration,
    pub(super) turn_times: TurnTimes,
    pub(super) recent: RecentBatches,
    session: Option<DatabaseSession>,
    /// The session that waits for the turn, or holds it, and does nothing else.
    turn_session: Option<DatabaseSession>,
    turn: Turn,
    contended_until: Option<Instant>,
}

impl OrderExchange {
    pub(super) fn new(database: Database, node: Arc<NodeState>, clock: Clock, limit: Duration) -> Self {
        Self {
            database,
            node,
            clock,
            limit,
            turn_times: TurnTimes::default(),
            recent: RecentBatches::default(),
            session: None,
            turn_session: None,
            turn: Turn::None,
            contended_until: None,
        }
    }

    pub(super) fn is_contended(&self) -> bool {
        self.contended_until.is_some_and(|until| Instant::now() < until)
    }

    /// How long this node has had its turn.
    pub(super) fn turn_age(&self) -> Option<Duration> {
        match self.turn {
            Turn::Held(since) => Some(since.elapsed()),
            Turn::None | Turn::Wanted | Turn::Asked(_) => None,
        }
    }

    pub(super) fn want_turn(&mut self) -> bool {
        let is_contended = self.is_contended();
        if is_contended && matches!(self.turn, Turn::None) {
            self.turn = Turn::Wanted;
        }
        is_contended
    }

    pub(super) async fn append(
        &mut self,
        batch: &SharedBatch,
        offer: &BatchOffer,
    ) -> Result<Appended, DatabaseError> {
        if batch.body.len() > MAX_BODY_BYTES {
            return Err(DatabaseError::TooLarge(batch.body.len()));
        }
        let after = match (offer.passed, batch.base) {
            (Some(passed), _) => Some(passed),
            (None, None) => None,
            (None, Some(head)) => match self.find_seq(head).await? {
                Some(seq) => Some(OrderPosition { seq, head }),
                None => return Ok(self.lose()),
            },
        };
        let known = self.recent.get(&batch.head).cloned();
        let identity = known.unwrap_or_else(|| BatchIdentity {
            id: Uuid::new_v4(),
            node: self.node.name().to_owned(),
            seq: None,
        });
        // Before it is sent: if the answer never comes, the batch keeps its id.
        self.recent.put(batch.head, identity.clone());
        let (id, author, sender) = (identity.id, identity.node.as_str(), &*self.node.clone());
        let new = NewBatch { batch, after, times: offer.times, id, author, sender };
        Ok(match self.add(&new).await? {
            Sent::Ours => {
                let seq = Some(new.seq());
                self.recent.put(batch.head, BatchIdentity { seq, ..identity });
                Appended::Done
            }
            Sent::Another => self.lose(),
            Sent::Untimely(clock) => Appended::Untimely { clock },
        })
    }

    fn lose(&mut self) -> Appended {
        self.node.races_lost.add(1);
        self.contended_until = Some(Instant::now() + CONTENTION);
        if matches!(self.turn, Turn::None) {
            self.turn = Turn::Wanted;
        }
        Appended::Behind
    }

    /// Finds out whether the batch is the one with its number. Repeats the same insert until the database says so or
    /// the time is over: while an attempt is under way no question shows it, but an insert waits for it.
    async fn add(&mut self, new: &NewBatch<'_>) -> Result<Sent, DatabaseError> {
        self.node.note_offered(new.seq());
        let in_turn = matches!(self.turn, Turn::Held(_));
        let send = async |session: &_, attempt| add::send(session, new, attempt, in_turn).await;
        self.try_often(Some(new.seq()), send).await
    }

    pub(super) async fn find_newest_known(
        &mut self,
        is_known: &mut dyn FnMut(&ObjectId) -> bool,
    ) -> Result<Option<ObjectId>, DatabaseError> {
        self.yield_turn().await;
        let newest = self.find_row_up_to(i64::MAX).await?;
        self.node.note_newest(newest.as_ref().map_or(0, |row| row.seq));
        let mut known = AppliedBatch::default();
        // A node that knows a batch knows all before it, but for those that were passed over. Nothing after `checked`
        // and up to `unknown` was looked at.
        let (mut checked, mut unknown) = (0, 0);
        if let Some(newest) = newest {
            if is_known(&newest.head) {
                known = AppliedBatch::at(newest.position());
            } else {
                unknown = newest.seq;
            }
        }
        while checked + 1 < unknown {
            let middle = checked + (unknown - checked) / 2;
            match self.find_row_up_to(middle).await?.filter(|row| row.seq > checked) {
                Some(row) if is_known(&row.head) => {
                    known = AppliedBatch::at(row.position());
                    checked = middle;
                }
                Some(row) => unknown = row.seq,
                // Rows are missing.
                None => checked = middle,
            }
        }
        // Behind batches that were passed over there may be more that this node knows.
        let mut looked_at = known.seq;
        while self.is_passed_after(looked_at).await? {
            let next = "select seq, id, node, head from svc_batch where seq > $1 order by seq limit $2";
            let rows = self.ask(next, &[(&looked_at, Type::INT8), (&MAX_GIVEN_BATCHES, Type::INT8)]).await?;
            let before = known.seq;
            for row in &rows {
                let row = self.remember(row)?;
                looked_at = row.seq;
                if is_known(&row.head) {
                    known = AppliedBatch::at(row.position());
                }
            }
            if known.seq == before {
                break;
            }
        }
        self.node.note_applied(known);
        Ok(known.head)
    }

    /// Tells the other nodes that this one passes over the batch.
    pub(super) async fn pass_over(
        &mut self,
        batch: &OrderedBatch,
        reason: &str,
    ) -> Result<(), DatabaseError> {
        self.yield_turn().await;
        let (node, OrderPosition { seq, head }) = (Arc::clone(&self.node), batch.position);
        let (name, instance, head) = (node.name(), node.instance(), head.as_slice());
        let parameters: [SqlParameter<'_>; 6] = [
            (&seq, Type::INT8),
            (&name, Type::TEXT),
            (&head, Type::BYTEA),
            (&batch.node, Type::TEXT),
            (&reason, Type::TEXT),
            (&instance, Type::TEXT),
        ];
        self.ask(PASS_OVER, &parameters).await?;
        self.node.passed_over.add(1);
        Ok(())
    }

    pub(super) async fn ask_votes(&mut self, position: OrderPosition) -> Result<Votes, DatabaseError> {
        self.yield_turn().await;
        let (seq, head) = (position.seq, position.head);
        let rows = self.ask(passed::VOTES, &[(&seq, Type::INT8), (&head.as_slice(), Type::BYTEA)]).await?;
        passed::read_votes(&rows)
    }

    pub(super) async fn find_gap(&mut self) -> Result<Option<OrderGap>, DatabaseError> {
        let rows = self.ask(FIND_GAP, &[(&LOOKED_AT, Type::INT8)]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let before = self.remember(row)?.head;
        let missing = usize::try_from(row.try_get::<_, i64>(4)?).unwrap_or_default();
        Ok(database::read_id(row, 5)?.map(|end| OrderGap { before, end, missing }))
    }

    /// Whether a batch after this one was passed over.
    async fn is_passed_after(&mut self, seq: i64) -> Result<bool, DatabaseError> {
        let find = "select from svc_passed where seq > $1 limit 1";
        Ok(!self.ask(find, &[(&seq, Type::INT8)]).await?.is_empty())
    }

    async fn find_row_up_to(&mut self, seq: i64) -> Result<Option<BatchRow>, DatabaseError> {
        let find = "select seq, id, node, head from svc_batch where seq <= $1 order by seq desc limit 1";
        let rows = self.ask(find, &[(&seq, Type::INT8)]).await?;
        rows.first().map(|row| self.remember(row)).transpose()
    }

    async fn find_seq(&mut self, head: ObjectId) -> Result<Option<i64>, DatabaseError> {
        match self.recent.seq(&head) {
            Some(seq) => Ok(Some(seq)),
            None => self.look_up(head).await,
        }
    }

    async fn look_up(&mut self, head: ObjectId) -> Result<Option<i64>, DatabaseError> {
        let find = "select seq, id, node, head from svc_batch where head = $1 order by seq desc limit 1";
        let rows = self.ask(find, &[(&head.as_slice(), Type::BYTEA)]).await?;
        rows.first().map(|row| self.remember(row).map(|row| row.seq)).transpose()
    }

    fn remember(&mut self, row: &Row) -> Result<BatchRow, DatabaseError> {
        let row = BatchRow::read(row)?;
        self.recent.put(row.head, BatchIdentity { id: row.id, node: row.node.clone(), seq: Some(row.seq) });
        Ok(row)
    }

    pub(super) async fn give_first(&mut self) -> Result<Vec<OrderedBatch>, DatabaseError> {
        let rows = self.read_from(0).await?;
        self.give(&rows, 0)
    }

    /// What comes after this place; `None` if another batch is there, or none.
    pub(super) async fn give_after(
        &mut self,
        position: OrderPosition,
    ) -> Result<Option<Vec<OrderedBatch>>, DatabaseError> {
        let rows = self.read_from(position.seq).await?;
        let Some((first, rest)) = rows.split_first() else { return Ok(None) };
        if BatchRow::read(first)?.position() != position {
            return Ok(None);
        }
        self.remember(first)?;
        self.give(rest, position.seq).map(Some)
    }

    /// What comes after the batch that ends with this commit; `None` if no batch ends there.
    pub(super) async fn give_after_commit(
        &mut self,
        head: ObjectId,
    ) -> Result<Option<Vec<OrderedBatch>>, DatabaseError> {
        if let Some(seq) = self.recent.seq(&head)
            && let Some(given) = self.give_after(OrderPosition { seq, head }).await?
        {
            return Ok(Some(given));
        }
        // The database has lost it, or has it in another place since.
        let Some(seq) = self.look_up(head).await? else { return Ok(None) };
        self.give_after(OrderPosition { seq, head }).await
    }

    async fn read_from(&mut self, seq: i64) -> Result<Vec<Row>, DatabaseError> {
        let largest = i32::try_from(MAX_BODY_BYTES).unwrap_or(i32::MAX);
        let bounds: [SqlParameter<'_>; 4] = [
            (&seq, Type::INT8),
            (&MAX_GIVEN_BATCHES, Type::INT8),
            (&MAX_GIVEN_BYTES, Type::INT8),
            (&largest, Type::INT4),
        ];
        if matches!(self.turn, Turn::Wanted | Turn::Asked(_)) {
            let limit = Tries::new(self.limit).share();
            match within(limit, self.read_in_turn(seq, &bounds)).await {
                Ok(rows) => return Ok(rows),
                // Without the turn, the node only has to decide again more often.
                Err(error) => {
                    tracing::debug!(%error, "no turn");
                    self.give_turn_up();
                    self.session = None;
                }
            }
        }
        self.ask(GIVE, &bounds).await
    }

    /// The batches of these rows, which come after the batch `seq`. Where one is missing they end.
    fn give(&mut self, rows: &[Row], seq: i64) -> Result<Vec<OrderedBatch>, DatabaseError> {
        if matches!(self.turn, Turn::Held(_) | Turn::Asked(_)) && !rows.is_empty() {
            self.contended_until = Some(Instant::now() + CONTENTION);
        }
        let mut given = Vec::with_capacity(rows.len());
        for (row, expected) in rows.iter().zip(seq + 1..) {
            let found = self.remember(row)?;
            if found.seq != expected {
                break;
            }
            given.push(database::read_batch(row, found)?);
        }
        if given.is_empty() && !rows.is_empty() { Err(DatabaseError::Missing(seq + 1)) } else { Ok(given) }
    }

    pub(super) async fn raise_nonce_floor(&mut self) -> Result<(), DatabaseError> {
        self.yield_turn().await;
        let now = database::to_system(self.clock.now());
        self.ask(RAISE_NONCE_FLOOR, &[(&now, Type::TIMESTAMPTZ)]).await.map(drop)
    }

    /// Asks one statement that can be repeated.
    async fn ask(&mut self, sql: &str, parameters: &[SqlParameter<'_>]) -> Result<Vec<Row>, DatabaseError> {
        self.try_often(None, async |session, _| session.query(sql, parameters).await).await
    }

    /// Works until it succeeds or the time is over. `appended` is the number of a batch, for which that is noted.
    async fn try_often<T>(
        &mut self,
        appended: Option<i64>,
        work: impl AsyncFn(&DatabaseSession, Attempt) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let (mut tries, mut attempt) = (Tries::new(self.limit), Attempt::First);
        loop {
            let sent = Instant::now();
            let answer = match within(tries.left(), self.session()).await {
                Ok(session) => within(tries.share(), work(session, attempt)).await,
                Err(error) => Err(error),
            };
            self.node.note_answer(sent, &answer);
            match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    if let Some(seq) = appended {
                        tracing::warn!(seq, %error, "an append has no answer");
                    }
                    self.session = None;
                    tries.pause(error).await?;
                    self.node.repeated_appends.add(appended.is_some().into());
                    attempt = Attempt::Repeated;
                }
            }
        }
    }

    /// What is new, as soon as there is something, and at the latest when it is this node's turn. So in its turn, while
    /// all others wait, a node has little to read.
    async fn read_in_turn(
        &mut self,
        seq: i64,
        bounds: &[SqlParameter<'_>],
    ) -> Result<Vec<Row>, DatabaseError> {
        let mut asked = match std::mem::replace(&mut self.turn, Turn::None) {
            Turn::Asked(asked) => asked,
            Turn::None | Turn::Wanted | Turn::Held(_) => {
                let idle = self.turn_times.idle;
                let session = connected(&self.database, &mut self.turn_session, "turn", idle).await?;
                let client = Arc::clone(&session.client);
                tokio::spawn(async move { client.batch_execute(TAKE_TURN).await })
            }
        };
        let node = Arc::clone(&self.node);
        let session =
            order_session(&self.database, self.turn_times.idle, &mut self.session, node.name()).await?;
        let granted = loop {
            if asked.is_finished() {
                break asked.await;
            }
            // From here on no news is missed.
            let news = node.hear_news();
            let rows = session.query(GIVE, bounds).await?;
            if !database::ends_with(&rows, seq)? {
                self.turn = Turn::Asked(asked);
                return Ok(rows);
            }
            tokio::select! {
                granted = &mut asked => break granted,
                () = news => {}
            }
        };
        granted.map_err(|_| DatabaseError::Lost)??;
        self.turn = Turn::Held(Instant::now());
        session.query(GIVE, bounds).await
    }

    /// Lets the others go on, if they wait for this node.
    pub(super) async fn yield_turn(&mut self) {
        let turn = std::mem::replace(&mut self.turn, Turn::None);
        match (turn, &self.turn_session) {
            (Turn::None | Turn::Wanted, _) => {}
            (Turn::Held(_), Some(session)) => {
                let share = Tries::new(self.limit).share();
                let ended =
                    within(share, async { Ok(session.client.batch_execute("rollback").await?) }).await;
                if ended.is_err() {
                    self.give_turn_up();
                }
            }
            (Turn::Asked(_) | Turn::Held(_), _) => self.give_turn_up(),
        }
    }

    /// Gives the turn up without the database's answer: the lock ends with its connection.
    fn give_turn_up(&mut self) {
        (self.turn_session, self.turn) = (None, Turn::None);
    }

    async fn session(&mut self) -> Result<&DatabaseSession, DatabaseError> {
        order_session(&self.database, self.turn_times.idle, &mut self.session, self.node.name()).await
    }
}

/// The session for statements. A new one writes before it reads. After a crash the database may show batches that its
/// synchronous standby never had, and that another primary does not have; the write waits until the standby has all
/// that is there (D199).
async fn order_session<'a>(
    database: &Database,
    idle: Duration,
    slot: &'a mut Option<DatabaseSession>,
    name: &str,
) -> Result<&'a DatabaseSession, DatabaseError> {
    if slot.as_ref().is_none_or(DatabaseSession::is_closed) {
        *slot = None;
        let session = database.connect("order", idle).await?;
        session.query(TOUCH_NODE, &[(&name, Type::TEXT)]).await?;
        *slot = Some(session);
    }
    slot.as_ref().ok_or(DatabaseError::Lost)
}

// How often one thing is tried.

/// The pauses between two tries, growing.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
];

/// The tries of one exchange, within a limit of time.
#[derive(Debug)]
pub(super) struct Tries {
    limit: Duration,
    started: Instant,
    made: usize,
}

impl Tries {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, started: Instant::now(), made: 0 }
    }

    pub(super) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.started.elapsed())
    }

    /// The time for one try: its answer may be lost, and then there must be time for another one.
    pub(super) fn share(&self) -> Duration {
        (self.limit * 2 / 5).min(self.left())
    }

    /// Gives the error back if there is no use or no time for another try.
    pub(super) async fn pause(&mut self, error: DatabaseError) -> Result<(), DatabaseError> {
        let pause = PAUSES[self.made.min(PAUSES.len() - 1)];
        self.made += 1;
        if !error.is_passing() || self.left() <= pause {
            return Err(error);
        }
        sleep(pause).await;
        Ok(())
    }
}

// Which of the newest batches is where in the order, and under which id.

/// How many batches are remembered. A failover loses far fewer.
pub(crate) const MAX_RECENT: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BatchIdentity {
    pub(crate) id: Uuid,
    /// The node that made the batch.
    pub(crate) node: String,
    /// The number of the batch; `None` until the database has it.
    pub(crate) seq: Option<i64>,
}

/// Batches by their last commits. One that the database lost is appended again under the same id, by each node that
/// has it: so the first one wins, and the others see that it is there.
#[derive(Debug, Default)]
pub(crate) struct RecentBatches {
    by_head: HashMap<ObjectId, BatchIdentity>,
    oldest_first: VecDeque<ObjectId>,
}

impl RecentBatches {
    pub(crate) fn get(&self, head: &ObjectId) -> Option<&BatchIdentity> {
        self.by_head.get(head)
    }

    pub(crate) fn seq(&self, head: &ObjectId) -> Option<i64> {
        self.get(head).and_then(|batch| batch.seq)
    }

    pub(crate) fn put(&mut self, head: ObjectId, batch: BatchIdentity) {
        if self.by_head.insert(head, batch).is_none() {
            self.oldest_first.push_back(head);
        }
        if self.oldest_first.len() > MAX_RECENT
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.by_head.remove(&oldest);
        }
    }
}
