//! Lies about a revocation. A forged one does not count as one, but nothing that it stands beside is believed either.

use countersign_core::values::{digest::Sha512, key::SecretKey};
use countersign_core::{proof::verify::Evidence, proof::verify::RevocationEvidence};
use countersign_testing::evidence::{
    Past, evidence, founders, good, index_path, index_text, release_index, revocation_by_request,
    revocation_document, revocation_of, revocation_with, rotated, signed_by,
};
use countersign_testing::{INDEX, PROJECT, alice, bob, carol, dave, key, mallory, path, revocation_text};

use super::{hostile_bundles::objection_text, vector::Vector, vector::bundle};

pub(super) fn all() -> Vec<Vector> {
    let other_subject = Some(Sha512::of(index_text(&release_index("v2")).as_bytes()));
    let of_other = revocation_document(other_subject);
    let mut misfiled = revocation_of(&good(), &[&alice()]);
    misfiled.signatures = signed_by(&revocation_text(&revocation_document(None)), &[&alice()]);
    let mut index_as_document = revocation_of(&good(), &[&alice()]);
    index_as_document.document = good().index;
    index_as_document.signatures = good().signatures;
    let mut objection_as_document = revocation_of(&good(), &[&alice()]);
    objection_as_document.document = objection_text(Sha512::of(good().index.as_bytes()));
    objection_as_document.signatures = signed_by(&objection_as_document.document, &[&alice()]);
    let mut of_unknown = revocation_of(&good(), &[&alice()]);
    of_unknown.governed_by = Sha512::of(b"nobody's");
    vec![
        bundle("revocation-by-a-stranger", beside(revocation_of(&good(), &[&mallory()]))),
        bundle("revocation-by-an-artifact-signer", beside(revocation_of(&good(), &[&carol()]))),
        bundle("revocation-that-nobody-signed", beside(revocation_of::<SecretKey>(&good(), &[]))),
        bundle("revocation-with-a-signature-on-another", beside(misfiled)),
        bundle("revocation-of-another-file", beside(revocation_with(&good(), of_other, &[&alice()]))),
        bundle(
            "revocation-replayed-from-another-file",
            beside(revocation_by_request(&good(), &alice(), &path(&index_path("v2")))),
        ),
        bundle(
            "revocation-that-names-nothing",
            beside(revocation_with(&good(), revocation_document(None), &[&alice()])),
        ),
        bundle(
            "revocation-with-the-request-of-another",
            beside(RevocationEvidence {
                request: revocation_by_request(&good(), &mallory(), &path(INDEX)).request,
                ..revocation_by_request(&good(), &alice(), &path(INDEX))
            }),
        ),
        bundle("revocation-with-a-changed-request", beside(redirected())),
        bundle("revocation-by-too-few", by_one_of_two()),
        bundle("revocation-of-two-with-the-request-of-one", for_two_by_one_request()),
        bundle("revocation-without-its-initiator", beside(without_initiator())),
        bundle("revocation-under-an-older-signers-file", under_older()),
        bundle("revocation-under-a-file-of-no-history", beside(of_unknown)),
        bundle("index-shown-as-revocation", beside(index_as_document)),
        bundle("objection-shown-as-revocation", beside(objection_as_document)),
    ]
}

/// The good release, with this beside it.
fn beside(revocation: RevocationEvidence) -> Evidence {
    Evidence { revocation: Some(revocation), ..good() }
}

fn redirected() -> RevocationEvidence {
    let mut revocation = revocation_by_request(&good(), &alice(), &path(&index_path("v2")));
    let request = revocation.request.as_mut().expect("a request");
    request.payload = request.payload.replace("/v2/", "/v1/");
    revocation
}

fn by_one_of_two() -> Evidence {
    let team = founders().revocation(2, [&carol(), &key(5)]);
    let past = Past::of(PROJECT).then(&team, &[&alice(), &bob(), &carol(), &dave(), &key(5)]);
    let shown = evidence(&past, INDEX, &release_index("v1"), &[&alice(), &bob()]);
    let revocation = revocation_of(&shown, &[&carol(), &alice(), &mallory()]);
    Evidence { revocation: Some(revocation), ..shown }
}

fn for_two_by_one_request() -> Evidence {
    let team = founders().revocation(2, [&carol(), &key(5)]);
    let past = Past::of(PROJECT).then(&team, &[&alice(), &bob(), &carol(), &dave(), &key(5)]);
    let shown = evidence(&past, INDEX, &release_index("v1"), &[&alice(), &bob()]);
    let mut revocation = revocation_by_request(&shown, &carol(), &path(INDEX));
    revocation.signatures = signed_by(&revocation.document, &[&carol(), &key(5)]);
    Evidence { revocation: Some(revocation), ..shown }
}

fn without_initiator() -> RevocationEvidence {
    let mut document = revocation_document(Some(Sha512::of(good().index.as_bytes())));
    document.initiator = Some(bob().public_key());
    revocation_with(&good(), document, &[&alice()])
}

fn under_older() -> Evidence {
    let past = rotated(PROJECT);
    let shown = evidence(&past, INDEX, &release_index("v1"), &[&key(5), &key(6)]);
    let revocation = RevocationEvidence { governed_by: past.digest(0), ..revocation_of(&shown, &[&bob()]) };
    Evidence { revocation: Some(revocation), ..shown }
}
