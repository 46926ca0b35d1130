//! The files of a signing ceremony without a network: read back as written, and strictly.

use countersign_api::requests::{
    SignaturesBody, parse_requests, parse_signatures, parse_statement_requests, parse_statements,
    write_requests, write_signatures, write_statement_requests, write_statements,
};
use countersign_core::documents::statement::{StatementKind, StatementKind::Revocation, Veto};
use countersign_core::{proof::to_state::StatementRequest, values::digest::Sha512};
use countersign_testing::evidence::{Past, founded, good, noon, revocation_document, rotated, signed_by};
use countersign_testing::signing::{index_request, proposal_of, sign};
use countersign_testing::{INDEX, PROJECT, alice, bob, carol, dave, path, revocation_text, signers};

/// A third signers file, proposed to the two before.
fn third() -> Past {
    let third = signers("2026-01-03T00:00:00Z").artifact(1, [&carol()]).admin(1, [&carol()]);
    rotated(PROJECT).then(&third, &[&alice(), &carol()])
}

#[test]
fn requests_read_back_as_they_were_written() {
    let mut release = index_request(&good().index);
    release.collected = good().signatures;
    let requests = vec![release, proposal_of(&founded(PROJECT)), proposal_of(&third())];
    for requests in [Vec::new(), requests] {
        let bytes = write_requests(&requests);
        assert_eq!(parse_requests(&bytes).as_ref(), Ok(&requests));
        assert!(bytes.ends_with(b"}\n"));
    }
}

#[test]
fn requests_and_signatures_are_read_strictly() {
    #[track_caller]
    fn assert_strict(text: &str, is_read: impl Fn(&[u8]) -> bool, changes: &[(&str, &str)]) {
        let of_both = [
            ("\"version\": 1", "\"version\": 2"),
            ("\"version\": 1,", "\"version\": 1, \"extra\": 1,"),
            ("\"file_path\"", "\"file_path\": \"x\", \"file_path\""),
        ];
        for (from, to) in of_both.iter().chain(changes) {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            assert!(!is_read(changed.as_bytes()), "{to}");
        }
    }
    let request = index_request(&good().index);
    let text = String::from_utf8(write_requests(std::slice::from_ref(&request))).expect("text");
    let changes = [
        ("\"version\": 1,", ""),
        ("\"file_path\"", "\"extra\": 1, \"file_path\""),
        ("\"collected\"", "\"signed\""),
        ("\"file_path\": \"https/github.com/443", "\"file_path\": \"https/github.com"),
        (
            "\"https/github.com/443/acme/app/releases/tag/v1/svc.index.json\": ",
            "\"https/github.com/acme/app/releases/tag/v1/svc.index.json\": ",
        ),
        ("\"files\": {", "\"files\": {\"../x\": \"\","),
        ("\"files\": {", "\"files\": {\"x\": 1,"),
    ];
    assert_strict(&text, |bytes| parse_requests(bytes).is_ok(), &changes);
    let (submission, _) = sign(&request.check().expect("an index"), &alice());
    let text = String::from_utf8(write_signatures(&[submission])).expect("text");
    assert_strict(&text, |bytes| parse_signatures(bytes).is_ok(), &[("\"public_key\"", "\"key\"")]);
}

#[test]
fn signatures_read_back_as_they_were_written() {
    let (release, _) = sign(&index_request(&good().index).check().expect("an index"), &alice());
    let (proposal, _) = sign(&proposal_of(&third()).check().expect("a proposal"), &bob());
    let bodies: Vec<SignaturesBody> = vec![release, proposal];
    let bytes = write_signatures(&bodies);
    assert_eq!(parse_signatures(&bytes), Ok(bodies));
    // The two files of the signing ceremony are not taken for one another.
    assert!(parse_requests(&bytes).is_err());
    assert!(parse_signatures(&write_requests(&[index_request(&good().index)])).is_err());
}

#[test]
fn statements_read_back_as_they_were_written_and_are_not_taken_for_anything_else() {
    let (index, past) = (good().index, rotated(PROJECT));
    let revocation = revocation_text(&revocation_document(Some(Sha512::of(index.as_bytes()))));
    let revoke = StatementRequest::of_release(Revocation, path(INDEX), index, good().history, revocation);
    let veto = Veto {
        veto: "not by us".to_owned(),
        project_id: path(PROJECT),
        signers_file_digest: past.digest(1),
        previous: past.digest(0),
        timestamp: noon(),
    };
    let veto = StatementRequest {
        kind: StatementKind::Veto,
        subject: proposal_of(&past),
        text: String::from_utf8(veto.write()).expect("text"),
        ..revoke.clone()
    };
    for (request, other, by, co_signer) in
        [(revoke, StatementKind::Veto, alice(), bob()), (veto, Revocation, dave(), dave())]
    {
        let kind = request.kind;
        let request = StatementRequest { collected: signed_by(&request.text, &[&co_signer]), ..request };
        let to_state = request.check().expect("a statement");
        let body = to_state.sign(by.public_key(), |digest| Ok::<_, ()>(by.sign(digest))).expect("signed");
        let (requests, bodies) = (vec![request], vec![body]);
        let (request_bytes, body_bytes) =
            (write_statement_requests(kind, &requests), write_statements(kind, &bodies));
        assert_eq!(parse_statement_requests(kind, &request_bytes), Ok(requests));
        assert_eq!(parse_statements(kind, &body_bytes), Ok(bodies));
        for bytes in [&request_bytes, &body_bytes] {
            assert!(parse_requests(bytes).is_err() && parse_signatures(bytes).is_err());
            assert!(
                parse_statement_requests(other, bytes).is_err() && parse_statements(other, bytes).is_err()
            );
        }
        assert!(parse_statements(kind, &request_bytes).is_err());
        assert!(parse_statement_requests(kind, &body_bytes).is_err());
    }
}
