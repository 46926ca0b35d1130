//! Streams for those who follow this server: events as they happen, and the journal of all commits.

use std::{sync::Arc, time::Duration};

use axum::http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::{body::Body, response::IntoResponse, response::Response};
use countersign_api::event::EventKind;
use countersign_core::values::{
    bounds::JOURNAL_WAIT_SECONDS, shown::shown_bytes, wire, wire::routes as paths,
};
use serde_json::json;

use crate::api::openapi::{
    CACHE_CONTROL, Content, DescribedAnswer, EXAMPLE_COMMIT, EXAMPLE_INDEX, EXAMPLE_PROJECT, Endpoint,
    Header, Parameter, Section, matching,
};
use crate::api::{openapi, routing::Question, routing::RouteTable};
use crate::events::journal::{CommitNews, FollowRequest, MIN_BYTES_PER_SECOND, not_in_history};
use crate::events::{EventSource, ListenRequest, Listener, journal, not_kept, stream_of};
use crate::http::{error::ApiError, request::parse_commit_id};

const COMMIT: HeaderName = HeaderName::from_static(wire::HEADER_COMMIT);

pub(crate) fn routes() -> RouteTable {
    let names = EventKind::ALL.map(EventKind::name).join("|");
    let newest = Header {
        name: "X-svc-commit",
        about: "The newest commit when the answer began, which is its last one.",
    };
    RouteTable::default()
        .get(paths::EVENTS, listen, Endpoint::new("events", Section::Watching, "Events as they happen")
            .about(
                "An endless stream of Server-Sent Events: registrations, proposals, signatures, releases, revocations. The id \
                 of an event is the commit that caused it; its data is an object with `type`, `path`, `key`, `time` and \
                 `commit`.",
            )
            .takes(Parameter::query("prefix", "Only what happens at or below this path.", openapi::path(), EXAMPLE_PROJECT))
            .takes(Parameter::query("key", "Only what waits for this public key.", openapi::public_key(), openapi::example_key()))
            .takes(Parameter::query("type", "Only events of these types, separated by commas.", matching(&format!("^({names})(,({names}))*$")), "complete,revoked"))
            // Clients that have no id send an empty one.
            .takes(Parameter::header("Last-Event-ID", "Continue after this event. Browsers set it when they reconnect.", matching("^([0-9a-fA-F]{40})?$"), EXAMPLE_COMMIT))
            .takes(Parameter::query("last_event_id", "The same as the header `Last-Event-ID`, for clients that cannot set it.", openapi::commit(), EXAMPLE_COMMIT))
            .answers(DescribedAnswer::new(200, "the stream").with_headers([CACHE_CONTROL]).with_content(Content::bytes("text/event-stream").with_example("events", write_example_event())))
            .fails("a parameter is malformed, unknown or repeated", ApiError::invalid_parameter("Last-Event-ID: must be the id of a commit, of 40 hexadecimal digits"))
            .fails("the last event is too old, or does not exist", not_kept(EXAMPLE_COMMIT))
            .fails("too many listeners; try again", ApiError::TOO_MANY_LISTENERS)
            .limited())
        .get(paths::JOURNAL, follow, Endpoint::new("journal", Section::Reading, "Every commit with its content")
            .about(format!(
                "What the server has stored, commit by commit from the oldest to the newest, in the form that `git \
                 fast-import` reads. In an empty bare repository, that gives the same commit ids. The answer ends with the \
                 commit that was the newest when it began. It is empty if there is nothing new.\n\nA follower that is \
                 slower than {} a second loses its place if others wait for one. An answer that breaks off can be continued \
                 after its last whole commit.",
                shown_bytes(MIN_BYTES_PER_SECOND),
            ))
            .takes(Parameter::query("after", "Continue after this commit, the newest one that you have.", openapi::commit(), EXAMPLE_COMMIT))
            .takes(Parameter::query("wait", "How many seconds to wait for a commit if there is nothing new.", json!({ "type": "integer", "minimum": 0, "maximum": JOURNAL_WAIT_SECONDS }), 0))
            .answers(DescribedAnswer::new(200, "the commits").with_headers([newest, CACHE_CONTROL]).with_content(Content::bytes(wire::JOURNAL_TYPE).with_example("first", EXAMPLE_JOURNAL)))
            .fails("a parameter is malformed, unknown or repeated", ApiError::invalid_parameter("after: must be the id of a commit, of 40 hexadecimal digits"))
            .fails("the commit is not in the history of this server", not_in_history(EXAMPLE_COMMIT))
            .can_fail("")
            .fails("too many followers; try again", ApiError::TOO_MANY_FOLLOWERS)
            .limited())
}

fn write_example_event() -> String {
    let event = json!({
        "type": EventKind::Signature.name(),
        "path": EXAMPLE_INDEX,
        "key": openapi::example_key(),
        "time": "2026-01-31T10:00:00Z",
        "commit": EXAMPLE_COMMIT,
    });
    format!("event: {}\ndata: {event}\nid: {EXAMPLE_COMMIT}\n\n", EventKind::Signature.name())
}

const EXAMPLE_JOURNAL: &str = "\
commit refs/heads/main
original-oid cafecafecafecafecafecafecafecafecafecafe
author Countersign <countersign@localhost> 1769853600 +0000
committer Countersign <countersign@localhost> 1769853600 +0000
data 22
Create the repository
M 100644 inline svc.repository.json
data 3
{}


";

async fn listen(method: Method, question: Question) -> Result<Response, ApiError> {
    let Question { app, sender, headers, uri } = question;
    let request = ListenRequest::parse(uri.query().unwrap_or_default(), &headers)?;
    // A request for the head alone listens to nothing, so it takes no one's place.
    if method == Method::HEAD {
        request.check(&app.store).await?;
        return Ok(stream_of(Body::empty()));
    }
    let source = EventSource {
        store: Arc::clone(&app.store),
        events: Arc::clone(&app.events),
        is_stopping: app.stopping(),
    };
    Ok(Listener::start(source, request, &sender).await?.into_response())
}

async fn follow(question: Question) -> Result<Response, ApiError> {
    let (query, Question { app, sender, .. }) = (question.query(&["after", "wait"])?, &question);
    let after = query.get("after").map(|text| parse_commit_id("after", text)).transpose()?;
    let wait = query.get("wait").map(parse_seconds).transpose()?.unwrap_or_default();
    let request = FollowRequest { after, wait };
    let (claimant, client) = (sender.claimant(), sender.listen());
    let news = CommitNews { end: app.events.subscribe(), is_stopping: app.stopping() };
    app.followers.wait(&app.store, request, claimant.clone(), news).await?;
    let journal = journal::begin(&app.followers, Arc::clone(&app.store), request.after, claimant).await?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(wire::JOURNAL_TYPE)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (COMMIT, HeaderValue::from_str(&journal.head().to_string()).map_err(|_| ApiError::PANICKED)?),
    ];
    Ok((headers, journal.into_body(client, app.stopping())).into_response())
}

fn parse_seconds(text: &str) -> Result<Duration, ApiError> {
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let seconds = digits.and_then(|text| text.parse().ok()).filter(|s| *s <= JOURNAL_WAIT_SECONDS as u64);
    seconds.map(Duration::from_secs).ok_or_else(|| {
        ApiError::invalid_parameter(format!(
            "wait: must be a number of seconds from 0 to {JOURNAL_WAIT_SECONDS}"
        ))
    })
}
