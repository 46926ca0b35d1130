//! Lies about a revocation. A forged one does not count as one, but nothing that it stands beside is believed either.

use countersign_core::{proof::verify::Evidence, proof::verify::RevocationEvidence, values::digest::Sha512};
use countersign_testing::evidence::{
    Past, evidence, founders, good, index_path, index_text, release_index, revocation_by_request,
    revocation_document, revocation_of, revocation_with, rotated, signed_by,
};
use countersign_testing::{INDEX, PROJECT, alice, bob, carol, dave, key, mallory, path, revocation_text};

use super::{hostile_bundles::objection_text, vector::Vector, vector::bundle, vector::refused};

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
        bundle(
            "revocation-by-a-stranger",
            "Someone who is in no signers file has signed the revocation.",
            refused("revocation: not allowed", "only those who may revoke can"),
            beside(revocation_of(&good(), &[&mallory()])),
        ),
        bundle(
            "revocation-by-an-artifact-signer",
            "Carol signs releases, but there are admins, and she is none.",
            refused("revocation: not allowed", "without revocation keys the admins revoke"),
            beside(revocation_of(&good(), &[&carol()])),
        ),
        bundle(
            "revocation-that-nobody-signed",
            "The revocation has no signature.",
            refused("revocation: not allowed", "only those who may revoke can"),
            beside(revocation_of(&good(), &[])),
        ),
        bundle(
            "revocation-with-a-signature-on-another",
            "Alice's signature is on another revocation.",
            refused("revocation: bad signature", "a signature does not fit the text"),
            beside(misfiled),
        ),
        bundle(
            "revocation-of-another-file",
            "The revocation names the index of another release.",
            refused("revocation: other file", "the subject digest is not that of the index"),
            beside(revocation_with(&good(), of_other, &[&alice()])),
        ),
        bundle(
            "revocation-replayed-from-another-file",
            "The revocation names no file, and the revoker's request names another release.",
            refused("revocation: other file", "the request names another path"),
            beside(revocation_by_request(&good(), &alice(), &path(&index_path("v2")))),
        ),
        bundle(
            "revocation-that-names-nothing",
            "The revocation names no file, and there is no request.",
            refused("revocation: no request", "without subject digest the signed request is needed"),
            beside(revocation_with(&good(), revocation_document(None), &[&alice()])),
        ),
        bundle(
            "revocation-with-the-request-of-another",
            "Alice's revocation names no file, and the request is Mallory's.",
            refused("revocation: no request", "the request must be the revoker's own"),
            beside(RevocationEvidence {
                request: revocation_by_request(&good(), &mallory(), &path(INDEX)).request,
                ..revocation_by_request(&good(), &alice(), &path(INDEX))
            }),
        ),
        bundle(
            "revocation-with-a-changed-request",
            "The path inside the revoker's request was changed after it was signed.",
            refused("revocation: no request", "the signature of the request does not verify"),
            beside(redirected()),
        ),
        bundle(
            "revocation-by-too-few",
            "One of two revocation keys has signed.",
            refused("revocation: not allowed", "explicit revocation keys must reach their thresholds"),
            by_one_of_two(),
        ),
        bundle(
            "revocation-of-two-with-the-request-of-one",
            "Two keys have to revoke. One took the other's document, which names no file, and added a request.",
            refused("revocation: not allowed", "a request names the file for its own key only"),
            for_two_by_one_request(),
        ),
        bundle(
            "revocation-without-its-initiator",
            "The revocation says that Bob began it, and he has not signed it.",
            refused("revocation: no initiator", "the initiator is the first to sign"),
            beside(without_initiator()),
        ),
        bundle(
            "revocation-under-an-older-signers-file",
            "An admin of a signers file that was replaced before the release was signed has revoked it.",
            refused(
                "revocation: unknown governor",
                "the file that allows it is not older than the governing one",
            ),
            under_older(),
        ),
        bundle(
            "revocation-under-a-file-of-no-history",
            "The signers file that is said to allow the revocation is not in the history.",
            refused("revocation: unknown governor", "the file that allows it is in the history"),
            beside(of_unknown),
        ),
        bundle(
            "index-shown-as-revocation",
            "The signed index itself is shown as its revocation.",
            refused("revocation: document", "a revocation has no such fields"),
            beside(index_as_document),
        ),
        bundle(
            "objection-shown-as-revocation",
            "Alice, who may revoke, has only objected to this release.",
            refused("revocation: document", "a revocation has no such fields"),
            beside(objection_as_document),
        ),
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
