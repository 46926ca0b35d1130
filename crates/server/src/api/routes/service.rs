//! The service itself: does it answer, can it accept changes, does my signature work, and what does it offer?

use std::time::Instant;

use axum::http::StatusCode;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, ETAG, X_CONTENT_TYPE_OPTIONS};
use axum::{Json, body::Bytes, extract::Request, extract::State, response::IntoResponse, response::Response};
use countersign_api::answers::{HealthResponse, PingAuth, PingResponse};
use countersign_core::values::{key::PublicKey, time::Timestamp, wire, wire::routes as paths};
use serde_json::json;

use crate::api::openapi::{Content, DescribedAnswer, Endpoint, Reference, Section, fixed};
use crate::api::routing::{Question, RouteTable};
use crate::api::{auth, openapi, routes::files::matches_tag, state::App};
use crate::http::{error::ApiError, error::NotReady, sending::typed};
use crate::operate::observe;

pub(crate) fn routes() -> RouteTable {
    RouteTable::default()
        .get(paths::PING, ping, Endpoint::new("ping", Section::Watching, "Is the server there, does my signature work")
            .about(
                "Always 200. If there are authentication headers, `auth` says whether the server accepts them, and if not, \
                 why. A success uses up the nonce.",
            )
            .optionally_signed()
            .answers_with::<PingResponse>(200, "the server is there", &[("unauthenticated", "ping"), ("success", "ping.success"), ("failed", "ping.failed")])
            .limited())
        .get(paths::OPENAPI, document, Endpoint::new("openapi", Section::Watching, "This reference, for programs")
            .about("An OpenAPI 3.1 document, made from the same descriptions as this page. Any origin can read it.")
            .counted_as("page")
            .revalidated()
            .answers(DescribedAnswer::new(200, "the document").with_headers([openapi::ETAG, openapi::CACHE_CONTROL]).with_content(Content::object()))
            .limited())
        .get(paths::ROBOTS, robots, fixed("robots", "What search engines can read", "the rules", PLAIN)
            .about("Search engines can read all pages, but not the answers for programs, and not what a search finds."))
        .get(paths::SECURITY, security, fixed("security", "Whom to tell about a weakness of this server", "the contact (RFC 9116)", PLAIN)
            .about("The contact that the operator has set (`security_contact`). It expires in 30 days, and is renewed every day.")
            .fails("the operator has set no contact", ApiError::NO_CONTACT))
        .merge(health_routes())
}

const PLAIN: &str = "text/plain";
const ROBOTS: &str =
    "User-agent: *\nDisallow: /v1/\nDisallow: /log/\nDisallow: /projects?q=\nDisallow: /activity?\n";
const DAY: i64 = 24 * 60 * 60;
/// How many days copies of the contact can be used.
const CONTACT_DAYS: i64 = 30;

/// The listener for metrics has these too.
pub(crate) fn health_routes() -> RouteTable {
    let health = |about, status| {
        let content = Content::of::<HealthResponse>(&[]).with_example(status, json!({ "status": status }));
        DescribedAnswer::new(200, about).with_content(content)
    };
    RouteTable::default()
        .get("/healthz", healthz, Endpoint::new("healthz", Section::Watching, "Does it answer")
            .about("Answers while the process runs. It has no rate limit.")
            .answers(health("the process answers", "ok")))
        .get(paths::READY, readyz, Endpoint::new("readyz", Section::Watching, "Can it accept changes")
            .about(
                "Answers 503 while the server stops, or while its disk refuses changes. A mirror also answers 503 before its first \
                 commit, when it has not been up to date for some minutes, and when it has stopped following its origin. It has \
                 no rate limit.",
            )
            .answers(health("changes are accepted; or this is a mirror that is up to date", "ready"))
            .fails("the server cannot do all of its work at the moment", NotReady::Store))
}

/// Is the server there, and would it accept my signature? (D22)
async fn ping(State(app): State<App>, request: Request) -> Result<Json<PingResponse>, ApiError> {
    let (parts, body) = request.into_parts();
    let auth = if auth::has_auth_headers(&parts.headers) {
        match auth::authenticate(&app, &parts, body).await {
            Ok(request) => PingAuth::Success { public_key: request.caller },
            // This says nothing about the signature.
            Err(error) if error.status() == StatusCode::TOO_MANY_REQUESTS => return Err(error),
            Err(error) => {
                let public_key = auth::single_header(&parts.headers, wire::HEADER_PUBLIC_KEY);
                let public_key = public_key.ok().and_then(|text| PublicKey::parse_prefixed(text).ok());
                PingAuth::Failed { public_key, reason: error.message }
            }
        }
    } else {
        PingAuth::Unauthenticated
    };
    Ok(Json(PingResponse::new(auth)))
}

async fn document(question: Question) -> Response {
    let document: &'static Reference = question.app.reference;
    let tag = document.tag.as_str();
    // Viewers of OpenAPI documents run on other origins, and everything in this one is public.
    let common = [(ETAG, tag), (ACCESS_CONTROL_ALLOW_ORIGIN, "*")];
    if matches_tag(&question.headers, tag.as_bytes()) {
        let caching = [(CACHE_CONTROL, "no-cache"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
        return (StatusCode::NOT_MODIFIED, common, caching).into_response();
    }
    typed((common, Bytes::from_static(&document.bytes)), openapi::JSON, "no-cache")
}

async fn robots() -> Response {
    typed(ROBOTS, "text/plain; charset=utf-8", "public, max-age=3600")
}

async fn security(State(app): State<App>) -> Result<Response, ApiError> {
    let contact = app.security_contact.as_ref().ok_or(ApiError::NO_CONTACT)?;
    let today = app.now().unix_seconds().div_euclid(DAY);
    let expires = Timestamp::from_unix_seconds((today + CONTACT_DAYS) * DAY).unwrap_or(app.now());
    let text = format!("Contact: {}\nExpires: {expires}\n", contact.as_str());
    Ok(typed(text, "text/plain; charset=utf-8", "public, max-age=3600"))
}

async fn healthz() -> Json<HealthResponse> {
    Json(HealthResponse { status: "ok", log: None })
}

async fn readyz(State(app): State<App>) -> Result<Json<HealthResponse>, ApiError> {
    app.readiness()?;
    let log = observe::stats().is_failing(Instant::now()).then_some("failing");
    Ok(Json(HealthResponse { status: "ready", log }))
}
