//! Work that is done again and again, on a thread of its own: it may block, and it leaves the runtime's clock alone.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::task::spawn_blocking;

#[derive(Debug)]
pub(crate) struct Rounds {
    is_stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Rounds {
    /// Begins at once, and rests between two rounds.
    pub(crate) fn start(
        name: &str,
        rest: Duration,
        mut round: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&is_stopping);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            while !stopping.load(Ordering::Relaxed) {
                // A panic was logged where it happened. The next round begins anew.
                let _ = catch_unwind(AssertUnwindSafe(&mut round));
                thread::park_timeout(rest);
            }
        })?;
        Ok(Self { is_stopping, thread })
    }

    /// A round that is under way is finished first.
    pub(crate) async fn stop(self) -> io::Result<()> {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let joined = spawn_blocking(|| self.thread.join()).await.map_err(io::Error::other)?;
        joined.map_err(|_| io::Error::other("a thread panicked"))
    }
}
