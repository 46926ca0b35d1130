//! What waits for the caller's signature.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use countersign_api::answers::PendingResponse;
use countersign_core::values::bounds::PENDING_LIST_BYTES;

use super::files::send_json;
use crate::{
    auth::Authenticated, catalogue::wait_until_ready, error::ApiError, origin::RequestOrigin, state::App,
};

/// Not one of the questions of everyone: those who ask as strangers must not hold up signers.
pub(crate) async fn list(
    State(app): State<App>,
    origin: Option<Extension<RequestOrigin>>,
    request: Authenticated,
) -> Result<Response, ApiError> {
    wait_until_ready(&app).await?;
    let catalogue = Arc::clone(&app.catalogue);
    let write = move || {
        let look = catalogue.look();
        let head = look.head();
        let waiting = head.index.waiting_for(&request.caller);
        let files = PendingResponse::within(PENDING_LIST_BYTES, &**head, waiting);
        let answer = PendingResponse { revocations: look.revocations_for(&request.caller), ..files };
        serde_json::to_vec(&answer).expect("a list of text is always JSON")
    };
    let answer = app.sending.read(write).await?;
    send_json(&app, answer.into(), origin.as_deref()).await
}
