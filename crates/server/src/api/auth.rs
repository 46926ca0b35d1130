//! Who calls: the four headers, the nonce, and the signed body.

use std::{sync::Arc, time::Instant};

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, request::Parts};
use countersign_api::error_code::ErrorCode;
use countersign_core::documents::signed_request::SignedRequest;
use countersign_core::rules::{auth, auth::AuthHeaders, snapshot::Change};
use countersign_core::values::key::{PublicKey, Signature};
use countersign_core::values::{bounds::KEPT_REQUEST_BYTES, path::RepoPath, time::Timestamp, wire};
use countersign_store::{Head, StoreError};

use crate::http::{body, error::ApiError, upstream::FetchClaim};
use crate::limits::{connections::RequestSender, semaphore::Claimant};
use crate::{api::routing::Question, api::state::App, operate::observe, operate::observe::RequestFact};

/// A request whose sender is proved, with its raw body. Its nonce is used up.
#[derive(Debug)]
pub struct Authenticated {
    pub question: Question,
    pub caller: PublicKey,
    pub body: Bytes,
    timestamp: Timestamp,
    /// The nonce as it was received, because the sender signed that text.
    nonce: String,
    signature: Signature,
}

impl Authenticated {
    /// Charges the client for a request that makes the server fetch, and names the claimant of a place.
    pub fn claim_fetch(&self, claimant: Claimant) -> Result<FetchClaim, ApiError> {
        let client = self.question.sender.client.as_ref();
        let share = client.map(|client| client.share_fetching(&self.caller)).transpose()?;
        client.map_or(Ok(()), |client| client.charge_fetch(&self.caller, Instant::now()))?;
        Ok(FetchClaim { claimant, share })
    }

    /// Refuses a change at this path if it is blocked for one of these keys. Notes the path for the line of the
    /// request.
    pub fn check_blocks(&self, keys: &[&PublicKey], path: &RepoPath) -> Result<(), ApiError> {
        observe::note(RequestFact::File, path);
        Ok(self.question.app.blocks.check(keys, path)?)
    }

    pub fn claimant(&self) -> Claimant {
        self.question.sender.claimant().with_key(&self.caller)
    }

    /// Makes the change that this request asks for, at the time that the writer gives, unless the clock was set
    /// meanwhile (D191, D192).
    pub async fn change<T, R>(
        &self,
        decide: impl Fn(&Head, Timestamp) -> Result<(Change, T), R> + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        ApiError: From<R>,
    {
        let sent = self.timestamp;
        let carry_out = move |head: &Head, now| {
            auth::check_carried(sent, now)?;
            Ok::<_, ApiError>(decide(head, now)?)
        };
        self.question.app.store.transact(carry_out).await?
    }

    /// The request as the server keeps it for later verification (D14).
    pub fn to_signed_request(&self) -> Result<SignedRequest, ApiError> {
        if self.body.len() > KEPT_REQUEST_BYTES {
            return Err(ApiError::too_large(KEPT_REQUEST_BYTES));
        }
        let payload = std::str::from_utf8(&self.body);
        let payload = payload.map_err(|_| ApiError::new(ErrorCode::InvalidBody, "the body is not UTF-8"))?;
        Ok(SignedRequest {
            timestamp: self.timestamp.to_header(),
            nonce: self.nonce.clone(),
            payload: payload.to_owned(),
            public_key: self.caller,
            signature: self.signature,
        })
    }
}

/// Proves the sender of a request before anything else reads its body or path (D30).
impl FromRequest<App> for Authenticated {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let authenticated = authenticate(app, &parts, body).await;
        if authenticated.is_err()
            && let Ok(claimed) = single_header(&parts.headers, wire::HEADER_PUBLIC_KEY)
        {
            // Nothing proves it, but it tells the operator whose request this may have been.
            observe::note(RequestFact::ClaimedKey, &claimed);
        }
        authenticated
    }
}

pub async fn authenticate(app: &App, parts: &Parts, body: Body) -> Result<Authenticated, ApiError> {
    let (sender, headers) = (RequestSender::of(parts), &parts.headers);
    app.role.check_accepts()?;
    app.role.check_clock()?;
    let limit = app.limits.request_body_bytes;
    body::charge(&sender, headers, limit)?;
    let received = AuthHeaders {
        timestamp: single_header(headers, wire::HEADER_TIMESTAMP)?,
        nonce: single_header(headers, wire::HEADER_NONCE)?,
        signature: single_header(headers, wire::HEADER_SIGNATURE)?,
        public_key: single_header(headers, wire::HEADER_PUBLIC_KEY)?,
    };
    // Before the body is read: a request that fails anyway must not fill the memory.
    let claimed = auth::check_headers(&received, app.now())?;
    let body = body::receive(&app.large_bodies, &sender, body, limit).await?;
    let verified = claimed.verify(&body)?;
    observe::note(RequestFact::Key, &verified.public_key);
    if let Some(reason) = app.store.halted() {
        // What it has is not what the other nodes have.
        return Err(StoreError::Halted(reason).into());
    }
    app.role.accept(verified.nonce.0, verified.timestamp).await?;
    if let Some(client) = &sender.client {
        // Only now: a replayed request must not use up the allowance of the key that signed it.
        client.charge_key(&verified.public_key, Instant::now())?;
    }
    // A request can wait for hours, and nothing reads its headers again.
    let headers = HeaderMap::new();
    let question = Question { app: Arc::clone(app), sender, headers, uri: parts.uri.clone() };
    let (nonce, timestamp, signature) = (received.nonce.to_owned(), verified.timestamp, verified.signature);
    Ok(Authenticated { question, caller: verified.public_key, body, timestamp, nonce, signature })
}

pub fn has_auth_headers(headers: &HeaderMap) -> bool {
    [wire::HEADER_TIMESTAMP, wire::HEADER_NONCE, wire::HEADER_SIGNATURE, wire::HEADER_PUBLIC_KEY]
        .into_iter()
        .any(|name| headers.contains_key(name))
}

/// A header that must occur exactly once. Of two, different readers could take different ones.
pub fn single_header<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, ApiError> {
    let mut values = headers.get_all(name).iter();
    let missing = || ApiError::new(ErrorCode::AuthHeaderMissing, format!("missing header {name}"));
    let value = values.next().ok_or_else(missing)?;
    let invalid = |what| ApiError::new(ErrorCode::AuthHeaderInvalid, format!("the header {name} is {what}"));
    if values.next().is_some() {
        return Err(invalid("given twice"));
    }
    value.to_str().map_err(|_| invalid("not plain text"))
}
