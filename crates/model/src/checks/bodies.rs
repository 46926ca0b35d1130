//! The bodies of requests (spec §4).

use std::fmt::Debug;

use countersign_api::requests::{
    AssetsBody, ObjectBody, ProposeBody, RevokeBody, SignaturesBody, VetoBody, WithdrawBody,
};
use countersign_core::values::json::ParseError;

use super::promises::{assert_no_duplicates, assert_path, assert_shown};

pub fn check(data: &[u8]) {
    check_body(data, ProposeBody::parse, serde_json::to_vec);
    if let Some(body) = check_body(data, SignaturesBody::parse, serde_json::to_vec) {
        assert_path(&body.file_path);
        body.signatures.keys().for_each(assert_path);
    }
    if let Some(body) = check_body(data, RevokeBody::parse, serde_json::to_vec) {
        assert_path(&body.file_path);
    }
    if let Some(body) = check_body(data, WithdrawBody::parse, serde_json::to_vec) {
        assert_path(&body.file_path);
        assert!((1..=1_000).contains(&body.reason.chars().count()));
    }
    if let Some(body) = check_body(data, ObjectBody::parse, serde_json::to_vec) {
        assert_path(&body.file_path);
    }
    if let Some(body) = check_body(data, VetoBody::parse, serde_json::to_vec) {
        assert_path(&body.file_path);
    }
    check_body(data, AssetsBody::parse, serde_json::to_vec);
}

/// The server reads what a client writes.
fn check_body<T: PartialEq + Debug>(
    data: &[u8],
    parse: fn(&[u8]) -> Result<T, ParseError>,
    write: fn(&T) -> serde_json::Result<Vec<u8>>,
) -> Option<T> {
    let body = parse(data).inspect_err(assert_shown).ok()?;
    assert_no_duplicates(data);
    let again = parse(&write(&body).expect("bodies can be written")).expect("what we write can be read");
    assert_eq!(again, body);
    Some(body)
}
