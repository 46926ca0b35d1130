//! Endpoints about the service itself.

use countersign_api::answers::{HealthResponse, PingResponse};
use serde_json::json;

use super::{
    endpoint::{CACHE_CONTROL, Content, ContentSchema, DescribedAnswer, ETAG, Endpoint, JSON, Section},
    parameters::if_none_match,
};
use crate::health::NotReady;

pub fn ping() -> Endpoint {
    Endpoint::new(
        "ping",
        Section::Watching,
        "Is the server there, does my signature work",
        "Always 200. If there are authentication headers, `auth` says whether the server accepts them, and if not, \
         why. A success uses up the nonce.",
    )
    .optionally_signed()
    .answers_with::<PingResponse>(
        200,
        "the server is there",
        &[("unauthenticated", "ping"), ("success", "ping.success"), ("failed", "ping.failed")],
    )
    .limited()
}

pub fn healthz() -> Endpoint {
    Endpoint::new(
        "healthz",
        Section::Watching,
        "Does it answer",
        "Answers while the process runs. It has no rate limit.",
    )
    .answers(health("the process answers", "ok"))
}

pub fn readyz() -> Endpoint {
    Endpoint::new(
        "readyz",
        Section::Watching,
        "Can it accept changes",
        "Answers 503 while the server stops, or while its disk refuses changes. A mirror also answers 503 before its first \
         commit, when it has not been up to date for some minutes, and when it has stopped following its origin. It has \
         no rate limit.",
    )
    .answers(health("changes are accepted; or this is a mirror that is up to date", "ready"))
    .fails("the server cannot do all of its work at the moment", &NotReady::Store.into())
}

pub fn document() -> Endpoint {
    let schema = ContentSchema::Object;
    Endpoint::new(
        "openapi",
        Section::Watching,
        "This reference, for programs",
        "An OpenAPI 3.1 document, made from the same descriptions as this page. Any origin can read it.",
    )
    .counted_as("page")
    .with_parameter(if_none_match())
    .answers(
        DescribedAnswer::new(200, "the document")
            .with_header(ETAG)
            .with_header(CACHE_CONTROL)
            .with_content(Content { media_type: JSON, schema, examples: Vec::new() }),
    )
    .answers(DescribedAnswer::not_modified())
    .limited()
}

fn health(about: &str, status: &'static str) -> DescribedAnswer {
    let schema = ContentSchema::of::<HealthResponse>();
    let examples = vec![(status, json!({ "status": status }))];
    DescribedAnswer::new(200, about).with_content(Content { media_type: JSON, schema, examples })
}
