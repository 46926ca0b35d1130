//! The journal, for other machines that follow this one.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::State,
    http::{
        HeaderName, HeaderValue, Uri,
        header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
};
use countersign_core::values::{bounds::JOURNAL_WAIT_SECONDS, wire};

use crate::{
    commit_id::parse_commit_id,
    error::ApiError,
    journal::{self, CommitNews, FollowRequest},
    limits::semaphore::Claimant,
    origin::RequestOrigin,
    query::Query,
    state::App,
};

const COMMIT: HeaderName = HeaderName::from_static(wire::HEADER_COMMIT);

pub(crate) async fn follow(
    State(app): State<App>,
    origin: Option<Extension<RequestOrigin>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let request = parse_request(uri.query().unwrap_or_default())?;
    let client = origin.as_ref().and_then(|origin| origin.client.as_ref());
    let claimant = Claimant::at(client.map(|client| client.network));
    let news = CommitNews { end: app.events.subscribe(), is_stopping: app.stopping() };
    app.followers.wait(&app.store, request, claimant.clone(), news).await?;
    let journal = journal::begin(&app.followers, Arc::clone(&app.store), request.after, claimant).await?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(wire::JOURNAL_TYPE)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (COMMIT, write_commit(&journal.head().to_string())?),
    ];
    let client = origin.map(|Extension(origin)| origin.patience.listen());
    Ok((headers, journal.into_body(client, app.stopping())).into_response())
}

fn write_commit(id: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(id).map_err(|_| ApiError::panicked())
}

fn parse_request(query: &str) -> Result<FollowRequest, ApiError> {
    let query = Query::parse(query, &["after", "wait"])?;
    let after = query.get("after").map(|text| parse_commit_id("after", text)).transpose()?;
    let wait = query.get("wait").map(parse_seconds).transpose()?.unwrap_or_default();
    Ok(FollowRequest { after, wait })
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
