//! Bodies of requests: how long a client may take to send one, and how many large ones the server receives at a time.

use std::{error::Error as _, sync::Arc, time::Duration, time::Instant};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, header::CONTENT_LENGTH};
use http_body_util::{BodyExt as _, LengthLimitError};
use tokio::time::timeout;

use crate::http::error::ApiError;
use crate::limits::connections::RequestSender;
use crate::limits::semaphore::{FairSemaphore, GaveWay, MinimumPace, SemaphoreRules};

/// The longest time for a body, large or small.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Nearly every body is smaller. The server receives only some larger bodies, or bodies of unknown length, at a time.
const SMALL_BODY_BYTES: u64 = 16 * 1024;
/// Large bodies that are received at the same time.
const MAX_LARGE_BODIES: usize = 32;
/// The server does not know the sender before the whole body is there. So addresses share the places, and bodies have a
/// minimum pace.
const LARGE_BODIES: SemaphoreRules = SemaphoreRules {
    share: MAX_LARGE_BODIES / 2,
    waiting: 64,
    max_wait: Duration::from_secs(1),
    grace: Some(Duration::from_millis(500)),
    pace: Some(MinimumPace { bytes_per_second: 16 * 1024, after: Duration::from_secs(5) }),
    ..SemaphoreRules::of(MAX_LARGE_BODIES)
};

/// The places for large bodies.
pub(crate) fn large_bodies() -> Arc<FairSemaphore> {
    FairSemaphore::new(LARGE_BODIES)
}

/// Charges the client for a body, whose length it may announce.
pub(crate) fn charge(sender: &RequestSender, headers: &HeaderMap, limit: usize) -> Result<(), ApiError> {
    sender.client.as_ref().map_or(Ok(()), |client| client.charge_authenticated(Instant::now()))?;
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) { Err(ApiError::too_large(limit)) } else { Ok(()) }
}

/// Reads the body of a request that proves its sender in its content, or not at all.
pub(crate) async fn read_public(
    large: &Arc<FairSemaphore>,
    request: Request,
    limit: usize,
) -> Result<Bytes, ApiError> {
    let (parts, body) = request.into_parts();
    let sender = RequestSender::of(&parts);
    charge(&sender, &parts.headers, limit)?;
    receive(large, &sender, body, limit).await
}

/// Receives a body. Only some large ones are received at a time, and a slow one makes room for others.
pub(crate) async fn receive(
    large: &Arc<FairSemaphore>,
    sender: &RequestSender,
    body: Body,
    limit: usize,
) -> Result<Bytes, ApiError> {
    let _waiting = sender.client_wait.as_ref().map(|client_wait| client_wait.await_body());
    if HttpBody::size_hint(&body).upper().is_some_and(|bytes| bytes <= SMALL_BODY_BYTES) {
        return read(body, limit).await;
    }
    let permit = large.take(sender.claimant()).await?;
    let meter = permit.meter();
    let metered = body.map_frame(move |frame| {
        meter.add(frame.data_ref().map_or(0, |data| data.len() as u64));
        frame
    });
    let read = permit.keep(read(Body::new(metered), limit)).await;
    read.unwrap_or_else(|GaveWay| Err(ApiError::TOO_SLOW.into()))
}

async fn read(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    let read = timeout(BODY_TIMEOUT, to_bytes(body, limit)).await;
    let read = read.map_err(|_| ApiError::TOO_SLOW)?;
    read.map_err(|error| {
        let is_limit = error.source().is_some_and(|source| source.is::<LengthLimitError>());
        if is_limit { ApiError::too_large(limit) } else { ApiError::malformed("the request body broke off") }
    })
}
