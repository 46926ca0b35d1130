//! A database and the nodes on it.

use std::{net::SocketAddr, sync::Arc, sync::atomic::AtomicU64, sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use countersign_cluster::settings::{DatabaseSettings, UrlSource};
use countersign_cluster::{
    database::Database, node::NodeState, nonces::SharedNonces, order::SharedOrder, schema::prepare,
};
use countersign_core::values::time::Timestamp;
use countersign_store::sequence::{
    Appended, BatchOffer, BatchTimes, SequenceError, Sequencer as _, SharedBatch,
};
use countersign_store::{ObjectId, machine::clock::Clock};
use countersign_testing::postgres::{Postgres, PostgresOptions};
use tokio::runtime::{Builder, Runtime};

pub(crate) const FAST: PostgresOptions =
    PostgresOptions { needs_password: false, certificate: None, skips_fsync: true, settings: &[] };

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) postgres: Postgres,
}

/// A node as the store's writer sees it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) state: Arc<NodeState>,
    pub(crate) order: SharedOrder,
}

impl World {
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(FAST)
    }

    pub(crate) fn start_with(options: PostgresOptions) -> Option<Self> {
        let postgres = Postgres::start_with(options)?;
        let runtime = runtime();
        let world = Self { runtime, postgres };
        world.runtime.block_on(prepare(&world.database())).expect("an empty database");
        Some(world)
    }

    pub(crate) fn database(&self) -> Database {
        database(&self.postgres.url())
    }

    pub(crate) fn database_at(&self, address: SocketAddr) -> Database {
        database(&self.postgres.url_at(address))
    }

    pub(crate) fn node(&self, name: &str) -> Node {
        self.node_on(name, self.database())
    }

    pub(crate) fn node_on(&self, name: &str, database: Database) -> Node {
        let state = NodeState::new(name);
        let order = SharedOrder::new(database, Arc::clone(&state), Clock::system()).expect("a runtime");
        Node { state, order }
    }

    pub(crate) fn nonces(&self, node: &Node) -> SharedNonces {
        self.nonces_on(node, self.database())
    }

    pub(crate) fn nonces_on(&self, node: &Node, database: Database) -> SharedNonces {
        let limit = Duration::from_secs(2);
        let (runtime, state) = (self.runtime.handle(), Arc::clone(&node.state));
        SharedNonces::start(runtime, database, state, Clock::system(), limit)
    }

    /// The heads of all batches.
    pub(crate) fn heads(&self) -> Vec<String> {
        let heads = self.postgres.sql("select encode(head, 'hex') from svc_batch order by seq");
        heads.lines().map(str::to_owned).collect()
    }
}

impl Node {
    /// Appends as the store does: append, and if another node was faster, read what is new and try again on that.
    #[track_caller]
    pub(crate) fn write(&mut self, base: &mut Option<ObjectId>, body: &str) -> ObjectId {
        loop {
            if self.order.wants_turn() {
                *base = self.read_all(*base);
            }
            let batch = batch(*base, body);
            match self.append(&batch).expect("the database is there") {
                Appended::Done => {
                    self.order.note_published(batch.head, None);
                    self.order.yield_turn();
                    *base = Some(batch.head);
                    return batch.head;
                }
                Appended::Behind => *base = self.read_all(*base),
                Appended::Untimely { clock } => panic!("the clocks differ: {clock}"),
            }
        }
    }

    /// Appends a batch that was decided now.
    pub(crate) fn append(&mut self, batch: &SharedBatch) -> Result<Appended, SequenceError> {
        self.order.append(batch, &offer_at(Clock::system().now()))
    }

    /// Up to the newest batch. Then it is this node's turn, if it wants one.
    #[track_caller]
    pub(crate) fn read_all(&mut self, base: Option<ObjectId>) -> Option<ObjectId> {
        let mut last = base;
        while let Some(next) = self.catch_up(last) {
            last = Some(next);
        }
        last
    }

    #[track_caller]
    pub(crate) fn catch_up(&mut self, base: Option<ObjectId>) -> Option<ObjectId> {
        let given = self.batches_after(base).expect("the database is there");
        let mut last = base;
        for batch in &given {
            assert_eq!(batch.base, last, "each batch continues the one before");
            last = Some(batch.head);
            self.order.note_published(batch.head, None);
        }
        given.last().map(|batch| batch.head)
    }

    pub(crate) fn batches_after(
        &mut self,
        base: Option<ObjectId>,
    ) -> Result<Vec<SharedBatch>, SequenceError> {
        let given = self.order.batches_after(base, None)?;
        Ok(given.into_iter().map(|ordered| ordered.batch).collect())
    }
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads")
}

pub(crate) fn database(url: &str) -> Database {
    let settings = DatabaseSettings::parse(url, UrlSource::File).expect("a good URL");
    Database::new(settings).expect("its certificates")
}

/// A commit id that no other has.
pub(crate) fn new_id() -> ObjectId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut bytes = [7; 20];
    bytes[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    ObjectId::try_from(&bytes[..]).expect("20 bytes")
}

pub(crate) fn batch(base: Option<ObjectId>, body: &str) -> SharedBatch {
    SharedBatch { base, head: new_id(), commits: 1, body: Bytes::copy_from_slice(body.as_bytes()) }
}

/// An offer of what was decided at this time.
pub(crate) fn offer_at(time: Timestamp) -> BatchOffer {
    BatchOffer { times: Some(BatchTimes { base: at(0), oldest: time, newest: time }), passed: None }
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(seconds).expect("a time")
}
