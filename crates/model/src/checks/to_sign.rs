//! The files of `sign --export` and `sign --detached`, and what a signer can sign of the former (D34), or a master veto
//! (D138).

use std::collections::BTreeMap;

use countersign_api::offline::{parse_requests, parse_signatures, write_requests, write_signatures};
use countersign_core::{
    documents::{
        layout,
        statement::{StatementKind, Veto},
    },
    proof::{
        to_sign::{SigningRequest, ToSign},
        to_state::{StatementRequest, ToState, ToStateError, update_of},
    },
    values::{digest::Sha512, key::SecretKey, time::Timestamp},
};
use countersign_explain::describe::describe;

use super::promises::{assert_path, assert_shown, check_document};

pub fn check(data: &[u8]) {
    if let Ok(bodies) = parse_signatures(data) {
        let written = write_signatures(&bodies);
        assert_eq!(parse_signatures(&written).as_ref(), Ok(&bodies));
    }
    let requests = check_document(data, parse_requests, |requests: &Vec<_>| write_requests(requests));
    requests.into_iter().flatten().for_each(|request| check_request(&request));
}

fn check_request(request: &SigningRequest) {
    assert_path(&request.path);
    let to_sign = match request.check() {
        Ok(to_sign) => to_sign,
        Err(error) => return assert_shown(&error),
    };
    assert!(layout::signable(&request.path).is_some(), "only an index or a proposal is signed");
    let project = to_sign.project();
    assert!(request.path.is_inside(project), "{} is outside of {project}", request.path);
    let files = request.to_files(project, &BTreeMap::new()).expect("what can be signed is sound");
    let shown = describe(&files, &request.path).expect("what can be signed is described");
    let shown = shown.expect("what can be signed is there");
    assert!(shown.missing().is_subset(&to_sign.accepted_signers()));
    assert!(shown.missing().is_disjoint(&shown.signed()));
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_sign.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    assert!(body.signatures.keys().eq(request.files.keys()), "every file is signed, and no other");
    for (path, signature) in &body.signatures {
        let digest = Sha512::of(request.files[path].as_bytes());
        assert!(key.public_key().verify(&digest, signature).is_ok());
    }
    check_veto(request, &to_sign);
}

/// Checks that only a veto of this proposal is signed as one.
fn check_veto(request: &SigningRequest, to_sign: &ToSign) {
    let check = |text: String| -> Result<ToState, ToStateError> {
        let (kind, subject, collected) = (StatementKind::Veto, request.clone(), Default::default());
        let request = StatementRequest { kind, subject, text, collected, waits_until: None };
        request.check_text(to_sign.clone())
    };
    for shown in request.files.values() {
        assert!(check(shown.clone()).is_err(), "what is proposed is no veto");
    }
    let chain = match update_of(to_sign) {
        Ok(chain) => chain,
        Err(error) => return assert_shown(&error),
    };
    let veto = Veto {
        veto: "no".to_owned(),
        project_id: to_sign.project().clone(),
        signers_file_digest: *to_sign.digest(),
        previous: chain.last().digest,
        timestamp: Timestamp::from_unix_seconds(1_770_000_000).expect("in the range of timestamps"),
    };
    let text = |veto: &Veto| String::from_utf8(veto.write()).expect("a written veto is UTF-8");
    let to_veto = check(text(&veto)).expect("it is a veto of this proposal");
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_veto.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    assert_eq!((body.file_path, body.text), (request.path.clone(), text(&veto)));
    let others = [
        Veto { signers_file_digest: Sha512::of(b""), ..veto.clone() },
        Veto { previous: Sha512::of(b""), ..veto.clone() },
        Veto { project_id: request.path.clone(), ..veto },
    ];
    assert!(others.iter().all(|other| check(text(other)).is_err()));
}
