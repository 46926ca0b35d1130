//! The veto, the agreement that a rotation waits by (D131, D135), and the files of `veto --export` and `veto --detached`
//! (D176).

use countersign_api::offline::{
    parse_requests, parse_revocation_requests, parse_veto_requests, parse_vetoes, write_veto_requests,
    write_vetoes,
};
use countersign_core::{
    documents::{agreement::Agreement, veto::Veto},
    proof::to_veto::{CarriedVeto, ToVeto},
    values::{digest::Sha512, key::SecretKey},
};

use super::promises::{assert_path, assert_shown, check_document};

pub fn check(data: &[u8]) {
    if let Some(veto) = check_document(data, Veto::parse, Veto::write) {
        assert!((1..=1_000).contains(&veto.veto.chars().count()));
        assert!(data.len() <= 16 * 1024);
        assert_path(&veto.project_id);
    }
    check_document(data, Agreement::parse, Agreement::write);
    if let Ok(bodies) = parse_vetoes(data) {
        assert_eq!(parse_vetoes(&write_vetoes(&bodies)).as_ref(), Ok(&bodies));
        bodies.iter().for_each(|body| assert_path(&body.file_path));
    }
    let requests =
        check_document(data, parse_veto_requests, |requests: &Vec<_>| write_veto_requests(requests));
    let Some(requests) = requests else { return };
    assert!(parse_requests(data).is_err() && parse_revocation_requests(data).is_err());
    requests.iter().for_each(check_request);
}

fn check_request(request: &CarriedVeto) {
    assert_path(&request.proposal.path);
    let Ok(to_sign) = request.proposal.check() else { return };
    let to_veto = match ToVeto::check(&to_sign, request.veto.clone(), &request.collected) {
        Ok(to_veto) => to_veto,
        Err(error) => return assert_shown(&error),
    };
    assert_eq!(to_veto.document.signers_file_digest, *to_sign.digest());
    assert!(to_veto.masters().next().is_some(), "only masters veto");
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_veto.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    assert_eq!(body.veto_json, request.veto, "what is shown is what is signed");
    assert!(key.public_key().verify(&Sha512::of(body.veto_json.as_bytes()), &body.signature).is_ok());
}
