//! What is known of a key, and what waits for it. Public: anyone can count the same from the stored files.

use axum::{Extension, extract::State, http::Uri, response::Response};
use countersign_api::event::EventFilter;
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};
use percent_encoding::percent_decode_str;

use super::files::write_and_send;
use crate::{
    catalogue::ask,
    error::ApiError,
    origin::RequestOrigin,
    query::{Query, bad},
    state::App,
};

pub(crate) async fn describe(
    State(app): State<App>,
    origin: Option<Extension<RequestOrigin>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let key = parse_key(&uri)?;
    let known = ask(&app, origin.as_ref(), move |look| look.describe_key(&key)).await?;
    write_and_send(&app, &known, origin.as_deref()).await
}

pub(crate) async fn list_pending(
    State(app): State<App>,
    origin: Option<Extension<RequestOrigin>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let key = parse_key(&uri)?;
    let waiting = ask(&app, origin.as_ref(), move |look| look.pending_for(&key)).await?;
    write_and_send(&app, &waiting, origin.as_deref()).await
}

pub(crate) async fn list_signed(
    State(app): State<App>,
    origin: Option<Extension<RequestOrigin>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let key = parse_key(&uri)?;
    let query = Query::parse(uri.query().unwrap_or_default(), &["since", "after"])?;
    let since = query.get("since").map(Timestamp::parse).transpose().map_err(bad("since"))?;
    let after = query.get("after").map(RepoPath::parse).transpose().map_err(bad("after"))?;
    let signed = ask(&app, origin.as_ref(), move |look| look.signed_by(&key, since, after.as_ref()));
    let signed = signed.await?.map_err(bad("after"))?;
    write_and_send(&app, &signed, origin.as_deref()).await
}

/// The segment behind `/v1/keys/`. Bytes that are no valid key are fine: no one lists them.
fn parse_key(uri: &Uri) -> Result<PublicKey, ApiError> {
    let segment = uri.path().split('/').nth(3).unwrap_or_default();
    let decoded = percent_decode_str(segment).decode_utf8().map_err(bad("key"))?;
    EventFilter::parse_key(&decoded).map_err(bad("key"))
}
