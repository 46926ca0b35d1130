//! Hears of other nodes' batches: by notification, and by asking twice a second, which is enough where a pooler keeps
//! notifications away. The same connection says that this node is there, and forgets expired nonces.

use std::{sync::Arc, time::Duration, time::Instant, time::SystemTime};

use countersign_store::{machine::clock::Clock, nonces::NonceStats};
use tokio::{runtime::Handle, task::JoinHandle, time::sleep, time::timeout_at};
use tokio_postgres::types::Type;

use crate::database::{Database, DatabaseSession, SqlParameter, read_id, within};
use crate::node::{ClockQuestion, KnownPlace, NodeState};
use crate::nonces::{NoncePurge, RAISE_NONCE_FLOOR};
use crate::{error::DatabaseError, nonces, order::LOOKED_AT, passed};

const POLL: Duration = Duration::from_millis(500);
/// How often a node says that it is there.
pub const REGISTER: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(5);
/// The pauses between two tries to connect: doubled from the first to the second.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

const REGISTRATION: &str =
    "insert into svc_node (name, position, commit, version, started, seen, clock_millis, halted)
    values ($1, $2, $3, $4, $5, now(), $6, left($7, 2000))
    on conflict (name) do update set
        position = excluded.position, commit = excluded.commit, version = excluded.version,
        started = excluded.started, seen = excluded.seen, clock_millis = excluded.clock_millis,
        halted = excluded.halted";

// The newest batch, the one with the number of the newest that this node has judged, how many of the newest there are,
// how many were passed over, what time it is, and whether a nonce is gone that this node has stored.
const LOOK: &str =
    "select (select coalesce(max(seq), 0) from svc_batch), (select head from svc_batch where seq = $1),
    (select count(*) from svc_batch where seq > (select max(seq) from svc_batch) - $2),
    (select count(*) from svc_passed), clock_timestamp(),
    coalesce($4 > clock_timestamp() and not exists (select from svc_nonce where nonce = $3), false)";

/// Runs until it is dropped. What it hears goes to [`NodeState`].
#[derive(Debug)]
pub struct NewsReader {
    task: JoinHandle<()>,
}

impl Drop for NewsReader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl NewsReader {
    /// Starts the reader of news. `version` is what `svc_node` shows as this node's.
    pub fn start(
        runtime: &Handle,
        database: Database,
        node: Arc<NodeState>,
        version: &str,
        nonces: Arc<NonceStats>,
        clock: Clock,
    ) -> Self {
        let following = Connected {
            node,
            clock,
            registered_halt: None,
            registered_clock: false,
            version: version.to_owned(),
            started: SystemTime::now(),
            registered: None,
            purge: NoncePurge::default(),
            nonces,
        };
        Self { task: runtime.spawn(follow(database, following)) }
    }
}

/// Connects again for ever.
async fn follow(database: Database, mut following: Connected) {
    let mut pause = PAUSES[0];
    loop {
        let started = Instant::now();
        let error = match database.connect("news", LIMIT).await {
            Ok(session) => following.run(session).await,
            Err(error) => error,
        };
        following.node.note_answer(started, &Err::<(), _>(error));
        pause = if started.elapsed() > PAUSES[1] { PAUSES[0] } else { (pause * 2).min(PAUSES[1]) };
        sleep(pause).await;
    }
}

struct Connected {
    node: Arc<NodeState>,
    clock: Clock,
    /// The halt that the other nodes were told last.
    registered_halt: Option<Arc<String>>,
    registered_clock: bool,
    version: String,
    started: SystemTime,
    registered: Option<Instant>,
    purge: NoncePurge,
    nonces: Arc<NonceStats>,
}

impl Connected {
    /// Follows until the connection breaks.
    async fn run(&mut self, mut session: DatabaseSession) -> DatabaseError {
        if let Err(error) = within(LIMIT, listen(&session)).await {
            return error;
        }
        loop {
            if let Err(error) = self.look(&session).await {
                return error;
            }
            let next_look = Instant::now() + POLL;
            while let Ok(notification) = timeout_at(next_look.into(), session.next_notification()).await {
                match notification {
                    Some(sender) if sender != self.node.instance() => self.node.wake(),
                    // Our own batches are published by the writer that appended them.
                    Some(_) => {}
                    None => return DatabaseError::Lost,
                }
            }
        }
    }

    async fn look(&mut self, session: &DatabaseSession) -> Result<(), DatabaseError> {
        let (sent, question, judged) = (Instant::now(), ClockQuestion::begin(), self.node.applied());
        let mark = self.node.nonce_mark();
        let (nonce, expires) = (mark.map(|mark| mark.nonce), mark.map(|mark| mark.expires));
        let parameters: [SqlParameter<'_>; 4] = [
            (&judged.seq, Type::INT8),
            (&LOOKED_AT, Type::INT8),
            (&nonce, Type::UUID),
            (&expires, Type::TIMESTAMPTZ),
        ];
        let row = within(LIMIT, session.query_one(LOOK, &parameters)).await;
        self.node.note_answer(sent, &row);
        let row = row?;
        self.node.note_clock(question.end(&self.clock, row.try_get(4)?)?);
        let newest: i64 = row.try_get(0)?;
        self.node.note_newest(newest);
        self.node.note_gap(row.try_get::<_, i64>(2)? != newest.min(LOOKED_AT));
        let head = read_id(&row, 1)?;
        if row.try_get::<_, i64>(3)? > 0 {
            self.node.note_passed(within(LIMIT, passed::read_passed(session)).await?);
        }
        // Less than what is published means that the database has lost something, and another commit in the same place
        // that it went another way. Meanwhile this node may have come further.
        let is_as_known = self.node.know(judged.seq, head) == KnownPlace::Judged;
        if newest != self.node.applied().seq || !is_as_known || self.node.has_gap() {
            self.node.wake();
        }
        if row.try_get(5)? {
            self.node.forget_nonce_mark(mark);
            nonces::note_lost();
            within(LIMIT, session.query(RAISE_NONCE_FLOOR, &[(&SystemTime::now(), Type::TIMESTAMPTZ)]))
                .await?;
        }
        let is_wrong = self.node.check_clock().is_err();
        let is_news = self.registered_halt != self.node.halted() || self.registered_clock != is_wrong;
        if is_news || self.registered.is_none_or(|registered| registered.elapsed() >= REGISTER) {
            self.register(session).await?;
            self.registered = Some(Instant::now());
            self.registered_clock = is_wrong;
        }
        if let Some(kept) = self.purge.run(session).await? {
            self.nonces.kept.set(kept);
        }
        Ok(())
    }

    async fn register(&mut self, session: &DatabaseSession) -> Result<(), DatabaseError> {
        let (applied, halted) = (self.node.applied(), self.node.halted());
        let commit = applied.head.as_ref().map(|head| head.as_slice());
        let (name, reason) = (self.node.name(), halted.as_deref().map(String::as_str));
        let clock_millis = self.node.clock().map(|clock| clock.lead_millis());
        let parameters: [SqlParameter<'_>; 7] = [
            (&name, Type::TEXT),
            (&applied.seq, Type::INT8),
            (&commit, Type::BYTEA),
            (&self.version, Type::TEXT),
            (&self.started, Type::TIMESTAMPTZ),
            (&clock_millis, Type::INT8),
            (&reason, Type::TEXT),
        ];
        within(LIMIT, session.query(REGISTRATION, &parameters)).await?;
        self.registered_halt = halted;
        Ok(())
    }
}

async fn listen(session: &DatabaseSession) -> Result<(), DatabaseError> {
    let number = session.query_one("select 'svc_repository'::regclass::oid::text", &[]).await?;
    let number: String = number.try_get(0)?;
    // Where there is no LISTEN, asking is enough.
    if let Err(error) = session.client.batch_execute(&format!("listen svc_batch_{number}")).await {
        tracing::info!(%error, "the database does not notify: other nodes' changes come up to half a second later");
    }
    Ok(())
}
