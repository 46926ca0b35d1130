//! The files of `revoke --export` and `revoke --detached`, and what a revoker or an objector can sign of a release that a
//! server shows (D34).

use countersign_api::offline::{
    parse_requests, parse_revocation_requests, parse_revocations, write_revocation_requests,
    write_revocations,
};
use countersign_core::{
    documents::{layout, objections::Objection, revocation::Revocation},
    proof::{to_object::ObjectionRequest, to_revoke::RevocationRequest},
    values::{digest::Sha512, key::SecretKey, time::Timestamp},
};

use super::promises::{assert_path, assert_shown, check_document};

pub fn check(data: &[u8]) {
    if let Ok(bodies) = parse_revocations(data) {
        let written = write_revocations(&bodies);
        assert_eq!(parse_revocations(&written).as_ref(), Ok(&bodies));
        bodies.iter().for_each(|body| assert_path(&body.file_path));
    }
    let requests = check_document(data, parse_revocation_requests, |requests: &Vec<_>| {
        write_revocation_requests(requests)
    });
    let Some(requests) = requests else { return };
    assert!(parse_requests(data).is_err(), "no file asks for signatures of two kinds");
    requests.iter().for_each(check_request);
    requests.iter().for_each(check_objection);
}

fn check_request(request: &RevocationRequest) {
    assert_path(&request.path);
    let to_revoke = match request.check() {
        Ok(to_revoke) => to_revoke,
        Err(error) => return assert_shown(&error),
    };
    assert!(layout::signable(&request.path).is_some(), "only an index is revoked");
    assert_eq!(to_revoke.path(), &request.path);
    assert!(request.path.is_inside(&to_revoke.index.project_id));
    assert_eq!(to_revoke.document.subject_digest, Some(Sha512::of(request.index.as_bytes())));
    assert!(request.collected.entries.is_empty() || !to_revoke.signed.is_empty(), "someone has begun");
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_revoke.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    assert_eq!(body.revocation_json, request.revocation, "what is shown is what is signed");
    assert!(key.public_key().verify(&Sha512::of(body.revocation_json.as_bytes()), &body.signature).is_ok());
    let refused = |change: &dyn Fn(&mut RevocationRequest)| {
        let mut changed = request.clone();
        change(&mut changed);
        assert!(changed.check().is_err());
    };
    refused(&|request| request.index.push(' '));
    refused(&|request| request.history = Default::default());
    refused(&|request| request.path = request.path.parent().expect("an index lies in a directory"));
    refused(&|request| request.revocation = request.index.clone());
}

/// Checks an objection to the same release, whose words can be anything.
fn check_objection(request: &RevocationRequest) {
    let objection = ObjectionRequest {
        path: request.path.clone(),
        index: request.index.clone(),
        history: request.history.clone(),
        text: Some(request.revocation.clone()),
        timestamp: Timestamp::from_unix_seconds(1_770_000_000).expect("in the range of timestamps"),
    };
    let taken_back = ObjectionRequest { text: None, ..objection.clone() };
    let to_object = match (objection.check(), taken_back.check()) {
        (Ok(to_object), taken_back) => {
            assert!(taken_back.is_ok());
            to_object
        }
        (Err(error), _) => return assert_shown(&error),
    };
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_object.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    let document = Objection::parse(body.objection_json.as_bytes()).expect("what is signed is an objection");
    assert_eq!(document.text.as_ref(), objection.text.as_ref(), "in the objector's own words");
    assert_eq!(document.subject_digest, Sha512::of(request.index.as_bytes()));
    assert!(Revocation::parse(body.objection_json.as_bytes()).is_err());
}
