//! What a listener asks for.

use std::fmt::Display;

use axum::http::HeaderMap;
use countersign_api::error_code::ErrorCode;
use countersign_api::event::{EventFilter, EventKind};
use countersign_core::values::{key::PublicKey, path::RepoPath, shown::shown_text, wire};

use crate::{
    commit_id::parse_commit_id,
    error::ApiError,
    query::{Query, bad},
};
use countersign_store::{ObjectId, recent_commits::KEPT};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListenRequest {
    pub filter: EventFilter,
    /// The newest commit that the client knows. `None`: only what happens from now on.
    pub after: Option<ObjectId>,
}

impl ListenRequest {
    pub fn parse(query: &str, headers: &HeaderMap) -> Result<Self, ApiError> {
        let query = Query::parse(query, &PARAMETERS)?;
        let filter = EventFilter {
            prefix: query.get("prefix").map(RepoPath::parse).transpose().map_err(bad("prefix"))?,
            key: query.get("key").map(parse_key).transpose()?,
            kinds: query.get("type").map(parse_kinds).transpose()?,
        };
        let mut after = query.get("last_event_id").map(parse_commit).transpose()?;
        // A client that reconnects sets the header; its URL still names the older id.
        let mut ids = headers.get_all(wire::HEADER_LAST_EVENT_ID).iter();
        match (ids.next(), ids.next()) {
            // A server sends an empty id to make clients forget the last one.
            (None, _) => {}
            (Some(id), None) if id.is_empty() => {}
            (Some(id), None) => after = Some(parse_commit(&String::from_utf8_lossy(id.as_bytes()))?),
            (Some(_), Some(_)) => {
                return Err(ApiError::invalid_parameter("Last-Event-ID: given more than once"));
            }
        }
        Ok(Self { filter, after })
    }
}

const PARAMETERS: [&str; 4] = ["prefix", "key", "type", "last_event_id"];

/// The answer to a client that asks for a commit that the server no longer keeps, or never had.
pub fn not_kept(after: impl Display) -> ApiError {
    let message = format!(
        "the commit {after} is not among the newest {KEPT}: ask for the state of what you watch, and listen without \
         Last-Event-ID"
    );
    ApiError::new(ErrorCode::CommitNotKept, message)
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
        EventKind::parse(name).map_err(|_| {
            let known: Vec<_> = EventKind::ALL.map(EventKind::name).into();
            ApiError::invalid_parameter(format!(
                "type: `{}` is not one of {}",
                shown_text(name),
                known.join(", ")
            ))
        })
    };
    text.split(',').map(parse).collect()
}

fn parse_commit(text: &str) -> Result<ObjectId, ApiError> {
    parse_commit_id("Last-Event-ID", text)
}
