//! The newest checkpoint of the log that all nodes keep together (D88). Who signs the next one is decided by the size
//! in one row. What witnesses said is also kept by each node on its own.

use std::{io, path::Path, sync::Arc, time::Duration};

use countersign_core::log::{checkpoint::Checkpoint, note::Note};
use countersign_log::{CheckpointFiles, CheckpointKeeper, KeepError, KeptNotes};
use tokio_postgres::types::Type;

use crate::database::{Database, DatabaseSession, SqlParameter, ThreadRuntime, connected, within};
use crate::error::DatabaseError;

const LIMIT: Duration = Duration::from_secs(5);

/// The log's thread asks, over a connection of its own.
#[derive(Debug)]
pub struct SharedCheckpoints {
    database: Database,
    session: Option<DatabaseSession>,
    files: CheckpointFiles,
    // Dropped after what uses it.
    runtime: ThreadRuntime,
}

impl SharedCheckpoints {
    /// A keeper in the database. `dir` is for what this node alone knows.
    pub fn new(database: Database, dir: &Path) -> io::Result<Self> {
        let (files, runtime) = (CheckpointFiles::new(dir), ThreadRuntime::new(&database)?);
        Ok(Self { database, session: None, files, runtime })
    }

    fn ask<T>(
        &mut self,
        question: impl AsyncFnOnce(&DatabaseSession) -> Result<T, DatabaseError>,
    ) -> Result<T, KeepError> {
        let Self { database, session, runtime, .. } = self;
        let asked = runtime.block_on(async {
            let open = connected(database, session, "log", LIMIT).await?;
            within(LIMIT, question(open)).await
        });
        asked.map_err(|error| {
            *session = None;
            KeepError::Unreachable(Arc::new(error))
        })
    }
}

impl CheckpointKeeper for SharedCheckpoints {
    fn load(&mut self) -> Result<KeptNotes, KeepError> {
        let newest = self.ask(async |session| {
            let rows = session.query("select note from svc_checkpoint", &[]).await?;
            Ok(rows.first().map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()?)
        })?;
        let KeptNotes { newest: cached, cosigned, .. } = self.files.load()?;
        Ok(KeptNotes { newest, cosigned, cached })
    }

    fn location(&self) -> String {
        format!("the table svc_checkpoint of {}", self.database.settings())
    }

    fn keep_newest(&mut self, before: u64, note: &str) -> Result<(), KeepError> {
        let numbers = (size_of(note), i64::try_from(before).ok());
        let (Some(size), Some(before)) = numbers else { return Err(KeepError::Overtaken) };
        let note = note.as_bytes();
        let kept = self.ask(async |session| {
            // The second of two that begin finds a row, and the second of two that go on another size.
            let sql = if before == 0 {
                "insert into svc_checkpoint (size, note) values ($1, $2) on conflict do nothing returning size"
            } else {
                "update svc_checkpoint set size = $1, note = $2 where size = $3 returning size"
            };
            let parameters: [SqlParameter<'_>; 3] =
                [(&size, Type::INT8), (&note, Type::BYTEA), (&before, Type::INT8)];
            let count = if before == 0 { 2 } else { 3 };
            Ok(!session.query(sql, &parameters[..count]).await?.is_empty())
        })?;
        if kept { Ok(()) } else { Err(KeepError::Overtaken) }
    }

    fn keep_cosigned(&mut self, note: &str) -> Result<(), KeepError> {
        self.files.keep_cosigned(note)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn note_cached(&mut self, note: &str) -> Result<(), KeepError> {
        self.files.keep_newest(0, note)
    }
}

fn size_of(note: &str) -> Option<i64> {
    let note = Note::parse(note.as_bytes()).ok()?;
    Checkpoint::parse(note.text()).ok()?.size.try_into().ok()
}
