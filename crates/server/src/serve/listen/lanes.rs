//! Threads that each serve connections of their own. A connection stays with its thread.
//!
//! The threads of one runtime, which share all connections, serve a tenth fewer reads (docs/performance.md). And a
//! handler that blocks one of them can keep all of that runtime's connections waiting.

use std::{io, num::NonZero, sync::Arc, sync::mpsc, thread};

use tokio::{net::TcpStream, runtime::Builder, runtime::Handle, sync::oneshot, task::JoinHandle};

#[derive(Debug)]
pub struct Lanes(Vec<Arc<Lane>>);

/// Its holder is served there.
#[derive(Debug)]
struct Lane {
    runtime: Handle,
    /// Its end ends the thread.
    _running: Option<oneshot::Sender<()>>,
}

impl Lanes {
    /// One for each processor.
    pub fn start() -> io::Result<Self> {
        Self::start_some(thread::available_parallelism().map_or(1, NonZero::get))
    }

    pub fn start_some(count: usize) -> io::Result<Self> {
        (0..count).map(|number| Lane::start(number).map(Arc::new)).collect::<io::Result<_>>().map(Self)
    }

    /// The threads that the caller runs on, for a listener where little happens.
    pub fn shared() -> Self {
        Self(vec![Arc::new(Lane { runtime: Handle::current(), _running: None })])
    }

    /// Serves a connection where the fewest are served.
    pub fn spawn<F: Future<Output = ()> + Send + 'static>(
        &self,
        stream: TcpStream,
        serve: impl FnOnce(TcpStream) -> F,
    ) -> io::Result<JoinHandle<()>> {
        let lane = self.0.iter().min_by_key(|lane| Arc::strong_count(lane)).cloned();
        let lane = lane.ok_or(io::ErrorKind::NotFound)?;
        let runtime = lane.runtime.clone();
        let _inside = runtime.enter();
        let serving = serve(TcpStream::from_std(stream.into_std()?)?);
        Ok(runtime.spawn(async move {
            let _lane = lane;
            serving.await;
        }))
    }
}

impl Lane {
    fn start(number: usize) -> io::Result<Self> {
        let (running, ended) = oneshot::channel();
        let (started, start) = mpsc::channel();
        let mut builder = Builder::new_current_thread();
        builder.enable_io().enable_time();
        // New connections, and answers that other threads made, take turns with requests that this thread answers
        // alone. Else they get one turn in 31, and a flood that is refused here would hold up the pages of others.
        builder.global_queue_interval(2);
        let serve = move || match builder.build() {
            Ok(runtime) => {
                let _ = started.send(Ok(runtime.handle().clone()));
                // It never sends; it ends.
                let _ = runtime.block_on(ended);
            }
            Err(error) => {
                let _ = started.send(Err(error));
            }
        };
        thread::Builder::new().name(format!("connections-{number}")).spawn(serve)?;
        let runtime = start.recv().map_err(io::Error::other)??;
        Ok(Self { runtime, _running: Some(running) })
    }
}
