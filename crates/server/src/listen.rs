//! Connections: accepting them, bounding them, and ending them.

mod calendar;
pub mod connections;
pub(crate) mod patience;
mod refusal;
mod stream;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    net::{IpAddr, SocketAddr},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    http::StatusCode,
};
use futures_util::task::AtomicWaker;
use hyper::{
    Request,
    body::{Body as HttpBody, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{mpsc, watch},
    task::JoinSet,
};

use self::{
    connections::{Admitted, Connections},
    refusal::MAX_HEAD_BYTES,
    stream::Stream,
};
use crate::{
    answer::{Read, Service, Visitor, answer},
    limits::network_of,
    metrics::RequestKind,
    tls::Tls,
};

/// After a failed accept, which mostly means a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Connections that the system queues until the server accepts them. A client that finds the queue full tries again
/// after a second, so a burst must fit.
const BACKLOG: u32 = 4_096;

pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A new server does not have to wait until the system forgets the old one's connections.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Which connections the server admits, and how.
#[derive(Debug, Clone)]
pub struct Gate {
    pub connections: Arc<Connections>,
    pub tls: Option<Arc<Tls>>,
}

/// Serves until `stopped` holds true or its sender is gone. Then finishes the requests under way.
pub async fn serve<R: Read>(
    listener: TcpListener,
    service: Service<R>,
    gate: Gate,
    mut stopped: watch::Receiver<bool>,
) {
    let service = Arc::new(service);
    // Ends once every connection has dropped its sender.
    let (open, mut all_closed) = mpsc::channel(1);
    loop {
        let accepted = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = accept(&listener) => accepted,
        };
        let Some((stream, peer)) = accepted else { continue };
        let is_proxy = service.proxies.contains(peer.ip());
        let counted = (!is_proxy).then(|| network_of(peer.ip()));
        let Some(place) = gate.connections.admit(counted, Instant::now()) else { continue };
        let (stopped, open) = (stopped.clone(), open.clone());
        let connection = Connection { place, peer: peer.ip(), is_proxy, stopped, _open: open };
        tokio::spawn(connection.run(stream, Arc::clone(&service), gate.clone()));
    }
    drop((listener, open));
    all_closed.recv().await;
}

async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Small answers must not wait for more data.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "cannot set TCP_NODELAY");
            }
            Some((stream, peer))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

struct Connection {
    place: Admitted,
    peer: IpAddr,
    is_proxy: bool,
    stopped: watch::Receiver<bool>,
    _open: mpsc::Sender<Infallible>,
}

impl Connection {
    async fn run<R: Read>(self, stream: TcpStream, service: Arc<Service<R>>, gate: Gate) {
        let Self { place, peer, is_proxy, mut stopped, _open } = self;
        let Gate { connections, tls } = gate;
        let client = service.limiter.as_ref().map(|limiter| limiter.client(peer));
        // A handshake costs more than most answers.
        let charged = client.as_ref().filter(|_| tls.is_some() && !is_proxy);
        if charged.is_some_and(|client| client.charge_request(Instant::now()).is_err()) {
            return;
        }
        let patience = Arc::clone(&place.patience);
        let visitor = Visitor { service, client, is_proxy, patience, number: place.number };
        let (farewell, heads) = (Arc::new(Farewell::default()), Arc::clone(&connections));
        let (mut has_stopped, said) = (stopped.clone(), Arc::clone(&farewell));
        let serving = async move {
            match tls {
                None => serve_stream(stream, visitor, heads, &said).await,
                Some(tls) => {
                    let stream = tokio::select! {
                        stream = tls.accept(stream, peer) => stream,
                        // No request has come yet, so there is nothing to finish.
                        _ = has_stopped.wait_for(|stop| *stop) => None,
                    };
                    if let Some(stream) = stream {
                        serve_stream(stream, visitor, heads, &said).await;
                    }
                }
            }
        };
        // A task of its own, so that events on the stream wake nothing else.
        let mut served = JoinSet::new();
        served.spawn(serving);
        let mut run_out = pin!(place.patience.run_out());
        let mut is_ending = false;
        loop {
            tokio::select! {
                _ = served.join_next() => break,
                dropped = &mut run_out => {
                    tracing::debug!(%peer, ?dropped, "ended a connection that waited for its client");
                    connections.note_dropped(dropped);
                    break;
                }
                _ = stopped.wait_for(|stop| *stop), if !is_ending => {
                    is_ending = true;
                    farewell.say();
                }
            }
        }
    }
}

/// Ends a connection after the request that is under way.
#[derive(Default)]
struct Farewell {
    is_said: AtomicBool,
    connection: AtomicWaker,
}

impl Farewell {
    fn say(&self) {
        self.is_said.store(true, Ordering::Release);
        self.connection.wake();
    }

    fn was_said(&self, context: &Context<'_>) -> bool {
        // In this order, a signal in between is not lost.
        self.connection.register(context.waker());
        self.is_said.load(Ordering::Acquire)
    }
}

/// Notes its own end, when hyper has the whole answer. It takes over its request's reference to the visitor and so
/// needs no other.
struct AnswerBody<R> {
    body: Body,
    visitor: Arc<Visitor<R>>,
}

impl<R> HttpBody for AnswerBody<R> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<R> Drop for AnswerBody<R> {
    fn drop(&mut self) {
        self.visitor.patience.note_written();
    }
}

async fn serve_stream<R: Read>(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    visitor: Visitor<R>,
    connections: Arc<Connections>,
    farewell: &Farewell,
) {
    let stream = Stream::new(stream, Arc::clone(&visitor.patience), connections);
    // One reference count for each connection. If all threads shared one, they would wait for each other's caches.
    let visitor = Arc::new(visitor);
    let refused = Arc::clone(&visitor);
    let service = service_fn(move |request: Request<Incoming>| {
        let visitor = Arc::clone(&visitor);
        let now = Instant::now();
        visitor.patience.begin(request.method(), now);
        async move {
            let response = {
                let _answering = visitor.patience.pause();
                answer(&visitor, request, now).await
            };
            Ok::<_, Infallible>(response.map(|body| AnswerBody { body, visitor }))
        }
    });
    let mut http = http1::Builder::new();
    // Hyper's own limit sets a timer for each request, which costs as much as some answers. `Patience` sets one for
    // each connection.
    http.header_read_timeout(None);
    http.max_buf_size(MAX_HEAD_BYTES).max_header_size(MAX_HEAD_BYTES);
    // `answer` sets the date.
    http.auto_date_header(false);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut is_ending = false;
    let served = poll_fn(|context| {
        // On each poll, since any thread of the runtime can serve the connection.
        if !calendar::note_date() {
            tracing::warn!("this machine's clock is before 1970: set it. A connection was closed");
            return Poll::Ready(Ok(()));
        }
        if !is_ending && farewell.was_said(context) {
            is_ending = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(context)
    });
    if let Err(error) = served.await {
        if error.is_parse() {
            let is_large = error.is_parse_too_large();
            let status =
                if is_large { StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE } else { StatusCode::BAD_REQUEST };
            refused.service.requests.record(refused.number, RequestKind::OTHER, status, Duration::ZERO);
        }
        tracing::debug!(%error, "a connection ended early");
    }
}
