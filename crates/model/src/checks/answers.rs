//! A server's answers as its client reads them.

use std::fmt::Debug;

use countersign_api::{
    answers::{
        AssetsResponse, ChainResponse, ChangedResponse, FilesToSignResponse, PendingResponse, PingResponse,
        ProposedResponse, RevokedResponse, SignedResponse, ToldError, VetoedResponse,
    },
    catalogue::{KeyPendingResponse, KeyResponse, KeySignedResponse, ProjectsResponse, ReleasesResponse},
};
use countersign_core::values::json::ParseError;
use serde::Serialize;

use super::{
    history::check_chain,
    promises::{assert_no_duplicates, assert_path, assert_shown},
};

pub fn check(data: &[u8]) {
    read(data, ProposedResponse::parse, |answer| assert_path(&answer.project_id));
    read(data, SignedResponse::parse, |_| ());
    read(data, FilesToSignResponse::parse, |answer| answer.files.keys().for_each(assert_path));
    read(data, ChainResponse::parse, |answer| check_chain(&answer.history));
    read(data, PendingResponse::parse, |answer| answer.file_paths.iter().for_each(assert_path));
    read(data, AssetsResponse::parse, |answer| assert_path(&answer.index_file_path));
    read(data, ReleasesResponse::parse, |answer| {
        answer.releases.iter().for_each(|release| assert_path(&release.index_path));
    });
    read(data, ProjectsResponse::parse, |answer| answer.projects.iter().for_each(assert_path));
    read(data, KeyResponse::parse, |_| ());
    read(data, KeySignedResponse::parse, |_| ());
    read(data, KeyPendingResponse::parse, |answer| {
        answer.pending.iter().for_each(|waiting| assert_path(&waiting.file_path));
    });
    read(data, RevokedResponse::parse, |_| ());
    read(data, ChangedResponse::parse, |_| ());
    read(data, VetoedResponse::parse, |_| ());
    read(data, PingResponse::parse, |_| ());
    if ToldError::parse(data).is_some() {
        assert_no_duplicates(data);
    }
}

/// The client reads what the server writes.
fn read<T: PartialEq + Debug + Serialize>(
    data: &[u8],
    parse: fn(&[u8]) -> Result<T, ParseError>,
    check: impl Fn(&T),
) {
    let answer = match parse(data) {
        Ok(answer) => answer,
        Err(error) => return assert_shown(&error),
    };
    assert_no_duplicates(data);
    check(&answer);
    let written = serde_json::to_vec(&answer).expect("answers can be written");
    assert_eq!(parse(&written).as_ref(), Ok(&answer));
}
