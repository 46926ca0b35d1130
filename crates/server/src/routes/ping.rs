//! Is anybody there, and would my signature be accepted? (D22)

use axum::{
    Json,
    extract::{Request, State},
};
use countersign_core::{
    api::{PingAuth, PingResponse},
    key::PublicKey,
    wire,
};

use crate::{app::App, auth};

pub async fn ping(State(app): State<App>, request: Request) -> Json<PingResponse> {
    let (parts, body) = request.into_parts();
    let auth = if auth::has_auth_headers(&parts.headers) {
        match auth::authenticate(&app, &parts, body).await {
            Ok(request) => PingAuth::Success { public_key: request.caller.to_string() },
            Err(error) => {
                let public_key = auth::single_header(&parts.headers, wire::HEADER_PUBLIC_KEY);
                let public_key = public_key.ok().and_then(|text| PublicKey::parse_prefixed(text).ok());
                let public_key = public_key.map(|key| key.to_string());
                PingAuth::Failed { public_key, reason: error.message }
            }
        }
    } else {
        PingAuth::Unauthenticated
    };
    Json(PingResponse { message: "pong", auth })
}
