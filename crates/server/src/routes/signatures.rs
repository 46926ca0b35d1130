//! Submits signatures, and tells how far a file has come.

use axum::{Json, extract::State};
use countersign_api::{
    answers::{SignedResponse, StatusResponse},
    requests::SignaturesBody,
};
use countersign_core::rules::{decide::sign, query, stored};

use crate::{
    auth::Authenticated,
    error::ApiError,
    observe::{self, RequestFact},
    routing::tail::Tail,
    state::App,
};

pub async fn submit(
    State(app): State<App>,
    request: Authenticated,
) -> Result<Json<SignedResponse>, ApiError> {
    let body = SignaturesBody::parse(&request.body)?;
    observe::note(RequestFact::File, &body.file_path);
    app.blocks.check(&[&request.caller, &body.public_key], &body.file_path)?;
    let prepared = body.prepare(&*app.store.head());
    let signed = request.change(&app, move |head, now| sign::sign_prepared(head, &prepared, now)).await?;
    Ok(Json(SignedResponse { is_complete: signed.is_complete, waits_until: signed.waits_until }))
}

pub async fn status(
    State(app): State<App>,
    tail: Tail,
    request: Authenticated,
) -> Result<Json<StatusResponse>, ApiError> {
    let path = tail.parse()?;
    let head = app.store.head();
    let state = query::file_status(&*head, &path, &request.caller)?;
    Ok(Json(match stored::agreement(&*head, &path)? {
        Some(agreement) => StatusResponse::waiting(path, agreement.due_at),
        None => StatusResponse::new(path, state),
    }))
}
