//! Work beside the requests.

use std::io;

use tokio::{sync::watch, task::JoinHandle};

/// Work that goes on until it is told to stop.
#[derive(Debug)]
pub(super) struct Background {
    stop: watch::Sender<bool>,
    working: JoinHandle<()>,
}

impl Background {
    pub(super) fn start<F: Future<Output = ()> + Send + 'static>(
        work: impl FnOnce(watch::Receiver<bool>) -> F,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        Self { stop, working: tokio::spawn(work(stopped)) }
    }

    pub(super) async fn stop(self) -> io::Result<()> {
        self.stop.send_replace(true);
        self.working.await.map_err(io::Error::other)
    }
}
