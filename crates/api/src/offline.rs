//! The files in which requests and signatures travel between a computer with the key and one with the network.

use std::collections::BTreeMap;

use countersign_core::documents::statement::{SignedStatement, StatementKind};
use countersign_core::proof::to_sign::SigningRequest;
use countersign_core::proof::to_state::StatementRequest;
use countersign_core::values::json::{self, Field, FromField as _, Json, ParseError};
use serde::Serialize;

use crate::requests::SignaturesBody;

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
