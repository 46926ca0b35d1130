//! The bodies of requests (spec §4).

use std::fmt::Debug;

use countersign_api::requests::{AssetsBody, ProposeBody, SignaturesBody, SignedStatement, WithdrawBody};
use countersign_core::documents::statement::StatementKind;
use countersign_core::values::json::ParseError;

use super::promises::{assert_no_duplicates, assert_path, assert_shown};

pub fn check(data: &[u8]) {
    check_body(data, ProposeBody::parse, serde_json::to_vec);
    if let Some(body) = check_body(data, SignaturesBody::parse, serde_json::to_vec) {
        assert_path(&body.file_path);
        body.signatures.keys().for_each(assert_path);
    }
    for kind in [StatementKind::Revocation, StatementKind::Veto, StatementKind::Objection] {
        let parse = |data: &[u8]| SignedStatement::parse(kind, data);
        if let Some(body) = check_body(data, parse, serde_json::to_vec) {
            assert_path(&body.file_path);
        }
    }
    if let Some(body) = check_body(data, WithdrawBody::parse, serde_json::to_vec) {
        assert_path(&body.file_path);
        assert!((1..=1_000).contains(&body.reason.chars().count()));
    }
    check_body(data, AssetsBody::parse, serde_json::to_vec);
}

/// The server reads what a client writes.
fn check_body<T: PartialEq + Debug>(
    data: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, ParseError>,
    write: fn(&T) -> serde_json::Result<Vec<u8>>,
) -> Option<T> {
    let body = parse(data).inspect_err(assert_shown).ok()?;
    assert_no_duplicates(data);
    let again = parse(&write(&body).expect("bodies can be written")).expect("what we write can be read");
    assert_eq!(again, body);
    Some(body)
}
