//! Asks the database from a thread that is not of an async runtime.

use std::{future::Future, io};

use tokio::runtime::{Builder, Runtime};

use crate::error::DatabaseError;

/// Runs async code in the thread that calls. Connections rest while no one asks.
#[derive(Debug)]
pub(crate) struct ThreadRuntime(Option<Runtime>);

impl ThreadRuntime {
    pub(crate) fn new() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build().map(Some).map(Self)
    }

    pub(crate) fn block_on<T>(
        &self,
        work: impl Future<Output = Result<T, DatabaseError>>,
    ) -> Result<T, DatabaseError> {
        self.0.as_ref().map_or(Err(DatabaseError::Lost), |runtime| runtime.block_on(work))
    }
}

/// A runtime must not wait for its end where others run.
impl Drop for ThreadRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
