//! Hearing of other nodes' batches: by notification, and by asking twice a second, which is enough where a pooler keeps
//! notifications away. The same connection says that this node is there, and forgets expired nonces.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use countersign_store::nonces::NonceStats;
use tokio::{
    runtime::Handle,
    task::JoinHandle,
    time::{sleep, timeout_at},
};
use tokio_postgres::types::Type;

use crate::{
    database::{Database, DatabaseSession, SqlParameter, within},
    error::DatabaseError,
    node::NodeState,
    purge::NoncePurge,
    rows::{self, NEWEST_SEQ},
};

const POLL: Duration = Duration::from_millis(500);
/// How often a node says that it is there.
pub const REGISTER: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(5);
/// Between two tries to connect: doubled from the first to the second.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

const REGISTRATION: &str = "insert into svc_node (name, position, commit, version, started, seen)
    values ($1, $2, $3, $4, $5, now())
    on conflict (name) do update set
        position = excluded.position, commit = excluded.commit, version = excluded.version,
        started = excluded.started, seen = excluded.seen";

/// Runs until it is dropped. What it hears goes to [`NodeState`].
#[derive(Debug)]
pub struct ClusterFollower {
    task: JoinHandle<()>,
}

impl Drop for ClusterFollower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ClusterFollower {
    /// `version` is what `svc_node` shows as this node's.
    pub fn start(
        runtime: &Handle,
        database: Database,
        node: Arc<NodeState>,
        version: &str,
        nonces: Arc<NonceStats>,
    ) -> Self {
        let following = Connected {
            node,
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
        let error = match database.connect("follower", LIMIT).await {
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
    version: String,
    started: SystemTime,
    registered: Option<Instant>,
    purge: NoncePurge,
    nonces: Arc<NonceStats>,
}

impl Connected {
    /// Until the connection breaks.
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
        let sent = Instant::now();
        let rows = within(LIMIT, session.query(NEWEST_SEQ, &[])).await;
        self.node.note_answer(sent, &rows);
        let newest = rows::read_newest_seq(&rows?)?;
        self.node.note_newest(newest);
        // Less than what is published means that the database has lost something.
        if newest != self.node.applied().seq {
            self.node.wake();
        }
        if self.registered.is_none_or(|registered| registered.elapsed() >= REGISTER) {
            self.register(session).await?;
            self.registered = Some(Instant::now());
        }
        if let Some(kept) = self.purge.run(session).await? {
            self.nonces.note_kept(kept);
        }
        Ok(())
    }

    async fn register(&self, session: &DatabaseSession) -> Result<(), DatabaseError> {
        let applied = self.node.applied();
        let commit = applied.head.as_ref().map(|head| head.as_slice());
        let name = self.node.name();
        let parameters: [SqlParameter<'_>; 5] = [
            (&name, Type::TEXT),
            (&applied.seq, Type::INT8),
            (&commit, Type::BYTEA),
            (&self.version, Type::TEXT),
            (&self.started, Type::TIMESTAMPTZ),
        ];
        within(LIMIT, session.query(REGISTRATION, &parameters)).await.map(drop)
    }
}

async fn listen(session: &DatabaseSession) -> Result<(), DatabaseError> {
    let number = session.query("select 'svc_repository'::regclass::oid::text", &[]).await?;
    let number: String = number.first().map_or(Ok(String::new()), |row| row.try_get(0))?;
    // Where there is no LISTEN, asking is enough.
    if let Err(error) = session.client.batch_execute(&format!("listen svc_batch_{number}")).await {
        tracing::info!(%error, "the database does not notify: other nodes' changes come up to half a second later");
    }
    Ok(())
}
