//! The veto, the agreement that a rotation waits by (D131, D135), and the files of `veto --export` and `veto --detached`
//! (D176).

use countersign_api::offline::{
    parse_requests, parse_statement_requests, parse_statements, write_statement_requests, write_statements,
};
use countersign_core::documents::agreement::Agreement;
use countersign_core::documents::statement::{Statement, StatementKind, Veto};
use countersign_core::proof::to_state::StatementRequest;
use countersign_core::values::digest::Sha512;
use countersign_core::values::key::SecretKey;

use super::promises::{assert_path, assert_shown, check_document};

const KIND: StatementKind = StatementKind::Veto;

pub fn check(data: &[u8]) {
    if let Some(veto) = check_document(data, Veto::parse, Veto::write) {
        assert!((1..=1_000).contains(&veto.veto.chars().count()));
        assert!(data.len() <= 16 * 1024);
        assert_path(&veto.project_id);
    }
    check_document(data, Agreement::parse, Agreement::write);
    if let Ok(bodies) = parse_statements(KIND, data) {
        assert_eq!(parse_statements(KIND, &write_statements(KIND, &bodies)).as_ref(), Ok(&bodies));
        bodies.iter().for_each(|body| assert_path(&body.file_path));
    }
    let parse = |data: &[u8]| parse_statement_requests(KIND, data);
    let write = |requests: &Vec<_>| write_statement_requests(KIND, requests);
    let Some(requests) = check_document(data, parse, write) else { return };
    let of_revocations = parse_statement_requests(StatementKind::Revocation, data);
    assert!(parse_requests(data).is_err() && of_revocations.is_err());
    requests.iter().for_each(check_request);
}

fn check_request(request: &StatementRequest) {
    assert_path(request.path());
    let Ok(to_sign) = request.subject.check() else { return };
    let to_veto = match request.check_text(to_sign) {
        Ok(to_veto) => to_veto,
        Err(error) => return assert_shown(&error),
    };
    let Statement::Veto(document) = &to_veto.document else { panic!("it is no veto") };
    assert_eq!(document.signers_file_digest, *to_veto.subject.digest());
    assert!(!to_veto.accepted_signers().is_empty(), "only masters veto");
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_veto.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    assert_eq!(body.text, request.text, "what is shown is what is signed");
    assert!(key.public_key().verify(&Sha512::of(body.text.as_bytes()), &body.signature).is_ok());
}
