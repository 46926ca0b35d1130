//! The route table.

use std::sync::LazyLock;

use axum::{
    Router,
    extract::State,
    http::Method,
    response::{IntoResponse as _, Response},
    routing::get,
};
use countersign_core::values::wire::routes as paths;

use crate::{
    answer::RequestHead,
    error::ApiError,
    metrics::{PAGE, RequestKinds},
    openapi::{self, catalogue, changes, reads, service},
    routes::{
        assets, chain, events, files, health, journal, keys, log, metrics, pending, ping, propose, reference,
        releases, signatures, state, statement, withdraw, witness,
    },
    routing::route_table::RouteTable,
    state::App,
    web,
};

pub fn build(app: App) -> Router {
    web::with_unknown_pages(with_common_answers(all().router)).with_state(app)
}

pub fn all() -> RouteTable {
    RouteTable::default()
        .post(paths::REGISTER_REPO, propose::register_repo, changes::register_repo())
        .post(paths::UPDATE_SIGNERS, propose::update_signers, changes::update_signers())
        .post(paths::SIGNATURES, signatures::submit, changes::submit_signatures())
        .post(paths::REVOKE, statement::revoke, changes::revoke())
        .post(paths::VETO, statement::veto, changes::veto())
        .post(paths::ASSETS, assets::register, changes::assets())
        .post(paths::WITHDRAW, withdraw::withdraw, changes::withdraw())
        .post(paths::OBJECT, statement::object, changes::object())
        .get(paths::PENDING_SIGNATURES, pending::list, reads::pending_signatures())
        .get_below(paths::SIGNATURES, signatures::status, reads::signature_status())
        .get_below(paths::FILES_TO_SIGN, files::to_sign, reads::files_to_sign())
        .get_below(paths::FILES, files::raw, reads::file())
        .get_below(paths::GET_SIGNERS, files::signers, reads::signers())
        .get_below(paths::GET_SIGNERS_CHAIN, chain::chain, reads::chain())
        .get_below(paths::GET_ARTIFACT_SIGNERS_CHAIN, chain::chain, reads::artifact_chain())
        .get(paths::RELEASES, releases::list, catalogue::releases())
        .get(paths::PROJECTS, releases::find_projects, catalogue::projects())
        .get(&format!("{}/{{key}}", paths::KEYS), keys::describe, catalogue::key())
        .get(&format!("{}/{{key}}/pending", paths::KEYS), keys::list_pending, catalogue::key_pending())
        .get(&format!("{}/{{key}}/signed", paths::KEYS), keys::list_signed, catalogue::key_signed())
        .get(paths::EVENTS, events::listen, openapi::events::events())
        .get(paths::JOURNAL, journal::follow, openapi::journal::journal())
        .get_below(paths::STATE, state::state, reads::state())
        .get_below(paths::PROOF, log::proof, openapi::log::proof())
        .get(paths::LOG_CHECKPOINT, log::checkpoint, openapi::log::checkpoint())
        .get(paths::LOG_COSIGNED, log::cosigned, openapi::log::cosigned())
        .get(paths::LOG_KEY, log::key, openapi::log::key())
        .post(paths::LOG_COSIGNATURE, log::cosignature, openapi::witness::cosignature())
        .post(paths::ADD_CHECKPOINT, witness::add_checkpoint, openapi::witness::add_checkpoint())
        .get_below(paths::LOG_TILE, log::tile, openapi::log::tile())
        .get_below(&format!("{}/entries", paths::LOG_TILE), log::tile, openapi::log::entries())
        .get(paths::PING, ping::ping, service::ping())
        .get(paths::OPENAPI, reference::document, service::document())
        .merge(health_routes())
        .merge(web::routes())
        .get("/{origin}/checkpoint", witness::checkpoint, openapi::witness::witnessed_checkpoint())
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
    let routes = Router::new().route(METRICS, get(show)).merge(health_routes().router);
    with_common_answers(routes).with_state(app)
}

fn health_routes() -> RouteTable {
    RouteTable::default().get("/healthz", health::healthz, service::healthz()).get(
        paths::READY,
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
    let answered = if let Some(tail) = below(paths::FILES) {
        files::read_raw(app, tail, head.headers)
    } else if let Some(tail) = below(paths::GET_SIGNERS) {
        files::read_signers(app, tail, head.headers)
    } else {
        chain::read_chain(app, below(paths::GET_SIGNERS_CHAIN)?)
    };
    answered.unwrap_or_else(|error| Some(error.into_response()))
}

/// Errors outside the handlers get the same answers.
pub fn with_common_answers<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes
        .fallback(async || ApiError::no_such_route())
        .method_not_allowed_fallback(async || ApiError::wrong_method())
}
