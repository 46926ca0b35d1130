//! What waits for the caller's signature.

use axum::{Extension, extract::State, response::Response};
use countersign_api::answers::PendingResponse;
use countersign_core::values::bounds::PENDING_LIST_BYTES;

use super::files::send_json;
use crate::{auth::Authenticated, error::ApiError, origin::RequestOrigin, state::App};

/// A shorter list is put together at once.
const LONG: usize = 256;

pub(crate) async fn list(
    State(app): State<App>,
    origin: Option<Extension<RequestOrigin>>,
    request: Authenticated,
) -> Result<Response, ApiError> {
    let head = app.store.head();
    let is_long = head.index.waiting_for(&request.caller).nth(LONG).is_some();
    let write = move || {
        let waiting = head.index.waiting_for(&request.caller);
        let answer = PendingResponse::within(PENDING_LIST_BYTES, &*head, waiting);
        serde_json::to_vec(&answer).expect("a list of text is always JSON")
    };
    let answer = if is_long { app.sending.read(write).await? } else { write() };
    send_json(&app, answer.into(), origin.as_deref()).await
}
