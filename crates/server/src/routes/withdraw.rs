//! Withdraws a release that still collects signatures.

use axum::{Json, extract::State};
use countersign_api::answers::ChangedResponse;
use countersign_core::{documents::withdrawal::Withdrawal, rules::decide::withdraw as decision};

use crate::{
    auth::Authenticated,
    error::ApiError,
    observe::{self, RequestFact},
    state::App,
};

pub async fn withdraw(
    State(app): State<App>,
    request: Authenticated,
) -> Result<Json<ChangedResponse>, ApiError> {
    let withdrawal = Withdrawal::of(request.to_signed_request()?)?;
    let file = &withdrawal.body.file_path;
    observe::note(RequestFact::File, file);
    app.blocks.check(&[&request.caller], file)?;
    request.change(&app, move |head, _| decision::withdraw(head, &withdrawal)).await?;
    Ok(Json(ChangedResponse::new("Release withdrawn. Its path is free again.")))
}
