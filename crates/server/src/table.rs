//! The route table.

use std::sync::LazyLock;

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, Method, Uri},
    response::{IntoResponse as _, Response},
    routing::get,
};

use crate::{
    answer::RequestHead,
    error::ApiError,
    metrics::RequestKinds,
    openapi::{self, catalogue, changes, reads, service},
    routes::{
        assets, chain, events, files, health, keys, metrics, pending, ping, propose, reference, releases,
        revoke, signatures,
    },
    routing::route_table::RouteTable,
    state::App,
    web,
};

pub fn build(app: App) -> Router {
    with_common_answers(all().into_router()).with_state(app)
}

const FILES: &str = "/v1/files";
const GET_SIGNERS: &str = "/v1/get_signers";
const GET_SIGNERS_CHAIN: &str = "/v1/get_signers_chain";

pub fn all() -> RouteTable {
    RouteTable::default()
        .post("/v1/register_repo", propose::register_repo, changes::register_repo())
        .post("/v1/update_signers", propose::update_signers, changes::update_signers())
        .post("/v1/signatures", signatures::submit, changes::submit_signatures())
        .post("/v1/revoke", revoke::revoke, changes::revoke())
        .post("/v1/assets", assets::register, changes::assets())
        .get("/v1/pending_signatures", pending::list, reads::pending_signatures())
        .get_below("/v1/signatures", signatures::status, reads::signature_status())
        .get_below("/v1/files-to-sign", files::to_sign, reads::files_to_sign())
        .get_below(FILES, files::raw, reads::file())
        .get_below(GET_SIGNERS, files::signers, reads::signers())
        .get_below(GET_SIGNERS_CHAIN, chain::chain, reads::chain())
        .get_below("/v1/get_artifact_signers_chain", chain::chain, reads::artifact_chain())
        .get("/v1/releases", releases::list, catalogue::releases())
        .get("/v1/projects", releases::find_projects, catalogue::projects())
        .get("/v1/keys/{key}", keys::describe, catalogue::key())
        .get("/v1/keys/{key}/pending", keys::list_pending, catalogue::key_pending())
        .get("/v1/events", events::listen, openapi::events::events())
        .get("/v1/ping", ping::ping, service::ping())
        .get("/openapi.json", reference::document, service::document())
        .merge(health_routes())
        .merge(web::routes())
}

pub fn kinds() -> &'static RequestKinds {
    static KINDS: LazyLock<RequestKinds> = LazyLock::new(|| {
        let mut kinds = RequestKinds::default();
        for row in all().into_rows() {
            match row.path.split_once('{') {
                Some((dir, _)) => kinds.add_below(dir, row.endpoint.counted_as),
                None => kinds.add(&row.path, row.endpoint.counted_as),
            }
            if !row.endpoint.is_limited() {
                kinds.leave_unlimited(row.endpoint.counted_as);
            }
        }
        kinds.add_below(web::ASSETS_DIR, "page");
        kinds.add(METRICS, "metrics");
        kinds
    });
    &KINDS
}

const METRICS: &str = "/metrics";

/// What the metrics listener answers. It runs until the server has finished its last requests, so it also reports that
/// the server is no longer ready.
pub fn build_metrics(app: App) -> Router {
    let show = async |State(app): State<App>| metrics::show(&app, kinds());
    let routes = Router::new().route(METRICS, get(show)).merge(health_routes().into_router());
    with_common_answers(routes).with_state(app)
}

fn health_routes() -> RouteTable {
    RouteTable::default().get("/healthz", health::healthz, service::healthz()).get(
        "/readyz",
        health::readyz,
        service::readyz(),
    )
}

/// Answers the three most frequent kinds of reads if the answer is in memory: more than twice as many a second as
/// through the router (docs/performance.md). `None` leaves a request to the table.
pub fn answer_read(app: &App, head: RequestHead<'_>) -> Option<Response> {
    if head.method != Method::GET {
        return None;
    }
    let below = |dir| head.uri.path().strip_prefix(dir)?.strip_prefix('/');
    let answered = if let Some(tail) = below(FILES) {
        files::read_raw(app, tail, head.headers)
    } else if let Some(tail) = below(GET_SIGNERS) {
        files::read_signers(app, tail, head.headers)
    } else {
        chain::read_chain(app, below(GET_SIGNERS_CHAIN)?)
    };
    Some(answered?.into_response())
}

/// Errors outside the handlers get the same answers.
fn with_common_answers<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes
        .fallback(async |uri: Uri, headers: HeaderMap| web::report_unknown(&uri, &headers))
        .method_not_allowed_fallback(async || ApiError::wrong_method())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{SocketAddr, TcpStream},
    };

    use tokio::{net::TcpListener, sync::watch, task::spawn_blocking};

    use super::*;
    use crate::listen::{self, tests::service};

    /// A server whose `/panics/…` routes do what they say, under the layers of every route.
    async fn serve() -> (SocketAddr, watch::Sender<bool>) {
        let routes = Router::new()
            .route("/fine", get(async || "fine"))
            .route("/panics/with-text", get(async || -> &str { panic!("a secret of {}", "ours") }))
            .route("/panics/with-value", get(async || -> &str { std::panic::panic_any(7) }))
            .route("/panics/later", get(async || -> &str { panic_later().await }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let (service, gate) = service(with_common_answers(routes));
        tokio::spawn(listen::serve(listener, service, gate, stopped));
        (address, stop)
    }

    async fn panic_later() -> &'static str {
        tokio::task::yield_now().await;
        panic!("a secret of ours")
    }

    /// The raw answers to these targets, requested in order over one connection.
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

    #[test]
    fn every_kind_of_request_is_told_by_its_path() {
        let names: std::collections::HashMap<_, _> = kinds().all().collect();
        for (path, name) in [
            ("/v1/files/https/example.org/443/a", "files"),
            ("/v1/files/", "files"),
            ("/v1/get_signers/a/b", "get_signers"),
            ("/v1/get_signers_chain/a", "get_signers_chain"),
            ("/v1/get_artifact_signers_chain/a", "get_signers_chain"),
            ("/v1/signatures", "signatures"),
            ("/v1/signatures/a", "signature_status"),
            ("/v1/files-to-sign/a", "files_to_sign"),
            ("/v1/pending_signatures", "pending_signatures"),
            ("/v1/register_repo", "register_repo"),
            ("/healthz", "healthz"),
            ("/readyz", "readyz"),
            ("/", "page"),
            ("/p/https/example.org/443/a", "page"),
            ("/assets/style.css", "page"),
            ("/badge/https/example.org/443/a.svg", "badge"),
            ("/v1/events", "events"),
            ("/v1/releases", "releases"),
            ("/v1/projects", "projects"),
            ("/v1/keys/svc-pub:x", "keys"),
            ("/v1/keys/svc-pub:x/pending", "keys"),
            ("/p", "other"),
            ("/v1/filesystem/x", "other"),
            ("/v1/files", "other"),
            ("/v2/files/x", "other"),
            ("/healthz/", "other"),
        ] {
            assert_eq!(names[&kinds().kind_of(path)], name, "{path}");
        }
    }

    #[test]
    fn only_health_checks_have_no_rate_limit() {
        let unlimited = kinds().all().filter(|(kind, _)| !kinds().is_limited(*kind)).map(|(_, name)| name);
        assert_eq!(unlimited.collect::<Vec<_>>(), ["healthz", "readyz"]);
    }
}
