//! What a listener asks for.

use std::fmt::Display;

use axum::http::HeaderMap;
use countersign_api::event::{EventFilter, EventKind, HEADER_LAST_EVENT_ID};
use countersign_core::values::{key::PublicKey, path::RepoPath, shown::shown_text};
use url::form_urlencoded;

use crate::{commit_id::parse_commit_id, error::ApiError};
use countersign_store::{ObjectId, recent_commits::KEPT};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListenRequest {
    pub filter: EventFilter,
    /// The newest commit that the client knows. `None`: only what happens from now on.
    pub after: Option<ObjectId>,
}

impl ListenRequest {
    pub fn parse(query: &str, headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut request = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let is_new = match name.as_ref() {
                "prefix" => {
                    request.filter.prefix.replace(RepoPath::parse(&value).map_err(bad("prefix"))?).is_none()
                }
                "key" => request.filter.key.replace(parse_key(&value)?).is_none(),
                "type" => request.filter.kinds.replace(parse_kinds(&value)?).is_none(),
                "last_event_id" => request.after.replace(parse_commit(&value)?).is_none(),
                _ => {
                    return Err(ApiError::bad_request(format!(
                        "`{}` is not one of {PARAMETERS}",
                        shown_text(&name)
                    )));
                }
            };
            if !is_new {
                return Err(ApiError::bad_request(format!("{name}: given more than once")));
            }
        }
        // A client that reconnects sets the header; its URL still names the older id.
        let mut ids = headers.get_all(HEADER_LAST_EVENT_ID).iter();
        match (ids.next(), ids.next()) {
            // A server sends an empty id to make clients forget the last one.
            (None, _) => {}
            (Some(id), None) if id.is_empty() => {}
            (Some(id), None) => request.after = Some(parse_commit(&String::from_utf8_lossy(id.as_bytes()))?),
            (Some(_), Some(_)) => return Err(ApiError::bad_request("Last-Event-ID: given more than once")),
        }
        Ok(request)
    }
}

const PARAMETERS: &str = "`prefix`, `key`, `type` and `last_event_id`";

/// The answer to a client that asks for a commit that the server no longer keeps, or never had.
pub fn not_kept(after: impl Display) -> ApiError {
    let message = format!(
        "the commit {after} is not among the newest {KEPT}: ask for the state of what you watch, and listen without \
         Last-Event-ID"
    );
    ApiError::not_found(message)
}

fn bad<E: Display>(name: &str) -> impl Fn(E) -> ApiError {
    move |error| ApiError::bad_request(format!("{name}: {error}"))
}

fn parse_key(text: &str) -> Result<PublicKey, ApiError> {
    // A plus sign in a query means a space unless it is written as %2B, and keys contain plus signs.
    let parsed = EventFilter::parse_key(text).or_else(|error| match text.contains(' ') {
        true => EventFilter::parse_key(&text.replace(' ', "+")),
        false => Err(error),
    });
    parsed.map_err(bad("key"))
}

fn parse_kinds(text: &str) -> Result<std::collections::BTreeSet<EventKind>, ApiError> {
    let parse = |name: &str| {
        EventKind::parse(name).ok_or_else(|| {
            let known: Vec<_> = EventKind::ALL.map(EventKind::name).into();
            ApiError::bad_request(format!("type: `{}` is not one of {}", shown_text(name), known.join(", ")))
        })
    };
    text.split(',').map(parse).collect()
}

fn parse_commit(text: &str) -> Result<ObjectId, ApiError> {
    parse_commit_id("Last-Event-ID", text)
}
