//! Gives hyper's own refusals of invalid requests the body that every error has (D30, D47).

use axum::body::Bytes;
use countersign_api::answers::ErrorResponse;

use crate::{date::http_date, request_id::new_request_id};

/// The largest head of a request. An unfinished head takes no more memory, and hyper reads no more at a time.
pub const MAX_HEAD_BYTES: usize = 32 * 1024;
/// Hyper's own refusals have no body.
const NO_BODY: &str = "content-length: 0\r\n";
/// How much the server still reads from a refused client. Closing a connection with unread bytes would reset it, and
/// the client would not see the answer.
const MAX_DRAINED: usize = 1024 * 1024;

/// The answer that replaces hyper's own. The connection ends with it.
#[derive(Debug)]
pub struct Refusal {
    /// What is yet to be sent of the answer.
    pub unsent: Bytes,
    drained: usize,
}

impl Refusal {
    /// The same head with a body; `None` unless this is the head of an answer without one.
    pub fn instead_of(head: &[u8]) -> Option<Self> {
        let head = str::from_utf8(head).ok()?;
        let status = head.split(' ').nth(1)?;
        let (before, after) = head.split_once(NO_BODY)?;
        let error = match status {
            "431" => format!(
                "the head of the request is too large: it may have {MAX_HEAD_BYTES} bytes and 100 header fields"
            ),
            "414" => "the target of the request is too long".to_owned(),
            _ => "this is not a valid HTTP/1.1 request".to_owned(),
        };
        let id = new_request_id();
        tracing::debug!(id, status, reason = error, "refused what is no request");
        let body = serde_json::to_string(&ErrorResponse { error }).ok()?;
        let length = body.len();
        let headers = format!(
            "content-type: application/json\r\ncontent-length: {length}\r\ncache-control: no-store\r\n\
             x-request-id: {}\r\n{}",
            id,
            date_line()
        );
        let answer = [before, &headers, after, &body].concat().into_bytes();
        Some(Self { unsent: answer.into(), drained: 0 })
    }

    /// Whether to continue to read and discard what comes.
    pub fn drains_on_after(&mut self, bytes: usize) -> bool {
        self.drained += bytes;
        bytes > 0 && self.drained < MAX_DRAINED
    }
}

/// Hyper writes no date (D50).
fn date_line() -> String {
    let date = http_date();
    let date = date.as_ref().and_then(|date| date.to_str().ok());
    date.map(|date| format!("date: {date}\r\n")).unwrap_or_default()
}
