//! The offline bundle: all evidence for one release in one document (docs/bundle.md).

use serde::Serialize;

use crate::{
    documents::{
        fields::{parse_digest, parse_path},
        history::History,
        signatures::SignatureSet,
        signed_request::SignedRequest,
    },
    proof::{
        staple::Staple,
        verify::{Evidence, RevocationEvidence},
    },
    values::{
        bounds::BUNDLE_BYTES,
        json::{self, Field, Json, ParseError},
        time::Timestamp,
    },
};

const VERSION: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bundle {
    /// The time of the commit that the evidence is of, as the server says. Nothing proves it.
    pub bundled_at: Timestamp,
    #[serde(flatten)]
    pub evidence: Evidence,
    /// The staple that the log made then, if there is one.
    pub staple: Option<Staple>,
}

impl Bundle {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() > BUNDLE_BYTES {
            return Err(ParseError::new("", format!("a bundle has at most {BUNDLE_BYTES} bytes")));
        }
        Self::parse_field(&Json::parse(bytes)?.root())
    }

    pub fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.object(&[
            "version",
            "bundled_at",
            "index_path",
            "index",
            "signatures",
            "signers_file_digest",
            "signers_history",
            "revocation",
            "staple",
        ])?;
        object.require_version(VERSION)?;
        let revocation = object.required("revocation")?;
        Ok(Self {
            bundled_at: object.required("bundled_at")?.parsed(Timestamp::parse)?,
            evidence: Evidence {
                path: parse_path(&object.required("index_path")?)?,
                index: object.required("index")?.string()?.to_owned(),
                signatures: SignatureSet::parse_field(&object.required("signatures")?)?,
                governed_by: object.required("signers_file_digest")?.parsed(parse_digest)?,
                history: History::parse_field(&object.required("signers_history")?)?,
                revocation: revocation.nullable(parse_revocation)?,
            },
            staple: object.required("staple")?.nullable(Staple::parse_field)?,
        })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write_versioned(VERSION, self)
    }
}

fn parse_revocation(field: &Field<'_>) -> Result<RevocationEvidence, ParseError> {
    let object = field.object(&["document", "signatures", "signers_file_digest", "request"])?;
    let request = object.required("request")?;
    Ok(RevocationEvidence {
        document: object.required("document")?.string()?.to_owned(),
        signatures: SignatureSet::parse_field(&object.required("signatures")?)?,
        governed_by: object.required("signers_file_digest")?.parsed(parse_digest)?,
        request: request.nullable(SignedRequest::parse_field)?,
    })
}
