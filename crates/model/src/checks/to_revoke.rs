//! The files of `revoke --export` and `revoke --detached`, and what a revoker or an objector can sign of a release that a
//! server shows (D34).

use countersign_api::offline::{
    parse_requests, parse_statement_requests, parse_statements, write_statement_requests, write_statements,
};
use countersign_core::documents::layout;
use countersign_core::documents::statement::{Objection, Revocation, Statement, StatementKind};
use countersign_core::proof::to_state::StatementRequest;
use countersign_core::values::digest::Sha512;
use countersign_core::values::key::SecretKey;
use countersign_core::values::time::Timestamp;

use super::promises::{assert_path, assert_shown, check_document};

const KIND: StatementKind = StatementKind::Revocation;

pub fn check(data: &[u8]) {
    if let Ok(bodies) = parse_statements(KIND, data) {
        let written = write_statements(KIND, &bodies);
        assert_eq!(parse_statements(KIND, &written).as_ref(), Ok(&bodies));
        bodies.iter().for_each(|body| assert_path(&body.file_path));
    }
    let parse = |data: &[u8]| parse_statement_requests(KIND, data);
    let write = |requests: &Vec<_>| write_statement_requests(KIND, requests);
    let Some(requests) = check_document(data, parse, write) else { return };
    assert!(parse_requests(data).is_err(), "no file asks for signatures of two kinds");
    requests.iter().for_each(check_request);
    requests.iter().for_each(check_objection);
}

fn check_request(request: &StatementRequest) {
    let path = request.path();
    assert_path(path);
    let to_revoke = match request.check() {
        Ok(to_revoke) => to_revoke,
        Err(error) => return assert_shown(&error),
    };
    assert!(layout::signable(path).is_some(), "only an index is revoked");
    assert_eq!(to_revoke.path(), path);
    assert!(path.is_inside(to_revoke.subject.project()));
    let index = &request.subject.files[path];
    let Statement::Revocation(document) = &to_revoke.document else { panic!("it is no revocation") };
    assert_eq!(document.subject_digest, Some(Sha512::of(index.as_bytes())));
    assert!(request.collected.entries.is_empty() || !to_revoke.signed.is_empty(), "someone has begun");
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_revoke.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    assert_eq!(body.text, request.text, "what is shown is what is signed");
    assert!(key.public_key().verify(&Sha512::of(body.text.as_bytes()), &body.signature).is_ok());
    let refused = |change: &dyn Fn(&mut StatementRequest)| {
        let mut changed = request.clone();
        change(&mut changed);
        assert!(changed.check().is_err());
    };
    refused(&|request| request.subject.files.values_mut().for_each(|index| index.push(' ')));
    refused(&|request| request.subject.history = Default::default());
    refused(&|request| {
        request.subject.path = request.path().parent().expect("an index lies in a directory");
    });
    refused(&|request| request.text = request.subject.files[request.path()].clone());
}

/// The same release, and words of the objector that can be anything.
fn check_objection(request: &StatementRequest) {
    let (path, subject) = (request.path(), &request.subject);
    let index = &subject.files[path];
    let objection = |text: Option<String>| {
        let document = Objection {
            text,
            subject_digest: Sha512::of(index.as_bytes()),
            timestamp: Timestamp::from_unix_seconds(1_770_000_000).expect("in the range of timestamps"),
        };
        let text = String::from_utf8(document.write()).expect("a written objection is UTF-8");
        StatementRequest::of_release(
            StatementKind::Objection,
            path.clone(),
            index.clone(),
            subject.history.clone(),
            text,
        )
    };
    let to_object = match (objection(Some(request.text.clone())).check(), objection(None).check()) {
        (Ok(to_object), taken_back) => {
            assert!(taken_back.is_ok());
            to_object
        }
        (Err(error), _) => return assert_shown(&error),
    };
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_object.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    let document = Objection::parse(body.text.as_bytes()).expect("what is signed is an objection");
    assert_eq!(document.text.as_ref(), Some(&request.text), "in the objector's own words");
    assert_eq!(document.subject_digest, Sha512::of(index.as_bytes()));
    assert!(Revocation::parse(body.text.as_bytes()).is_err());
}
