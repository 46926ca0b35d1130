//! Events as they happen.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, Uri},
    response::IntoResponse,
};

use crate::{
    error::ApiError,
    events::{EventSource, ListenRequest, Listener},
    origin::RequestOrigin,
    state::App,
};

pub(crate) async fn listen(
    State(app): State<App>,
    origin: Option<Extension<RequestOrigin>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let request = ListenRequest::parse(uri.query().unwrap_or_default(), &headers)?;
    let source = EventSource {
        store: Arc::clone(&app.store),
        events: Arc::clone(&app.events),
        is_stopping: app.stopping(),
    };
    Listener::start(source, request, origin.map(|Extension(origin)| origin)).await
}
