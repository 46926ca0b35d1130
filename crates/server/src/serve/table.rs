//! The route table.

use std::sync::LazyLock;

use axum::response::{IntoResponse as _, Response};
use axum::{Router, extract::State, http::Method, routing::get};
use countersign_core::values::wire::routes as paths;

use crate::api::routes::{
    assets, catalogue, files, log, metrics, propose, service, signatures, state, statements, streams,
};
use crate::api::{routing::RouteTable, state::App};
use crate::{http::error::ApiError, metrics::PAGE, metrics::RequestKinds, serve::answer::RequestHead, web};

pub fn build(app: App) -> Router {
    // Browsers get a page where nothing is.
    with_common_answers(all().router).fallback(web::report_unknown).with_state(app)
}

pub fn all() -> RouteTable {
    RouteTable::default()
        .merge(propose::routes())
        .merge(assets::routes())
        .merge(signatures::routes())
        .merge(statements::routes())
        .merge(files::routes())
        .merge(state::routes())
        .merge(catalogue::routes())
        .merge(streams::routes())
        .merge(log::routes())
        .merge(service::routes())
        .merge(web::routes())
        // Its address is like those of many others, so it comes last.
        .merge(log::witness_routes())
}

pub fn kinds() -> &'static RequestKinds {
    static KINDS: LazyLock<RequestKinds> = LazyLock::new(|| {
        let mut kinds = RequestKinds::default();
        for row in all().rows {
            let is_limited = row.endpoint.is_limited();
            match row.path.strip_prefix("/{").and_then(|path| path.split_once('}')) {
                Some((_, ending)) => kinds.add_ending(ending, row.endpoint.counted_as, is_limited),
                None => {
                    let below = row.path.split('{').next().unwrap_or(&row.path);
                    kinds.add(below, row.endpoint.counted_as, is_limited);
                }
            }
        }
        kinds.add(web::ASSETS_DIR, PAGE, true);
        kinds.add(METRICS, "metrics", true);
        kinds
    });
    &KINDS
}

const METRICS: &str = "/metrics";

/// What the metrics listener answers. It runs until the server has finished its last requests, so it also reports that
/// the server is no longer ready.
pub fn build_metrics(app: App) -> Router {
    let show = async |State(app): State<App>| metrics::show(&app, kinds());
    let routes = Router::new().route(METRICS, get(show)).merge(service::health_routes().router);
    with_common_answers(routes).with_state(app)
}

/// Answers the three most frequent kinds of reads if the answer is in memory: more than twice as many a second as
/// through the router (docs/performance.md). `None` leaves a request to the table.
pub fn answer_read(app: &App, head: RequestHead<'_>) -> Option<Response> {
    if head.method != Method::GET {
        return None;
    }
    let below = |dir| head.uri.path().strip_prefix(dir)?.strip_prefix('/');
    let answered = if let Some(tail) = below(paths::FILES) {
        files::read_raw(app, tail, head.headers)
    } else if let Some(tail) = below(paths::GET_SIGNERS) {
        files::read_signers(app, tail, head.headers)
    } else {
        files::read_chain(app, below(paths::GET_SIGNERS_CHAIN)?)
    };
    answered.unwrap_or_else(|error| Some(error.into_response()))
}

/// Errors outside the handlers get the same answers.
pub fn with_common_answers<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes
        .fallback(async || ApiError::from(ApiError::NO_SUCH_ROUTE))
        .method_not_allowed_fallback(async || ApiError::from(ApiError::WRONG_METHOD))
}
