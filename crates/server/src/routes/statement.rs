//! Records what a key states: a revocation of a release, a veto of pending signers, an objection to a release.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use countersign_api::answers::{ChangedResponse, RevokedResponse, VetoedResponse};
use countersign_api::requests::SignedStatement;
use countersign_core::documents::statement::StatementKind;
use countersign_core::rules::decide;

use crate::auth::Authenticated;
use crate::error::ApiError;
use crate::observe::{self, RequestFact};
use crate::state::App;

pub async fn revoke(
    State(app): State<App>,
    request: Authenticated,
) -> Result<(StatusCode, Json<RevokedResponse>), ApiError> {
    let revoked = state(&app, &request, StatementKind::Revocation).await?;
    let (status, message) = match revoked {
        true => (StatusCode::OK, "File revoked successfully".to_owned()),
        false => (StatusCode::ACCEPTED, "Revocation recorded. More signatures are required.".to_owned()),
    };
    Ok((status, Json(RevokedResponse { success: true, message, revoked })))
}

pub async fn veto(
    State(app): State<App>,
    request: Authenticated,
) -> Result<(StatusCode, Json<VetoedResponse>), ApiError> {
    let vetoed = state(&app, &request, StatementKind::Veto).await?;
    let (status, message) = match vetoed {
        true => (StatusCode::OK, "The pending signers are vetoed and gone.".to_owned()),
        false => (StatusCode::ACCEPTED, "Veto recorded. More signatures are required.".to_owned()),
    };
    Ok((status, Json(VetoedResponse { success: true, message, vetoed })))
}

pub async fn object(
    State(app): State<App>,
    request: Authenticated,
) -> Result<Json<ChangedResponse>, ApiError> {
    let stands = state(&app, &request, StatementKind::Objection).await?;
    Ok(Json(ChangedResponse::new(if stands { "Objection recorded" } else { "Objection taken back" })))
}

/// Records a statement, and says whether it is in force.
async fn state(app: &App, request: &Authenticated, kind: StatementKind) -> Result<bool, ApiError> {
    let statement = SignedStatement::parse(kind, &request.body)?;
    observe::note(RequestFact::File, &statement.file_path);
    let keys = [&request.caller, &statement.public_key];
    let stated = match kind {
        StatementKind::Revocation => {
            app.blocks.check(&keys, &statement.file_path)?;
            let signed = request.to_signed_request()?;
            request
                .change(app, move |head, now| decide::revoke::revoke(head, &statement, &signed, now))
                .await?
        }
        StatementKind::Veto => {
            // A block of the project holds the signers back, and does not take the veto from its masters (D173).
            app.blocks.check_keys(&keys)?;
            request.change(app, move |head, now| decide::veto::veto(head, &statement, now)).await?
        }
        StatementKind::Objection => {
            app.blocks.check(&keys, &statement.file_path)?;
            request.change(app, move |head, now| decide::object::object(head, &statement, now)).await?
        }
    };
    Ok(stated.in_force)
}
