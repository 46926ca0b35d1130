//! What happens, as it happens.

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, Uri},
    response::IntoResponse,
};

use crate::{
    answer::Origin,
    app::App,
    error::ApiError,
    events::{ListenRequest, Listener},
};

pub(crate) async fn listen(
    State(app): State<App>,
    origin: Option<Extension<Origin>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let request = ListenRequest::parse(uri.query().unwrap_or_default(), &headers)?;
    Listener::start(app, request, origin.map(|Extension(origin)| origin)).await
}
