//! A master is no oracle (D34, D138): what is not a veto of this proposal gets no signature.

use countersign_core::documents::{signatures::SignatureSet, statement::StatementKind, statement::Veto};
use countersign_core::proof::to_sign::SigningRequest;
use countersign_core::proof::to_state::{StatementRequest, ToState, ToStateError};
use countersign_core::values::digest::Sha512;
use countersign_testing::evidence::{Past, founders, noon, rotated, signed_by};
use countersign_testing::signing::{index_request, proposal_of};
use countersign_testing::{
    PENDING, PROJECT, alice, bob, carol, dave, documents::KINDS, mallory, path, signers,
};

fn proposal() -> SigningRequest {
    proposal_of(&rotated(PROJECT))
}

fn right() -> Veto {
    let past = rotated(PROJECT);
    Veto {
        veto: "not by us".to_owned(),
        project_id: path(PROJECT),
        signers_file_digest: past.digest(1),
        previous: past.digest(0),
        timestamp: noon(),
    }
}

fn text(document: &Veto) -> String {
    String::from_utf8(document.write()).expect("our documents are text")
}

/// The veto of what is shown, read apart from it.
fn check(of: &SigningRequest, text: String, collected: &SignatureSet) -> Result<ToState, ToStateError> {
    let (kind, subject, collected) = (StatementKind::Veto, of.clone(), collected.clone());
    let request = StatementRequest { kind, subject, text, collected, waits_until: None };
    let checked = request.check_text(of.check().expect("a release or a proposal"));
    assert_eq!(
        request.check().map_err(|error| error.to_string()).err(),
        checked.as_ref().err().map(ToString::to_string)
    );
    checked
}

#[track_caller]
fn refusal(of: &SigningRequest, text: String) -> ToStateError {
    check(of, text, &SignatureSet::default()).expect_err("it would be signed")
}

#[test]
fn a_veto_of_this_proposal_is_signed_and_nothing_but_it() {
    let (proposal, document) = (proposal(), text(&right()));
    let collected = signed_by(&document, &[&dave()]);
    let to_veto = check(&proposal, document.clone(), &collected).expect("a veto");
    assert_eq!(to_veto.accepted_signers(), [dave().public_key()].into());
    assert!(to_veto.signed.contains(&dave().public_key()));
    assert_eq!(to_veto.document.reason(), Some("not by us"));
    let body =
        to_veto.sign(dave().public_key(), |digest| Ok::<_, ()>(dave().sign(digest))).expect("a signature");
    assert_eq!((body.file_path.as_str(), &body.text), (PENDING, &document));
    let digest = Sha512::of(document.as_bytes());
    dave().public_key().verify(&digest, &body.signature).expect("over the document");
    // Signatures that do not verify are not shown as if they did.
    let forged = signed_by("another text", &[&dave()]);
    assert!(check(&proposal, document, &forged).expect("a veto").signed.is_empty());
}

#[test]
fn what_is_no_veto_of_this_proposal_is_not_signed() {
    let (proposal, other) = (proposal(), Sha512::of(b"another"));
    for wrong in [
        Veto { project_id: path("https/github.com/443/acme/apps"), ..right() },
        Veto { signers_file_digest: other, ..right() },
        Veto { previous: other, ..right() },
    ] {
        assert!(matches!(refusal(&proposal, text(&wrong)), ToStateError::OtherProposal));
    }
    for kind in KINDS.iter().filter(|kind| kind.name != "veto") {
        let refused = refusal(&proposal, kind.example_text());
        assert!(matches!(refused, ToStateError::Document { .. }), "{}: {refused:?}", kind.name);
        assert!(refused.to_string().contains("it is not a veto"), "{refused}");
    }
    assert!(matches!(refusal(&proposal, "2026##x##{}".to_owned()), ToStateError::Document { .. }));
}

#[test]
fn only_an_update_of_signers_with_masters_is_vetoed() {
    let release = index_request(&countersign_testing::evidence::good().index);
    assert!(matches!(refusal(&release, text(&right())), ToStateError::NotAnUpdate));
    let first = Past::of(PROJECT).then(&founders(), &[&alice(), &bob(), &carol(), &dave()]);
    let first = proposal_of(&first);
    assert!(matches!(refusal(&first, text(&right())), ToStateError::NotAnUpdate));
    let lone = Past::of(PROJECT)
        .then(&signers("2026-01-01T00:00:00Z").artifact(1, [&mallory()]), &[&mallory()])
        .then(&signers("2026-01-02T00:00:00Z").artifact(1, [&mallory()]), &[&mallory()]);
    let lone = proposal_of(&lone);
    assert!(matches!(refusal(&lone, text(&right())), ToStateError::NoMasters));
}
