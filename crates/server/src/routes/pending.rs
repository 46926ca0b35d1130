//! What waits for the caller's signature.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use countersign_api::answers::PendingResponse;
use countersign_core::values::{bounds::PENDING_LIST_BYTES, key::PublicKey};
use countersign_store::catalogue::Look;

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
    let caller = request.caller;
    // Another thread would take longer to begin than a brief answer takes.
    let brief = app.catalogue.glance().filter(|look| look.is_brief_for(&caller));
    let answer = match brief.map(|look| write(&look, &caller)) {
        Some(answer) => answer,
        None => {
            let catalogue = Arc::clone(&app.catalogue);
            app.sending.read(move || write(&catalogue.look(), &caller)).await?
        }
    };
    send_json(&app, answer.into(), origin.as_deref()).await
}

fn write(look: &Look<'_>, caller: &PublicKey) -> Vec<u8> {
    let head = look.head();
    let files = PendingResponse::within(PENDING_LIST_BYTES, &**head, head.index.waiting_for(caller));
    let answer = PendingResponse { revocations: look.revocations_for(caller), ..files };
    serde_json::to_vec(&answer).expect("a list of text is always JSON")
}
