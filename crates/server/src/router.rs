//! The route table.

use axum::{
    Router,
    extract::FromRequestParts,
    http::{HeaderMap, Method, Uri, request::Parts},
    response::{IntoResponse as _, Response},
    routing::get,
};
use countersign_core::path::RepoPath;

use crate::{
    app::App,
    error::ApiError,
    openapi::{self, changes, reads, service},
    routes::{
        assets, chain, events, files, health, metrics, pending, ping, propose, reference, revoke, signatures,
    },
    table::Table,
    web,
};

pub fn build(app: App) -> Router {
    with_common_answers(table().into_router()).with_state(app)
}

/// Every route, with what the reference says of it.
pub fn table() -> Table {
    Table::default()
        .post("/v1/register_repo", propose::register_repo, changes::register_repo())
        .post("/v1/update_signers", propose::update_signers, changes::update_signers())
        .post("/v1/signatures", signatures::submit, changes::submit_signatures())
        .post("/v1/revoke", revoke::revoke, changes::revoke())
        .post("/v1/assets", assets::register, changes::assets())
        .get("/v1/pending_signatures", pending::list, reads::pending_signatures())
        .get_below("/v1/signatures", signatures::status, reads::signature_status())
        .get_below("/v1/files-to-sign", files::to_sign, reads::files_to_sign())
        .get_below("/v1/files", files::raw, reads::file())
        .get_below("/v1/get_signers", files::signers, reads::signers())
        .get_below("/v1/get_signers_chain", chain::chain, reads::chain())
        .get_below("/v1/get_artifact_signers_chain", chain::chain, reads::artifact_chain())
        .get("/v1/events", events::listen, openapi::events::events())
        .get("/v1/ping", ping::ping, service::ping())
        .get("/openapi.json", reference::document, service::document())
        .merge(health_routes())
        .merge(web::routes())
}

/// What the listener for metrics answers. It goes on while the server finishes its last requests, so it also says that
/// the server is no longer ready.
pub fn build_metrics(app: App) -> Router {
    let routes = Router::new().route("/metrics", get(metrics::metrics)).merge(health_routes().into_router());
    with_common_answers(routes).with_state(app)
}

fn health_routes() -> Table {
    Table::default().get("/healthz", health::healthz, service::healthz()).get(
        "/readyz",
        health::readyz,
        service::readyz(),
    )
}

/// Answers the three kinds of reads that are by far the most, without a detour through the route table, and only where
/// the answer is at hand: more than twice as many a second (docs/performance.md). `None` leaves a request to the table.
pub fn answer_read(app: &App, parts: (&Method, &Uri, &HeaderMap)) -> Option<Response> {
    let (method, uri, headers) = parts;
    if method != Method::GET {
        return None;
    }
    let path = uri.path();
    let answered = if let Some(tail) = path.strip_prefix("/v1/files/") {
        files::read_raw(app, tail, headers)
    } else if let Some(tail) = path.strip_prefix("/v1/get_signers/") {
        files::read_signers(app, tail, headers)
    } else {
        chain::read_chain(app, path.strip_prefix("/v1/get_signers_chain/")?)
    };
    Some(answered?.into_response())
}

/// What goes wrong outside the handlers is answered like everything else.
fn with_common_answers<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes
        .fallback(async |uri: Uri, headers: HeaderMap| web::report_unknown(&uri, &headers))
        .method_not_allowed_fallback(async || ApiError::wrong_method())
}

/// What follows `/v1/<route>/`, not looked at yet: authentication comes first (D30).
#[derive(Debug)]
pub struct Tail(String);

impl Tail {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn parse(&self) -> Result<RepoPath, ApiError> {
        parse_tail(&self.0)
    }
}

/// The path that is meant, percent-decoded once.
pub fn parse_tail(tail: &str) -> Result<RepoPath, ApiError> {
    if !tail.contains('%') {
        return Ok(RepoPath::parse(tail)?);
    }
    let decoded = percent_encoding::percent_decode_str(tail).decode_utf8();
    let decoded = decoded.map_err(|_| ApiError::bad_request("Invalid path: it is not UTF-8"))?;
    Ok(RepoPath::parse(&decoded)?)
}

impl<S: Sync> FromRequestParts<S> for Tail {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let tail = parts.uri.path().splitn(4, '/').nth(3).unwrap_or_default();
        Ok(Self(tail.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{SocketAddr, TcpStream},
    };

    use tokio::{net::TcpListener, sync::watch, task::spawn_blocking};

    use super::*;
    use crate::listen::{self, Lanes, tests::service};

    /// A server whose `/panics/…` do what they say, under the layers of every route.
    async fn serve() -> (SocketAddr, watch::Sender<bool>) {
        let routes = Router::new()
            .route("/fine", get(async || "fine"))
            .route("/panics/with-text", get(async || -> &str { panic!("a secret of {}", "ours") }))
            .route("/panics/with-value", get(async || -> &str { std::panic::panic_any(7) }))
            .route("/panics/later", get(async || -> &str { panic_later().await }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let service = service(with_common_answers(routes));
        tokio::spawn(listen::serve(listener, service, Lanes::shared(), stopped));
        (address, stop)
    }

    async fn panic_later() -> &'static str {
        tokio::task::yield_now().await;
        panic!("a secret of ours")
    }

    /// The raw answers to these targets, asked one after the other over one connection.
    async fn ask(address: SocketAddr, targets: &'static [&str]) -> String {
        let (last, others) = targets.split_last().unwrap();
        let keep = others.iter().map(|target| format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n"));
        let close = format!("GET {last} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let requests = keep.collect::<String>() + &close;
        let answered = spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(requests.as_bytes()).unwrap();
            let mut answers = String::new();
            stream.read_to_string(&mut answers).unwrap();
            answers
        });
        answered.await.unwrap()
    }

    #[tokio::test]
    async fn a_handler_that_panics_answers_500_and_gives_nothing_away() {
        let (address, _stop) = serve().await;
        for targets in [&["/panics/with-text"], &["/panics/with-value"], &["/panics/later"]] {
            let answer = ask(address, targets).await;
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 500 "), "{answer}");
            assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{answer}");
            assert!(head.contains("\r\nx-request-id: "), "{answer}");
            assert_eq!(body, r#"{"error":"an unexpected error occurred"}"#);
            assert!(!head.contains("secret") && !head.contains("panicked"), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_panic_ends_neither_its_connection_nor_the_server() {
        let (address, _stop) = serve().await;
        let answers =
            ask(address, &["/panics/with-text", "/fine", "/panics/later", "/nowhere", "/fine"]).await;
        let statuses: Vec<_> =
            answers.split("HTTP/1.1 ").skip(1).map(|answer| answer.get(..3).unwrap()).collect();
        assert_eq!(statuses, ["500", "200", "500", "404", "200"]);
        let answer = ask(address, &["/fine"]).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("fine"), "{answer}");
    }
}
