//! Is the server there, and would it accept my signature? (D22)

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use countersign_api::answers::{PingAuth, PingResponse};
use countersign_core::values::{key::PublicKey, wire};

use crate::{auth, error::ApiError, state::App};

pub async fn ping(State(app): State<App>, request: Request) -> Result<Json<PingResponse>, ApiError> {
    let (parts, body) = request.into_parts();
    let auth = if auth::has_auth_headers(&parts.headers) {
        match auth::authenticate(&app, &parts, body).await {
            Ok(request) => PingAuth::Success { public_key: request.caller },
            // This says nothing about the signature.
            Err(error) if error.status() == StatusCode::TOO_MANY_REQUESTS => return Err(error),
            Err(error) => {
                let public_key = auth::single_header(&parts.headers, wire::HEADER_PUBLIC_KEY);
                let public_key = public_key.ok().and_then(|text| PublicKey::parse_prefixed(text).ok());
                PingAuth::Failed { public_key, reason: error.message }
            }
        }
    } else {
        PingAuth::Unauthenticated
    };
    Ok(Json(PingResponse::new(auth)))
}
