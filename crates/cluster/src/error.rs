//! Why the database did not do what was asked.

use std::{sync::Arc, time::Duration};

use thiserror::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

#[derive(Debug, Clone, Error)]
pub enum DatabaseError {
    #[error("cannot connect to the database {address}")]
    Connect { address: String, source: Arc<tokio_postgres::Error> },
    #[error("cannot connect to the database {address} within {} s", limit.as_secs())]
    ConnectTime { address: String, limit: Duration },
    #[error("the database failed")]
    Query(#[source] Arc<tokio_postgres::Error>),
    #[error("the connection to the database broke")]
    Lost,
    /// The program stops, and waits for the database no longer ([`crate::database::Database::give_up`]).
    #[error("the server stops, and the database cannot be reached")]
    GivenUp,
    #[error("the database did not answer within {} ms", .0.as_millis())]
    Time(Duration),
    /// The database did it, but perhaps not on its synchronous standby (SQLSTATE 01000).
    #[error("the database did not wait for its synchronous standby")]
    Unreplicated,
    /// A repetition came too late, and an earlier try may still succeed.
    #[error("the database did not take the batch in time")]
    Late,
    #[error("the batch {0} is missing in the database, and later ones are there")]
    Missing(i64),
    #[error("a batch of {0} bytes is too large")]
    TooLarge(usize),
    #[error("the database answered something that this program cannot read: {0}")]
    Strange(String),
}

impl DatabaseError {
    pub fn sql_state(&self) -> Option<&SqlState> {
        match self {
            Self::Query(source) | Self::Connect { source, .. } => source.code(),
            Self::ConnectTime { .. }
            | Self::Time(_)
            | Self::Lost
            | Self::GivenUp
            | Self::Unreplicated
            | Self::Late
            | Self::Missing(_)
            | Self::TooLarge(_)
            | Self::Strange(_) => None,
        }
    }

    /// Whether another try can help: the connection was lost, another server has become the primary, or two
    /// transactions were in each other's way. Everything else stays as it is until an operator acts.
    pub(crate) fn is_passing(&self) -> bool {
        let Some(code) = self.sql_state() else {
            return !matches!(self, Self::Strange(_) | Self::TooLarge(_) | Self::Missing(_) | Self::GivenUp);
        };
        if let Self::Query(source) = self
            && source.as_db_error().and_then(DbError::parsed_severity) == Some(Severity::Fatal)
        {
            // The connection is gone, for example because it held a turn for too long.
            return true;
        }
        // Connection exceptions, rollbacks, resources, operator intervention; a lock; a server that is read-only.
        ["08", "40", "53", "57"].iter().any(|class| code.code().starts_with(class))
            && *code != SqlState::DISK_FULL
            || [SqlState::LOCK_NOT_AVAILABLE, SqlState::READ_ONLY_SQL_TRANSACTION].contains(code)
    }
}

impl From<tokio_postgres::Error> for DatabaseError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Query(Arc::new(error))
    }
}
