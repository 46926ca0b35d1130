//! A master is no oracle (D34, D138): what is not a veto of this proposal gets no signature.

use countersign_core::{
    documents::{signatures::SignatureSet, veto::Veto},
    proof::{
        to_sign::ToSign,
        to_veto::{ToVeto, ToVetoError},
    },
    values::digest::Sha512,
};
use countersign_testing::{
    PENDING, PROJECT, alice, bob, carol, dave,
    documents::KINDS,
    evidence::{Past, founders, noon, rotated, signed_by},
    mallory, path, signers,
    signing::{index_request, proposal_of},
};

fn proposal() -> ToSign {
    proposal_of(&rotated(PROJECT)).check().expect("a proposal")
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

#[track_caller]
fn refusal(of: &ToSign, text: String) -> ToVetoError {
    ToVeto::check(of, text, &SignatureSet::default()).expect_err("it would be signed")
}

#[test]
fn a_veto_of_this_proposal_is_signed_and_nothing_but_it() {
    let (proposal, document) = (proposal(), text(&right()));
    let collected = signed_by(&document, &[&dave()]);
    let to_veto = ToVeto::check(&proposal, document.clone(), &collected).expect("a veto");
    assert_eq!(to_veto.masters().collect::<Vec<_>>(), [dave().public_key()]);
    assert!(to_veto.signed.contains(&dave().public_key()));
    let body =
        to_veto.sign(dave().public_key(), |digest| Ok::<_, ()>(dave().sign(digest))).expect("a signature");
    assert_eq!((body.file_path.as_str(), &body.veto_json), (PENDING, &document));
    let digest = Sha512::of(document.as_bytes());
    dave().public_key().verify(&digest, &body.signature).expect("over the document");
    // Signatures that do not verify are not shown as if they did.
    let forged = signed_by("another text", &[&dave()]);
    assert!(ToVeto::check(&proposal, document, &forged).expect("a veto").signed.is_empty());
}

#[test]
fn what_is_no_veto_of_this_proposal_is_not_signed() {
    let (proposal, other) = (proposal(), Sha512::of(b"another"));
    for wrong in [
        Veto { project_id: path("https/github.com/443/acme/apps"), ..right() },
        Veto { signers_file_digest: other, ..right() },
        Veto { previous: other, ..right() },
    ] {
        assert_eq!(refusal(&proposal, text(&wrong)), ToVetoError::OtherProposal);
    }
    for kind in KINDS.iter().filter(|kind| kind.name != "veto") {
        let refused = refusal(&proposal, kind.example_text());
        assert!(matches!(refused, ToVetoError::Document(_)), "{}: {refused:?}", kind.name);
    }
    assert!(matches!(refusal(&proposal, "2026##x##{}".to_owned()), ToVetoError::Document(_)));
}

#[test]
fn only_an_update_of_signers_with_masters_is_vetoed() {
    let release = index_request(&countersign_testing::evidence::good().index).check().expect("a release");
    assert_eq!(refusal(&release, text(&right())), ToVetoError::NotAnUpdate);
    let first = Past::of(PROJECT).then(&founders(), &[&alice(), &bob(), &carol(), &dave()]);
    let first = proposal_of(&first).check().expect("a first registration");
    assert_eq!(refusal(&first, text(&right())), ToVetoError::NotAnUpdate);
    let lone = Past::of(PROJECT)
        .then(&signers("2026-01-01T00:00:00Z").artifact(1, [&mallory()]), &[&mallory()])
        .then(&signers("2026-01-02T00:00:00Z").artifact(1, [&mallory()]), &[&mallory()]);
    let lone = proposal_of(&lone).check().expect("a proposal");
    assert_eq!(refusal(&lone, text(&right())), ToVetoError::NoMasters);
}
