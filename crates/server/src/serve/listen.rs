//! Connections: accepting them, bounding them, and ending them.

pub mod stream;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::{convert::Infallible, io, pin::pin, thread, time::Duration, time::Instant};

use axum::body::to_bytes;
use axum::response::{IntoResponse as _, Response};
use countersign_api::error_code::ErrorCode;
use http_body_util::BodyExt as _;
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::{runtime::Builder, runtime::Handle, sync::oneshot, sync::watch, task::JoinHandle, task::JoinSet};

use crate::http::{error::ApiError, request::new_request_id, sending::processors};
use crate::limits::{client_wait::OnDrop, connections::Admitted};
use crate::serve::answer::{ConnectionContext, Read, Service, answer, complete};
use crate::{metrics::RequestKind, serve::listen::stream::Stream};

/// The pause after a failed accept, which mostly means a lack of file descriptors.
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

/// Serves until `stopped` holds true or its sender is gone. Then finishes the requests under way.
pub async fn serve<R: Read>(
    listener: TcpListener,
    service: Service<R>,
    lanes: Lanes,
    mut stopped: watch::Receiver<bool>,
) {
    let service = Arc::new(service);
    // Each connection holds a receiver until it has ended.
    let (end, ending) = watch::channel(false);
    loop {
        let accepted = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = accept(&listener) => accepted,
        };
        let Some((stream, peer)) = accepted else { continue };
        let counted = (!service.proxies.contains(peer)).then_some(peer);
        let Some(admitted) = service.connections.admit(counted, Instant::now()) else { continue };
        let (service, ending) = (Arc::clone(&service), ending.clone());
        let served = lanes.spawn(stream, |stream| serve_client(stream, peer, service, admitted, ending));
        if let Err(error) = served {
            pause_after(&error, "a connection could not be served").await;
        }
    }
    drop((listener, ending));
    end.send_replace(true);
    end.closed().await;
}

async fn accept(listener: &TcpListener) -> Option<(TcpStream, IpAddr)> {
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Small answers must not wait for more data.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "cannot set TCP_NODELAY");
            }
            Some((stream, peer.ip()))
        }
        Err(error) => {
            pause_after(&error, "a connection could not be accepted").await;
            None
        }
    }
}

async fn pause_after(error: &io::Error, what: &str) {
    tracing::warn!(%error, "{what}");
    tokio::time::sleep(PAUSE).await;
}

/// Serves a connection until its client or the server ends it. `ending` holds true when the server stops.
async fn serve_client<R: Read>(
    stream: TcpStream,
    peer: IpAddr,
    service: Arc<Service<R>>,
    admitted: Admitted,
    mut ending: watch::Receiver<bool>,
) {
    let (connections, tls) = (Arc::clone(&service.connections), service.tls.clone());
    let is_proxy = service.proxies.contains(peer);
    let client = service.limiter.as_ref().map(|limiter| limiter.client(peer));
    // A handshake costs more than most answers.
    let charged = client.as_ref().filter(|_| tls.is_some() && !is_proxy);
    if charged.is_some_and(|client| client.charge_request(Instant::now()).is_err()) {
        return;
    }
    let client_wait = Arc::clone(&admitted.client_wait);
    let context = ConnectionContext { service, peer, client, is_proxy, client_wait };
    let serving = async move {
        let Some(tls) = tls else { return serve_stream(stream, context, ending).await };
        let stream = tokio::select! {
            stream = tls.accept(stream, peer) => stream,
            // No request has come yet, so there is nothing to finish.
            _ = ending.wait_for(|ends| *ends) => None,
        };
        if let Some(stream) = stream {
            serve_stream(stream, context, ending).await;
        }
    };
    // A task of its own, so that events on the stream wake nothing else.
    let mut served = JoinSet::new();
    served.spawn(serving);
    tokio::select! {
        _ = served.join_next() => {}
        dropped = admitted.client_wait.run_out() => {
            tracing::debug!(%peer, ?dropped, "ended a connection that waited for its client");
            connections.note_dropped(dropped);
        }
    }
}

/// Serves one connection until its client or `ending` ends it.
pub async fn serve_stream<R: Read>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    context: ConnectionContext<R>,
    mut ending: watch::Receiver<bool>,
) {
    // Not the context: nothing of the application may outlive what `ending` counts.
    let requests = Arc::clone(&context.service.requests);
    let connections = Arc::clone(&context.service.connections);
    let mut stream = TokioIo::new(Stream::new(stream, Arc::clone(&context.client_wait), connections));
    // One reference count for each connection. If all threads shared one, they would wait for each other's caches.
    let context = Arc::new(context);
    let service = service_fn(move |request: Request<Incoming>| {
        let context = Arc::clone(&context);
        let now = Instant::now();
        context.client_wait.begin(request.method(), now);
        async move {
            let response = {
                let _answering = context.client_wait.pause();
                answer(&context, request, now).await
            };
            // Hyper drops the body, and with it the closure that owns this, when it has all of it.
            let written = OnDrop(move || context.client_wait.note_written());
            let note_end = move |error: axum::Error| {
                let _ = &written;
                error
            };
            Ok::<_, Infallible>(response.map(|body| body.map_err(note_end)))
        }
    });
    let mut http = http1::Builder::new();
    // Hyper's own limit sets a timer for each request, which costs as much as some answers. `ClientWait` sets one for
    // each connection.
    http.header_read_timeout(None);
    http.max_buf_size(MAX_HEAD_BYTES).max_header_size(MAX_HEAD_BYTES);
    // `answer` sets the date.
    http.auto_date_header(false);
    let served = {
        let mut connection = pin!(http.serve_connection(&mut stream, service));
        // Dropped before the next wait: what it returns locks the sender out.
        let ends = async { drop(ending.wait_for(|ends| *ends).await) };
        tokio::select! {
            biased;
            served = connection.as_mut() => served,
            () = ends => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    let Err(error) = served else { return };
    tracing::debug!(%error, "a connection ended early");
    if let Some(refusal) = find_refusal(&error) {
        requests.record(RequestKind::OTHER, refusal.status(), Duration::ZERO);
        if let Some(stream) = stream.into_inner().into_unanswered() {
            send_refusal(stream, refusal).await;
        }
    }
}

// Answers to what is no request (D30, D47). Hyper answers it with a status and no body. `Stream` leaves that answer
// out, and when hyper has ended with an error, the server sends its own.

/// The largest head of a request. An unfinished head takes no more memory, and hyper reads no more at a time.
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// How much the server still reads from a refused client. Closing a connection with unread bytes would reset it, and
/// the client would not see the answer.
const MAX_DRAINED: u64 = 1024 * 1024;

/// What to tell a client whose bytes are no request; `None` if the connection ended for another reason.
fn find_refusal(error: &hyper::Error) -> Option<ApiError> {
    if error.is_parse_too_large() {
        let message = format!(
            "the head of the request is too large: it may have {MAX_HEAD_BYTES} bytes and 100 header fields"
        );
        return Some(ApiError::new(ErrorCode::HeadTooLarge, message));
    }
    error.is_parse().then(|| ApiError::malformed("this is not a valid HTTP/1.1 request"))
}

/// Sends the last answer of a connection. `ClientWait` bounds how long that can take.
async fn send_refusal(mut stream: impl AsyncRead + AsyncWrite + Unpin, refusal: ApiError) {
    let id = new_request_id();
    tracing::debug!(
        id,
        status = refusal.code.status(),
        reason = refusal.message,
        "refused what is no request"
    );
    let mut response = refusal.into_response();
    complete(&mut response, id);
    let sent = async {
        stream.write_all(&write_last(response).await?).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(MAX_DRAINED), &mut tokio::io::sink()).await
    };
    if let Err(error) = sent.await {
        tracing::debug!(%error, "a client did not take its refusal");
    }
}

/// The bytes of an answer that ends its connection.
async fn write_last(response: Response) -> io::Result<Vec<u8>> {
    let (head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.map_err(io::Error::other)?;
    let (status, length) = (head.status, body.len());
    let mut written =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n").into_bytes();
    for (name, value) in &head.headers {
        written.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    Ok([&*written, b"\r\n", &body].concat())
}

// Threads that each serve connections of their own. A connection stays with its thread.
//
// The threads of one runtime, which share all connections, serve a tenth fewer reads (docs/performance.md). And a
// handler that blocks one of them can keep all of that runtime's connections waiting.

#[derive(Debug)]
pub struct Lanes(Vec<Arc<Lane>>);

/// A thread that serves the connections which hold it.
#[derive(Debug)]
struct Lane {
    runtime: Handle,
    /// Ends the thread when it is dropped.
    _running: Option<oneshot::Sender<()>>,
}

impl Lanes {
    /// One for each processor.
    pub fn start() -> io::Result<Self> {
        Self::start_some(processors())
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
