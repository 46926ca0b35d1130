//! Vetoes pending signers.

use axum::{Json, extract::State, http::StatusCode};
use countersign_api::{answers::VetoedResponse, requests::VetoBody};
use countersign_core::rules::decide::veto::{self, VetoRequest};

use crate::{
    auth::Authenticated,
    error::ApiError,
    observe::{self, RequestFact},
    state::App,
};

pub async fn veto(
    State(app): State<App>,
    request: Authenticated,
) -> Result<(StatusCode, Json<VetoedResponse>), ApiError> {
    let body = VetoBody::parse(&request.body)?;
    observe::note(RequestFact::File, &body.file_path);
    // A block of the project holds the signers back, and does not take the veto from its masters (D173).
    app.blocks.check_keys(&[&request.caller, &body.public_key])?;
    let VetoBody { file_path, veto_json, signature, public_key } = body;
    let veto = VetoRequest { file: file_path, veto_json, signature, master: public_key };
    let outcome = request.change(&app, move |head, now| veto::veto(head, &veto, now)).await?;
    let (status, message) = if outcome.is_vetoed {
        (StatusCode::OK, "The pending signers are vetoed and gone.")
    } else {
        (StatusCode::ACCEPTED, "Veto recorded. More signatures are required.")
    };
    let message = message.to_owned();
    Ok((status, Json(VetoedResponse { success: true, message, vetoed: outcome.is_vetoed })))
}
