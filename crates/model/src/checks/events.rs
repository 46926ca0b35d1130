//! Events: the stream that a client reads, the event in it, the message of a commit that it comes from, and what a
//! listener asks for.

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use countersign_api::{
    claim::Claim,
    event::{EventBody, EventKind, events_of, is_commit_id},
    event_stream::{EventBlock, EventStreamReader, TooLong},
};
use countersign_core::{
    documents::layout,
    values::{bounds::EVENT_BYTES, time::Timestamp, wire},
};
use countersign_server::events::ListenRequest;

use super::promises::{assert_no_duplicates, assert_path, assert_shown};

pub fn check(data: &[u8]) {
    let stream = read(data, data.len().max(1));
    assert_eq!(read(data, 1), stream, "the pieces do not matter");
    for block in stream.iter().flatten() {
        assert!(block.data.as_ref().is_none_or(|data| data.len() <= 3 * EVENT_BYTES));
        check_event(block.data.as_deref().unwrap_or_default().as_bytes());
    }
    check_event(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    check_message(text);
    check_listener(text);
}

fn read(data: &[u8], piece: usize) -> Result<Vec<EventBlock>, TooLong> {
    let mut reader = EventStreamReader::default();
    let mut blocks = Vec::new();
    for bytes in data.chunks(piece) {
        blocks.extend(reader.push(bytes)?);
    }
    Ok(blocks)
}

fn check_event(data: &[u8]) {
    let event = match EventBody::parse(data) {
        Ok(Some(event)) => event,
        Ok(None) => return assert_no_duplicates(data),
        Err(error) => return assert_shown(&error),
    };
    assert_no_duplicates(data);
    assert_path(&event.path);
    assert!(is_commit_id(&event.commit));
    let written = event.to_json();
    assert!(!written.contains(['\n', '\r']), "an event is one line of the stream");
    assert_eq!(EventBody::parse(written.as_bytes()).as_ref(), Ok(&Some(event.clone())));
    let sent = format!("event: {}\ndata: {written}\nid: {}\n\n", event.kind.name(), event.commit);
    let block = EventBlock { data: Some(written), id: Some(event.commit) };
    assert_eq!(read(sent.as_bytes(), 7), Ok(vec![block]), "the client reads what the server sends");
}

/// A follower reads messages of commits from its origin.
fn check_message(message: &str) {
    let events = events_of(message);
    let claim = Claim::parse(message);
    let tells_nothing = matches!(claim, None | Some(Claim::Create));
    assert_eq!(events.is_empty(), tells_nothing, "{claim:?}");
    assert!(events.len() <= 2);
    for event in &events {
        assert_path(&event.path);
        assert_eq!(event.due.is_some(), event.kind == EventKind::Agreed);
        // A path that a person, and not the message, has put in the place of the project.
        let first = message.lines().next().unwrap_or_default();
        let named = layout::project_with_signers_at(&event.path).unwrap_or_else(|| event.path.clone());
        assert!(first.contains(named.as_str()), "{named} is not in {first:?}");
        let time = Timestamp::from_unix_seconds(0).expect("in the range of timestamps");
        check_event(EventBody::new(event, time, "0".repeat(40)).to_json().as_bytes());
    }
}

/// The first line is the query, and each further one a header.
fn check_listener(text: &str) {
    let mut lines = text.split('\n');
    let query = lines.next().unwrap_or_default();
    let mut headers = HeaderMap::new();
    for value in lines.take(2).filter_map(|line| HeaderValue::from_str(line).ok()) {
        headers.append(wire::HEADER_LAST_EVENT_ID, value);
    }
    match ListenRequest::parse(query, &headers) {
        Ok(request) => {
            request.filter.prefix.iter().for_each(assert_path);
            assert!(request.filter.kinds.is_none_or(|kinds| !kinds.is_empty()));
        }
        Err(error) => assert_eq!(error.status(), StatusCode::BAD_REQUEST),
    }
}
