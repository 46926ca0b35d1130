//! A withdrawal (D120, D122): the signed request itself, which says who took back a release, when and why.

use serde::Serialize;

use crate::{
    documents::{
        fields::{parse_digest, parse_reason},
        signed_request::SignedRequest,
    },
    values::{
        bounds::REASON_CHARS,
        digest::Sha512,
        json::{Json, ParseError},
        path::RepoPath,
    },
};

// An attribute takes nothing but a figure.
const _: () = assert!(REASON_CHARS == 1_000, "the schema of `reason` says so");

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WithdrawBody {
    /// The index that is taken back. It must still collect signatures.
    pub file_path: RepoPath,
    /// 1 to 1,000 characters.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 1_000))]
    pub reason: String,
    /// The digest of the index that the caller saw, `sha512:` and hexadecimal digits. Optional: with it, no other index is
    /// withdrawn.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, nullable = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_digest: Option<Sha512>,
}

/// A request whose body asks for a withdrawal. Whether its signature verifies, `SignedRequest::verify` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    pub request: SignedRequest,
    pub body: WithdrawBody,
}

impl WithdrawBody {
    /// Unknown fields are ignored, as in all bodies of requests (D5).
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let digest = object.optional("subject_digest").filter(|digest| !digest.is_null());
        Ok(Self {
            file_path: object.required("file_path")?.parsed(RepoPath::parse)?,
            reason: object.required("reason")?.parsed(parse_reason)?,
            subject_digest: digest.map(|digest| digest.parsed(parse_digest)).transpose()?,
        })
    }
}

impl Withdrawal {
    pub fn of(request: SignedRequest) -> Result<Self, ParseError> {
        let body = WithdrawBody::parse(request.payload.as_bytes())?;
        Ok(Self { request, body })
    }

    /// Reads a withdrawal as it is stored.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::of(SignedRequest::parse(bytes)?)
    }
}
