//! Connections: accepting them, bounding them, and ending them.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};

use crate::answer::answer;

/// A client that has not sent its next request's head by then is dropped; so is one that sends nothing.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
const MAX_CONNECTIONS: usize = 8_192;
/// After a failure to accept, which is mostly a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stopped` holds true or has no sender any more; then finishes the requests under way.
pub async fn serve(listener: TcpListener, router: Router, mut stopped: watch::Receiver<bool>) {
    let connections = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    loop {
        let accepted = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let router = router.clone();
        let service = service_fn(move |request| answer(router.clone(), request));
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(permit);
        });
    }
    drop(listener);
    connections.shutdown().await;
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Small answers must not wait for more to send.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "cannot set TCP_NODELAY");
            }
            Some((stream, permit))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}
