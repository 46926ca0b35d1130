//! Signed requests as the server keeps them (D14), withdrawals among them (D122), and the marker of a repository (D38).

use countersign_core::{
    documents::{
        repository::{FORMAT, RepositoryMarker},
        signed_request::SignedRequest,
        withdrawal::Withdrawal,
    },
    values::time::Timestamp,
};

use super::promises::{assert_path, check_document};

pub fn check(data: &[u8]) {
    if let Some(request) = check_document(data, SignedRequest::parse, SignedRequest::write) {
        let time = Timestamp::parse(&request.timestamp).expect("a kept time is a time");
        assert_eq!(time.to_header(), request.timestamp);
        if let Ok(withdrawal) = Withdrawal::parse(data) {
            assert_eq!(withdrawal.request, request, "nothing of what was signed is lost");
            assert_path(&withdrawal.body.file_path);
            assert!((1..=1_000).contains(&withdrawal.body.reason.chars().count()));
        }
        if request.verify().is_ok() {
            let changed = SignedRequest { payload: format!("{} ", request.payload), ..request };
            assert!(changed.verify().is_err());
        }
    }
    if let Some(marker) = check_document(data, RepositoryMarker::parse, RepositoryMarker::write) {
        assert_eq!(marker.format, FORMAT);
    }
}
