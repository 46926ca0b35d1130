//! Who calls: the four headers, the nonce, and the body that they were signed over.

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, request::Parts},
};
use countersign_core::{
    auth::{self, AuthHeaders, VerifiedRequest},
    key::PublicKey,
    registration::SignedRequest,
    wire,
};

use crate::{app::App, error::ApiError};

/// A request whose sender is proved, with its raw body. Its nonce is used up.
#[derive(Debug)]
pub struct Authenticated {
    pub caller: PublicKey,
    pub body: Bytes,
    headers: SignedHeaders,
}

/// The header strings that entered the signature, as received.
#[derive(Debug)]
struct SignedHeaders {
    timestamp: String,
    nonce: String,
    verified: VerifiedRequest,
}

impl Authenticated {
    /// The request in the form in which it is kept for later verification (D14).
    pub fn to_signed_request(&self) -> Result<SignedRequest, ApiError> {
        let payload = std::str::from_utf8(&self.body);
        let payload = payload.map_err(|_| ApiError::bad_request("the body is not UTF-8"))?;
        Ok(SignedRequest {
            timestamp: self.headers.timestamp.clone(),
            nonce: self.headers.nonce.clone(),
            payload: payload.to_owned(),
            public_key: self.caller,
            signature: self.headers.verified.signature,
        })
    }
}

/// Proves the sender of a request before anything else looks at its body or path (D30).
impl FromRequest<App> for Authenticated {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let body = read_body(&parts, body, app.limits().request_body_bytes).await?;
        authenticate(app, &parts.headers, body).await
    }
}

pub async fn authenticate(app: &App, headers: &HeaderMap, body: Bytes) -> Result<Authenticated, ApiError> {
    let received = AuthHeaders {
        timestamp: single_header(headers, wire::HEADER_TIMESTAMP)?,
        nonce: single_header(headers, wire::HEADER_NONCE)?,
        signature: single_header(headers, wire::HEADER_SIGNATURE)?,
        public_key: single_header(headers, wire::HEADER_PUBLIC_KEY)?,
    };
    let verified = auth::verify_request(&received, &body, app.now())?;
    if app.nonces().floor().is_some_and(|floor| verified.timestamp < floor) {
        // Which nonces were used before a restore is not known, so all of that time count as used (D31).
        return Err(ApiError::unauthorized("the timestamp is from before this server was restored"));
    }
    app.nonces().remember(verified.nonce.0, verified.nonce_expires_at()).await?;
    let headers = SignedHeaders {
        timestamp: received.timestamp.to_owned(),
        nonce: received.nonce.to_owned(),
        verified,
    };
    Ok(Authenticated { caller: verified.public_key, body, headers })
}

/// Whether a request claims to be authenticated at all.
pub fn has_auth_headers(headers: &HeaderMap) -> bool {
    [wire::HEADER_TIMESTAMP, wire::HEADER_NONCE, wire::HEADER_SIGNATURE, wire::HEADER_PUBLIC_KEY]
        .into_iter()
        .any(|name| headers.contains_key(name))
}

/// A header that must be there once: of two, each reader might take another one.
pub fn single_header<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, ApiError> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or_else(|| ApiError::unauthorized(format!("missing header {name}")))?;
    if values.next().is_some() {
        return Err(ApiError::unauthorized(format!("the header {name} is given twice")));
    }
    value.to_str().map_err(|_| ApiError::unauthorized(format!("the header {name} is not plain text")))
}

pub async fn read_body(parts: &Parts, body: Body, limit: usize) -> Result<Bytes, ApiError> {
    let too_large = || {
        let message = format!("the request body is larger than {limit} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    let announced = parts.headers.get(axum::http::header::CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    to_bytes(body, limit).await.map_err(|error| {
        let is_limit = std::error::Error::source(&error)
            .is_some_and(|source| source.is::<http_body_util::LengthLimitError>());
        if is_limit { too_large() } else { ApiError::bad_request("the request body broke off") }
    })
}
