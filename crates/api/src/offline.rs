//! The files in which requests and signatures travel between a computer with the key and one with the network.

use std::collections::BTreeMap;

use countersign_core::{
    documents::{revocation::RevokeBody, veto::VetoBody},
    proof::{to_revoke::RevocationRequest, to_sign::SigningRequest, to_veto::CarriedVeto},
    values::json::{self, Field, FromField as _, Json, ParseError},
};
use serde::Serialize;

use crate::requests::SignaturesBody;

const VERSION: u64 = 1;
const REQUESTS: &str = "signing_requests";
const SIGNATURES: &str = "signatures";
const REVOCATION_REQUESTS: &str = "revocation_requests";
const REVOCATIONS: &str = "revocations";
const VETO_REQUESTS: &str = "veto_requests";
const VETOES: &str = "vetoes";

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

/// The file that `veto --export` writes.
pub fn parse_veto_requests(bytes: &[u8]) -> Result<Vec<CarriedVeto>, ParseError> {
    parse_list(bytes, VETO_REQUESTS, CarriedVeto::parse_field)
}

pub fn write_veto_requests(requests: &[CarriedVeto]) -> Vec<u8> {
    write_list(VETO_REQUESTS, requests)
}

/// The file that `veto --detached` writes.
pub fn parse_vetoes(bytes: &[u8]) -> Result<Vec<VetoBody>, ParseError> {
    parse_list(bytes, VETOES, VetoBody::parse_field)
}

pub fn write_vetoes(vetoes: &[VetoBody]) -> Vec<u8> {
    write_list(VETOES, vetoes)
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
