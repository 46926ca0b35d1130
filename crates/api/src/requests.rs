//! Bodies of requests (spec §4). Unknown fields are ignored, duplicates refused (D5).

use std::collections::BTreeMap;

use countersign_core::documents::{fields::parse_key, statement::StatementKind};
pub use countersign_core::documents::{signed_request::WithdrawBody, statement::SignedStatement};
pub use countersign_core::rules::decide::sign::SignaturesBody;
use countersign_core::values::json::{Field, FromField as _, Json, ParseError};
use countersign_core::values::{json, key::PublicKey, key::Signature, path::RepoPath};
use countersign_core::{json_fields, proof::to_sign::SigningRequest, proof::to_state::StatementRequest};
use serde::Serialize;

/// The body of `register_repo` and of `update_signers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ProposeBody {
    /// The URL at which the signers file is published: on a branch of a code forge, or on a file server.
    #[schema(format = "uri")]
    pub signers_file_url: String,
    /// The submitter: the key that signs the request.
    #[serde(serialize_with = "PublicKey::serialize_base64")]
    pub public_key: PublicKey,
}

/// Where a release is published. Exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub enum AssetsBody {
    /// The page of a release on a code forge.
    #[serde(rename = "forge_release_url")]
    Release(String),
    /// Checksums files, all in one directory of one server.
    #[serde(rename = "csum_files")]
    Checksums(Vec<String>),
}

/// One signature on a revocation document.
// Only the reference has this type and the two that follow: [`SignedStatement`] reads and writes the bodies.
#[derive(Debug, utoipa::ToSchema)]
pub struct RevokeBody {
    /// The complete index that is revoked.
    pub file_path: RepoPath,
    /// The exact text of the revocation document, which is JSON itself.
    pub revocation_json: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// The revoker.
    pub public_key: PublicKey,
}

/// One signature on a veto.
#[derive(Debug, utoipa::ToSchema)]
pub struct VetoBody {
    /// The pending signers file.
    pub file_path: RepoPath,
    /// The exact text of the veto, which is JSON itself.
    pub veto_json: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// The master.
    pub public_key: PublicKey,
}

/// One objection, handed in.
#[derive(Debug, utoipa::ToSchema)]
pub struct ObjectBody {
    /// The index of the release.
    pub file_path: RepoPath,
    /// The exact text of the objection, which is JSON itself.
    pub objection_json: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// The objector, who may be another than the caller.
    pub public_key: PublicKey,
}

/// What a builder states, handed in.
#[derive(Debug, utoipa::ToSchema)]
pub struct RebuildBody {
    /// The index of the release.
    pub file_path: RepoPath,
    /// The exact text of the rebuild, which is JSON itself.
    pub rebuild_json: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// The builder, who may be another than the caller.
    pub public_key: PublicKey,
}

json_fields!(body ProposeBody { signers_file_url, public_key: with(parse_key) });

impl AssetsBody {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let given = |name| object.optional(name).filter(|field| !field.is_null());
        match (given("forge_release_url"), given("csum_files")) {
            (Some(_), Some(_)) => {
                Err(ParseError::new("", "forge_release_url and csum_files are mutually exclusive"))
            }
            (None, None) => Err(ParseError::new("", "one of forge_release_url and csum_files is required")),
            (Some(url), None) => Ok(Self::Release(String::parse_field(&url)?)),
            (None, Some(list)) => Ok(Self::Checksums(Vec::parse_field(&list)?)),
        }
    }
}

// The files in which requests and signatures travel between a computer with the key and one with the network.

const VERSION: u64 = 1;
const REQUESTS: &str = "signing_requests";
const SIGNATURES: &str = "signatures";

/// The file that `sign --export` writes.
pub fn parse_requests(bytes: &[u8]) -> Result<Vec<SigningRequest>, ParseError> {
    parse_list(bytes, REQUESTS, SigningRequest::parse_field)
}

pub fn write_requests(requests: &[SigningRequest]) -> Vec<u8> {
    write_list(REQUESTS, requests)
}

/// The file that `sign --detached` writes.
pub fn parse_signatures(bytes: &[u8]) -> Result<Vec<SignaturesBody>, ParseError> {
    parse_list(bytes, SIGNATURES, SignaturesBody::parse_field)
}

pub fn write_signatures(signatures: &[SignaturesBody]) -> Vec<u8> {
    write_list(SIGNATURES, signatures)
}

/// The file that `revoke --export` or `veto --export` writes.
pub fn parse_statement_requests(
    kind: StatementKind,
    bytes: &[u8],
) -> Result<Vec<StatementRequest>, ParseError> {
    parse_list(bytes, statement_lists(kind).0, |field| StatementRequest::parse_field(kind, field))
}

pub fn write_statement_requests(kind: StatementKind, requests: &[StatementRequest]) -> Vec<u8> {
    write_list(statement_lists(kind).0, requests)
}

/// The file that `revoke --detached` or `veto --detached` writes.
pub fn parse_statements(kind: StatementKind, bytes: &[u8]) -> Result<Vec<SignedStatement>, ParseError> {
    parse_list(bytes, statement_lists(kind).1, |field| SignedStatement::parse_field(kind, field))
}

pub fn write_statements(kind: StatementKind, statements: &[SignedStatement]) -> Vec<u8> {
    write_list(statement_lists(kind).1, statements)
}

/// The names of the lists of requests and of signed statements.
fn statement_lists(kind: StatementKind) -> (&'static str, &'static str) {
    match kind {
        StatementKind::Revocation => ("revocation_requests", "revocations"),
        StatementKind::Veto => ("veto_requests", "vetoes"),
        StatementKind::Objection => ("objection_requests", "objections"),
        StatementKind::Rebuild => ("rebuild_requests", "rebuilds"),
    }
}

fn parse_list<T>(
    bytes: &[u8],
    name: &str,
    parse: impl Fn(&Field<'_>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    let json = Json::parse(bytes)?;
    let object = json.root().object(&["version", name])?;
    object.require_version(VERSION)?;
    object.required(name)?.list(parse)
}

fn write_list(name: &str, list: &[impl Serialize]) -> Vec<u8> {
    json::write_versioned(VERSION, &BTreeMap::from([(name, list)]))
}
