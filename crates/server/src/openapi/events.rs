//! The stream of events.

use countersign_api::event::EventKind;
use serde_json::json;

use super::{
    endpoint::{CACHE_CONTROL, Content, ContentSchema, DescribedAnswer, Endpoint, Section, find_example},
    parameters::{
        COMMIT, event_types, file_path, last_event_id, last_event_id_in_query, prefix, waiting_key,
    },
};
use crate::{error::ApiError, events::not_kept};

pub fn events() -> Endpoint {
    // No schema describes a stream without an end.
    let stream = Content {
        media_type: "text/event-stream",
        schema: ContentSchema::Bytes,
        examples: vec![("events", json!(write_example()))],
    };
    let malformed = "Last-Event-ID: must be the id of a commit, of 40 hexadecimal digits";
    Endpoint::new(
        "events",
        Section::Watching,
        "Events as they happen",
        "An endless stream of Server-Sent Events: registrations, proposals, signatures, releases, revocations. The id \
         of an event is the commit that caused it; its data is an object with `type`, `path`, `key`, `time` and \
         `commit`.",
    )
    .with_parameter(prefix())
    .with_parameter(waiting_key())
    .with_parameter(event_types())
    .with_parameter(last_event_id())
    .with_parameter(last_event_id_in_query())
    .answers(DescribedAnswer::new(200, "the stream").with_header(CACHE_CONTROL).with_content(stream))
    .fails("a parameter is malformed, unknown or repeated", &ApiError::invalid_parameter(malformed))
    .fails("the last event is too old, or does not exist", &not_kept(COMMIT))
    .fails("too many listeners; try again", &ApiError::too_many_listeners())
    .limited()
}

fn write_example() -> String {
    let event = json!({
        "type": EventKind::Signature.name(),
        "path": file_path().example,
        "key": find_example("header.public_key"),
        "time": "2026-01-31T10:00:00Z",
        "commit": COMMIT,
    });
    format!("event: {}\ndata: {event}\nid: {COMMIT}\n\n", EventKind::Signature.name())
}
