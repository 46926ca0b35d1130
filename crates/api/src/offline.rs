//! The files in which requests and signatures travel between a computer with the key and one with the network.

use std::collections::BTreeMap;

use countersign_core::{
    documents::revocation::RevokeBody,
    proof::{to_revoke::RevocationRequest, to_sign::SigningRequest},
    values::json::{self, Field, Json, ParseError},
};
use serde::Serialize;

use crate::requests::SignaturesBody;

const VERSION: u64 = 1;
const REQUESTS: &str = "signing_requests";
const SIGNATURES: &str = "signatures";
const REVOCATION_REQUESTS: &str = "revocation_requests";
const REVOCATIONS: &str = "revocations";

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

/// The file that `revoke --export` writes.
pub fn parse_revocation_requests(bytes: &[u8]) -> Result<Vec<RevocationRequest>, ParseError> {
    parse_list(bytes, REVOCATION_REQUESTS, RevocationRequest::parse_field)
}

pub fn write_revocation_requests(requests: &[RevocationRequest]) -> Vec<u8> {
    write_list(REVOCATION_REQUESTS, requests)
}

/// The file that `revoke --detached` writes.
pub fn parse_revocations(bytes: &[u8]) -> Result<Vec<RevokeBody>, ParseError> {
    parse_list(bytes, REVOCATIONS, RevokeBody::parse_field)
}

pub fn write_revocations(revocations: &[RevokeBody]) -> Vec<u8> {
    write_list(REVOCATIONS, revocations)
}

fn parse_list<T>(
    bytes: &[u8],
    name: &str,
    parse: impl Fn(&Field<'_>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    let json = Json::parse(bytes)?;
    let object = json.root().object(&["version", name])?;
    object.require_version(VERSION)?;
    object.required(name)?.array()?.iter().map(parse).collect()
}

fn write_list(name: &str, list: &[impl Serialize]) -> Vec<u8> {
    json::write_versioned(VERSION, &BTreeMap::from([(name, list)]))
}
