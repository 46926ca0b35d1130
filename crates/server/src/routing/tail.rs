//! The path at the end of a route.

use axum::{extract::FromRequestParts, http::request::Parts};
use countersign_api::error_code::ErrorCode;
use countersign_core::values::path::RepoPath;

use crate::error::ApiError;

/// What follows `/v1/<route>/`, unparsed: authentication comes first (D30).
#[derive(Debug)]
pub struct Tail(pub String);

impl Tail {
    pub fn parse(&self) -> Result<RepoPath, ApiError> {
        parse_tail(&self.0)
    }
}

/// The path, percent-decoded once.
pub fn parse_tail(tail: &str) -> Result<RepoPath, ApiError> {
    if !tail.contains('%') {
        return Ok(RepoPath::parse(tail)?);
    }
    let decoded = percent_encoding::percent_decode_str(tail).decode_utf8();
    let decoded =
        decoded.map_err(|_| ApiError::new(ErrorCode::InvalidPath, "Invalid path: it is not UTF-8"))?;
    Ok(RepoPath::parse(&decoded)?)
}

impl<S: Sync> FromRequestParts<S> for Tail {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let tail = parts.uri.path().splitn(4, '/').nth(3).unwrap_or_default();
        Ok(Self(tail.to_owned()))
    }
}
