//! Threads that each serve connections of their own. A connection stays with its thread.
//!
//! The threads of one runtime, which share all connections, serve a tenth fewer reads (docs/performance.md). And a
//! handler that blocks one of them can keep all of that runtime's connections waiting.

use std::{
    io,
    num::NonZero,
    sync::{Arc, mpsc},
    thread,
};

use tokio::{
    net::TcpStream,
    runtime::{Builder, Handle},
    sync::oneshot,
    task::JoinHandle,
};

use super::calendar;

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
    /// Two for each processor. A lane that waits for its turn makes its connections wait too: with one for each, one
    /// read in a hundred took 4.0 ms, and with two 2.0 ms (docs/performance.md).
    pub fn start() -> io::Result<Self> {
        Self::start_some(2 * thread::available_parallelism().map_or(1, NonZero::get))
    }

    pub(super) fn start_some(count: usize) -> io::Result<Self> {
        (0..count).map(|number| Lane::start(number).map(Arc::new)).collect::<io::Result<_>>().map(Self)
    }

    /// The threads that the caller runs on, for a listener where little happens.
    pub fn shared() -> Self {
        Self(vec![Arc::new(Lane { runtime: Handle::current(), _running: None })])
    }

    /// Serves a connection where the fewest are served.
    pub(super) fn spawn<F: Future<Output = ()> + Send + 'static>(
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
        let serve = move || match Builder::new_current_thread().enable_io().enable_time().build() {
            Ok(runtime) => {
                calendar::note_date();
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

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{SocketAddr, TcpStream as StdStream},
        sync::Mutex,
        time::Duration,
    };

    use axum::{Router, http::Uri};
    use tokio::{
        net::TcpListener,
        sync::{Notify, watch},
        task::spawn_blocking,
        time::timeout,
    };

    use super::*;
    use crate::listen::{Gate, serve, tests::service};

    const PATIENCE: Duration = Duration::from_secs(60);

    async fn start(router: Router, lanes: Lanes) -> (SocketAddr, watch::Sender<bool>, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let (service, gate) = service(router);
        let gate = Gate { lanes, ..gate };
        (address, stop, tokio::spawn(serve(listener, service, gate, stopped)))
    }

    /// The answer to a request over a connection of its own.
    fn ask(address: SocketAddr, target: &'static str) -> JoinHandle<String> {
        spawn_blocking(move || {
            let mut stream = StdStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            write!(stream, "GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        })
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_request_that_takes_its_time_does_not_hold_up_the_others_of_its_lane() {
        let (go, gone) = mpsc::channel();
        let (go, gone) = (Arc::new(Mutex::new(go)), Arc::new(Mutex::new(gone)));
        let begun = Arc::new(Notify::new());
        let has_begun = Arc::clone(&begun);
        let router = Router::new().fallback(async move |uri: Uri| {
            if uri.path() == "/quick" {
                return go.lock().unwrap().send(()).map_or("alone", |()| "prompt");
            }
            begun.notify_one();
            // Blocks its thread until the other one is asked.
            gone.lock().unwrap().recv().map_or("never", |()| "late")
        });
        let (address, _stop, _serving) = start(router, Lanes::start_some(1).unwrap()).await;
        let slow = ask(address, "/slow");
        timeout(PATIENCE, has_begun.notified()).await.unwrap();
        assert!(timeout(PATIENCE, ask(address, "/quick")).await.unwrap().unwrap().ends_with("prompt"));
        assert!(timeout(PATIENCE, slow).await.unwrap().unwrap().ends_with("late"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_new_connection_goes_where_the_fewest_are_served() {
        let lanes = Lanes::start_some(2).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // A connection that lasts until its sender ends, and the lane that it is in.
        let connect = async || {
            let (_, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
            let (keep, kept) = oneshot::channel::<()>();
            let (say, lane) = oneshot::channel();
            let serve = |_| async move {
                say.send(thread::current().name().map(str::to_owned)).unwrap();
                let _ = kept.await;
            };
            let serving = lanes.spawn(accepted.unwrap().0, serve).unwrap();
            (lane.await.unwrap().unwrap(), keep, serving)
        };
        let [first, second, third, fourth] =
            [connect().await, connect().await, connect().await, connect().await];
        let lanes_of = [&first, &second, &third, &fourth].map(|connection| &*connection.0);
        assert_eq!(lanes_of, ["connections-0", "connections-1", "connections-0", "connections-1"]);
        for (_, keep, serving) in [first, third] {
            drop(keep);
            timeout(PATIENCE, serving).await.unwrap().unwrap();
        }
        let newer = [connect().await, connect().await];
        assert_eq!(newer.each_ref().map(|connection| &*connection.0), ["connections-0", "connections-0"]);
    }

    #[tokio::test]
    async fn lanes_end_with_the_listener() {
        let lanes = Lanes::start_some(1).unwrap();
        let (task, ended) = oneshot::channel::<()>();
        lanes.0[0].runtime.spawn(async move {
            let _task = task;
            std::future::pending::<()>().await;
        });
        let (_, stop, serving) = start(Router::new(), lanes).await;
        stop.send_replace(true);
        timeout(PATIENCE, serving).await.unwrap().unwrap();
        // What goes on in a lane is dropped with it.
        assert!(timeout(PATIENCE, ended).await.unwrap().is_err());
    }
}
