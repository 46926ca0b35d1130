//! Revokes a complete file.

use axum::{Json, extract::State, http::StatusCode};
use countersign_api::answers::RevokedResponse;
use countersign_core::{
    documents::revocation::RevokeBody,
    rules::decide::revoke::{self, RevokeRequest},
};

use crate::{
    auth::Authenticated,
    error::ApiError,
    observe::{self, RequestFact},
    state::App,
};

pub async fn revoke(
    State(app): State<App>,
    request: Authenticated,
) -> Result<(StatusCode, Json<RevokedResponse>), ApiError> {
    let body = RevokeBody::parse(&request.body)?;
    observe::note(RequestFact::File, &body.file_path);
    app.blocks.check(&[&request.caller, &body.public_key], &body.file_path)?;
    let revocation = RevokeRequest {
        file: body.file_path,
        revocation_json: body.revocation_json,
        signature: body.signature,
        revoker: body.public_key,
        request: request.to_signed_request()?,
    };
    let outcome = request.change(&app, move |head, now| revoke::revoke(head, &revocation, now)).await?;
    let (status, message) = if outcome.is_revoked {
        (StatusCode::OK, "File revoked successfully")
    } else {
        (StatusCode::ACCEPTED, "Revocation recorded. More signatures are required.")
    };
    let message = message.to_owned();
    Ok((status, Json(RevokedResponse { success: true, message, revoked: outcome.is_revoked })))
}
