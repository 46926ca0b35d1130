//! Verification of a release without anyone's help: what holds is proven, and what does not is named.

use countersign_core::proof::state::{State, StateSubject};
use countersign_core::proof::verify::{
    Evidence, GroupCount, RevocationEvidence, RevocationFault, RevokedArtifact, VerifyError, verify,
};
use countersign_core::values::{digest::Sha512, key::PublicKey, key::SecretKey};
use countersign_core::{documents::signed_request::SignedRequest, rules::chain::ChainFault};
use countersign_testing::evidence::{
    Past, builders, complete_world, evidence, evidence_of_text, founded, founders, founders_with_builders,
    good, index_text, noon, rebuilt, release_index, revocation_by_request, revocation_document,
    revocation_of, revocation_with, revoked, rotated, said, signed_by, successors,
};
use countersign_testing::{
    INDEX, PROJECT, World, alice, assert_mentions, bob, carol, dave, key, mallory, path, public, rebuild_of,
    revocation_text, signed_request, signers,
};

#[track_caller]
fn refusal(evidence: &Evidence) -> VerifyError {
    verify(evidence).expect_err("it is verified")
}

#[test]
fn a_refusal_says_how_many_builders_lack() {
    let [first, ..] = builders();
    let index = index_text(&release_index("v1"));
    let stated = [said(&rebuild_of(&path(INDEX), &index), &first)];
    let refused = refusal(&rebuilt(&founders_with_builders(), stated));
    assert_mentions(&refused.to_string(), &["not reproduced", "has 1 of 2; 1 more"]);
}

#[track_caller]
fn withdrawn(evidence: &Evidence) -> RevokedArtifact {
    match refusal(evidence) {
        VerifyError::Revoked(revoked) => *revoked,
        other => panic!("not revoked, but {other}"),
    }
}

#[track_caller]
fn fault(evidence: &Evidence) -> RevocationFault {
    match refusal(evidence) {
        VerifyError::Revocation(fault) => fault,
        other => panic!("not a fault of the revocation, but {other}"),
    }
}

/// What our own server shows of the index.
fn shown_by_server(world: &World) -> Evidence {
    let state = State::gather(&world.repo, StateSubject::Release(path(INDEX))).expect("a readable state");
    state.evidence.expect("a complete release")
}

/// A project of the founders on our own server, with release v1 complete.
fn served() -> World {
    complete_world(&founders(), &[&alice(), &bob(), &carol(), &dave()])
}

fn sorted<const N: usize>(keys: [&SecretKey; N]) -> Vec<PublicKey> {
    public(keys).into_iter().collect()
}

#[test]
fn what_our_own_server_shows_is_verified_under_the_file_that_signed_until_it_is_revoked() {
    let mut world = served();
    for links in [1, 2] {
        let artifact = verify(&shown_by_server(&world)).expect("verified");
        assert_eq!((&artifact.path, artifact.chain.links.len()), (&path(INDEX), links));
        assert_eq!(artifact.signed_by.keys().copied().collect::<Vec<_>>(), sorted([&alice(), &bob()]));
        assert_eq!(artifact.governing().digest, Sha512::of(founders().text().as_bytes()));
        if links == 1 {
            world.rotate(&successors(), &[&alice(), &bob(), &carol(), &key(5), &key(6)]);
        }
    }
    let mut world = served();
    world.revoke_index(&bob());
    let revoked = withdrawn(&shown_by_server(&world));
    assert_eq!(revoked.revocation.revoked_by, public([&bob()]));
    assert_eq!(revoked.artifact.path, path(INDEX));
}

#[test]
fn what_our_own_server_shows_of_a_release_that_a_request_revoked_is_revoked() {
    let mut world = served();
    let document = revocation_text(&revocation_document(None));
    let named = revocation_by_request(&good(), &alice(), &path(INDEX)).request.expect("a request");
    let mut request = world.revoke_request(&document, &alice());
    request.request = named;
    assert!(world.revoke(&request).expect("a revocation").in_force);
    assert!(world.repo.has(&format!("{INDEX}.revocation.json.request.json")));
    withdrawn(&shown_by_server(&world));
}

#[test]
fn the_proof_says_who_signed_what_under_which_file() {
    let past = rotated(PROJECT);
    let index = release_index("v1");
    let mut shown = evidence(&past, INDEX, &index, &[&alice(), &bob(), &mallory(), &dave()]);
    shown.governed_by = past.digest(0);
    let artifact = verify(&shown).expect("verified");
    assert_eq!(artifact.index, index);
    assert_eq!(artifact.index_digest, Sha512::of(shown.index.as_bytes()));
    assert_eq!(artifact.chain.project, path(PROJECT));
    assert_eq!(artifact.governing().digest, past.digest(0));
    // Neither the stranger nor the master counts, though their signatures are right.
    assert_eq!(artifact.signed_by.keys().copied().collect::<Vec<_>>(), sorted([&alice(), &bob()]));
    assert_eq!(artifact.groups(), [GroupCount { threshold: 2, size: 3, signed: 2 }]);
    assert!(artifact.file("app.tar.gz").is_some());
    assert!(artifact.file("APP.tar.gz").is_none() && artifact.file("").is_none());
}

#[test]
fn too_few_signers_are_counted_group_by_group() {
    let team =
        signers("2026-01-01T00:00:00Z").artifact(2, [&alice(), &bob(), &carol()]).artifact(1, [&dave()]);
    let past = Past::of(PROJECT).then(&team, &[&alice(), &bob(), &carol(), &dave()]);
    let shown = evidence(&past, INDEX, &release_index("v1"), &[&alice(), &carol(), &mallory()]);
    let error = refusal(&shown);
    let VerifyError::TooFew { groups } = &error else { panic!("{error}") };
    let count = |threshold, size, signed| GroupCount { threshold, size, signed };
    assert_eq!(*groups, [count(2, 3, 2), count(1, 1, 0)]);
    assert_mentions(&error.to_string(), &["any 2 of 3 keys", "0 of 1 signature (any 1 of 1 key)"]);
}

#[test]
fn a_signature_on_the_text_itself_is_none_on_its_request_form() {
    // The signature of a request whose body is the index: same key, same digest rule, other bytes (D34).
    let mut shown = good();
    let request = signed_request(&bob(), noon(), &shown.index);
    shown.signatures = signed_by(&shown.index, &[&alice()]);
    shown.signatures.add(
        bob().public_key(),
        countersign_core::documents::signatures::Collected {
            signature: request.signature,
            collected_at: noon(),
        },
    );
    assert!(matches!(refusal(&shown), VerifyError::BadSignature(key) if key == bob().public_key()));
}

#[test]
fn signers_of_a_later_file_cannot_sign_under_an_earlier_one_nor_the_other_way_round() {
    let past = rotated(PROJECT);
    for (governor, by) in [(0, [key(5), key(6)]), (1, [alice(), bob()])] {
        let mut shown = evidence(&past, INDEX, &release_index("v1"), &[&by[0], &by[1]]);
        shown.governed_by = past.digest(governor);
        assert!(matches!(refusal(&shown), VerifyError::TooFew { .. }));
    }
}

#[test]
fn the_whole_history_is_verified_even_beyond_the_governing_entry() {
    let past = rotated(PROJECT)
        .with(1, |entry| entry.signatures = signed_by(&entry.signers_config, &[&alice(), &key(5), &key(6)]));
    let mut shown = evidence(&past, INDEX, &release_index("v1"), &[&alice(), &bob()]);
    shown.governed_by = past.digest(0);
    let VerifyError::Chain(error) = refusal(&shown) else { panic!("not the chain") };
    assert_eq!((error.entry, error.fault), (1, ChainFault::NotAgreed));
}

#[test]
fn a_revocation_does_not_stand_in_for_missing_signatures() {
    let mut shown = revoked();
    shown.signatures = signed_by(&shown.index, &[&alice()]);
    assert!(matches!(refusal(&shown), VerifyError::TooFew { .. }));
}

#[test]
fn those_who_may_revoke_are_named_and_strangers_are_not() {
    let mut shown = good();
    shown.revocation = Some(revocation_of(&shown, &[&alice(), &mallory(), &carol()]));
    // Carol signs releases, but admins are named, and without revocation keys these revoke.
    assert_eq!(withdrawn(&shown).revocation.revoked_by, public([&alice()]));
}

#[test]
fn the_reason_of_a_revocation_is_shown_escaped() {
    let mut shown = good();
    let mut document = revocation_document(Some(Sha512::of(shown.index.as_bytes())));
    document.reason = "\u{1b}[2Jall is\u{202e} well\nverified".to_owned();
    shown.revocation = Some(revocation_with(&shown, document, &[&alice()]));
    let message = refusal(&shown).to_string();
    assert!(!message.contains(['\u{1b}', '\u{202e}', '\n']), "{message:?}");
    assert_mentions(&message, &["revoked", r"\u{1b}"]);
}

/// The stored request must be the revoker's own, about this document and this file (D20).
#[test]
fn every_part_of_a_stored_request_counts() {
    let with = |change: fn(&mut RevocationEvidence)| {
        let shown = good();
        let mut revocation = revocation_by_request(&shown, &alice(), &path(INDEX));
        change(&mut revocation);
        Evidence { revocation: Some(revocation), ..shown }
    };
    withdrawn(&with(|_| {}));
    let changes: [fn(&mut RevocationEvidence); 9] = [
        |shown| shown.request = None,
        |shown| shown.request.as_mut().expect("a request").payload.push(' '),
        |shown| shown.request.as_mut().expect("a request").timestamp = "2026-02-01T12:00:01+00:00".to_owned(),
        |shown| shown.request.as_mut().expect("a request").public_key = bob().public_key(),
        // The same body, sent by another.
        |shown| {
            let payload = shown.request.as_ref().expect("a request").payload.clone();
            shown.request = Some(signed_request(&bob(), noon(), &payload));
        },
        // Also by one who may revoke and has signed the document.
        |shown| {
            let payload = shown.request.as_ref().expect("a request").payload.clone();
            shown.signatures = signed_by(&shown.document, &[&alice(), &bob()]);
            shown.request = Some(signed_request(&bob(), noon(), &payload));
        },
        |shown| shown.request = Some(signed_request(&alice(), noon(), "{}")),
        // About this file, with another document.
        |shown| {
            let payload = &shown.request.as_ref().expect("a request").payload;
            let other = payload.replace("a bad build", "another build");
            assert_ne!(other, *payload);
            shown.request = Some(signed_request(&alice(), noon(), &other));
        },
        // A request of Bob's, who did not sign the document.
        |shown| shown.request = revocation_by_request(&good(), &bob(), &path(INDEX)).request,
    ];
    for (n, change) in changes.into_iter().enumerate() {
        assert_eq!(fault(&with(change)), RevocationFault::NoRequest, "change {n}");
    }
}

/// Someone who signs a colleague's document too cannot say for them which file was meant.
#[test]
fn a_request_that_is_not_the_revokers_own_about_this_document_names_nothing() {
    let shown = good();
    let of = |person| revocation_by_request(&shown, &person, &path(INDEX));
    let with = |signers: &[&SecretKey], request: Option<SignedRequest>| {
        let document = of(alice()).document;
        let signatures = signed_by(&document, signers);
        let revocation = RevocationEvidence { document, signatures, request, ..of(alice()) };
        Evidence { revocation: Some(revocation), ..good() }
    };
    withdrawn(&with(&[&alice(), &bob()], of(bob()).request));
    // Carol and Mallory have signed, and may not revoke.
    for stranger in [carol(), mallory()] {
        let request = revocation_by_request(&shown, &stranger, &path(INDEX)).request;
        assert_eq!(fault(&with(&[&alice(), &stranger], request)), RevocationFault::NotAllowed);
    }
}

/// D20: `initiator` is the key that posted the document first, so it has signed.
#[test]
fn a_document_whose_initiator_signed_revokes() {
    let mut shown = good();
    let mut document = revocation_document(Some(Sha512::of(shown.index.as_bytes())));
    document.initiator = Some(bob().public_key());
    shown.revocation = Some(revocation_with(&shown, document, &[&alice(), &bob()]));
    withdrawn(&shown);
}

/// D39: a path may hold invisible characters, and comes from the server as well.
#[test]
fn messages_about_paths_of_strangers_are_escaped() {
    let hostile = "https/github.com/443/acme/\u{202e}ppa";
    let mut index = release_index("v1");
    index.project_id = path(hostile);
    let past = founded(PROJECT);
    let people = [&alice(), &bob(), &carol(), &dave()];
    let messages = [
        refusal(&evidence_of_text(&past, INDEX, index_text(&index), &[&alice(), &bob()])).to_string(),
        refusal(&Evidence { path: path(hostile), ..good() }).to_string(),
        refusal(&Evidence {
            history: past.clone().remark(0, &people, |metadata| metadata.project_id = path(hostile)).history,
            ..good()
        })
        .to_string(),
    ];
    for message in messages {
        assert!(!message.contains('\u{202e}'), "{message:?}");
    }
}
