//! Records a signer's objection to a release.

use axum::{Json, extract::State};
use countersign_api::{answers::ChangedResponse, requests::ObjectBody};
use countersign_core::rules::decide::object as decision;

use crate::{
    auth::Authenticated,
    error::ApiError,
    observe::{self, RequestFact},
    state::App,
};

pub async fn object(
    State(app): State<App>,
    request: Authenticated,
) -> Result<Json<ChangedResponse>, ApiError> {
    let body = ObjectBody::parse(&request.body)?;
    observe::note(RequestFact::File, &body.file_path);
    app.blocks.check(&[&request.caller, &body.public_key], &body.file_path)?;
    let objected = request.change(&app, move |head, now| decision::object(head, &body, now)).await?;
    let message = if objected.stands { "Objection recorded" } else { "Objection taken back" };
    Ok(Json(ChangedResponse::new(message)))
}
