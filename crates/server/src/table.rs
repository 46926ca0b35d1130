//! The route table.

use std::sync::LazyLock;

use axum::{
    Router,
    extract::State,
    http::Method,
    response::{IntoResponse as _, Response},
    routing::get,
};

use crate::{
    answer::RequestHead,
    error::ApiError,
    metrics::RequestKinds,
    openapi::{self, catalogue, changes, reads, service},
    routes::{
        assets, chain, events, files, health, journal, keys, log, metrics, object, pending, ping, propose,
        reference, releases, revoke, signatures, veto, withdraw, witness,
    },
    routing::route_table::RouteTable,
    state::App,
    web,
};

pub fn build(app: App) -> Router {
    web::with_unknown_pages(with_common_answers(all().router)).with_state(app)
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
        .post("/v1/veto", veto::veto, changes::veto())
        .post("/v1/assets", assets::register, changes::assets())
        .post("/v1/withdraw", withdraw::withdraw, changes::withdraw())
        .post("/v1/object", object::object, changes::object())
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
        .get("/v1/keys/{key}/signed", keys::list_signed, catalogue::key_signed())
        .get("/v1/events", events::listen, openapi::events::events())
        .get("/v1/journal", journal::follow, openapi::journal::journal())
        .get_below("/v1/proof", log::proof, openapi::log::proof())
        .get("/log/checkpoint", log::checkpoint, openapi::log::checkpoint())
        .get("/log/cosigned", log::cosigned, openapi::log::cosigned())
        .get("/log/key", log::key, openapi::log::key())
        .post("/log/cosignature", log::cosignature, openapi::witness::cosignature())
        .post("/add-checkpoint", witness::add_checkpoint, openapi::witness::add_checkpoint())
        .get_below("/log/tile", log::tile, openapi::log::tile())
        .get_below("/log/tile/entries", log::tile, openapi::log::entries())
        .get("/v1/ping", ping::ping, service::ping())
        .get("/openapi.json", reference::document, service::document())
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
        kinds.add(web::ASSETS_DIR, "page", true);
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
    answered.unwrap_or_else(|error| Some(error.into_response()))
}

/// Errors outside the handlers get the same answers.
pub fn with_common_answers<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes
        .fallback(async || ApiError::no_such_route())
        .method_not_allowed_fallback(async || ApiError::wrong_method())
}
