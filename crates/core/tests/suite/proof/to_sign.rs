//! A signer is no oracle (D34): bytes that are not what their path names get no signature.

use std::{cell::RefCell, collections::BTreeMap, convert::Infallible};

use countersign_core::documents::said::{EarlierObjection, StoredObjection};
use countersign_core::documents::{
    history::History, index::ReleaseIndex, index::render_sha256sums, statement::Objection,
};
use countersign_core::proof::to_sign::{NoFormats, ShownHistoryError, SigningRequest, Subject, ToSignError};
use countersign_core::rules::{chain::ChainFault, chain::VerifiedChain, stored};
use countersign_core::values::other_format::{OtherFormat, ReleaseSums};
use countersign_core::values::{digest::Sha512, key::SecretKey, path::RepoPath};
use countersign_testing::evidence::{
    OTHER_PROJECT, Past, file, first_release, founded, founders, good, index_path, index_text, noon,
    release_index, revocation_document, rotated, signed_by, successors, with_signature,
};
use countersign_testing::signing::{files_of, index_request, proposal_of, sign, sign_at};
use countersign_testing::{
    ACTIVE, HISTORY, INDEX, PENDING, PENDING_METADATA, PROJECT, World, alice, assert_mentions, bob, carol,
    dave, documents::KINDS, key, mallory, path, public, revocation_text, shifted_seconds, signed_request,
    signers,
};

#[track_caller]
fn refusal(request: &SigningRequest) -> ToSignError {
    request.check().expect_err("it would be signed")
}

#[test]
fn an_index_is_signed_and_nothing_but_it() {
    let text = good().index;
    let to_sign = index_request(&text).check().expect("an index");
    assert_eq!((to_sign.path(), to_sign.project()), (&path(INDEX), &path(PROJECT)));
    assert_eq!(to_sign.signature_count(), 1);
    assert!(matches!(&to_sign.subject, Subject::Release { index, .. } if *index == release_index("v1")));
    let digest = Sha512::of(text.as_bytes());
    let (submission, seen) = sign(&to_sign, &alice());
    assert_eq!(seen, [digest]);
    assert_eq!(submission.signatures, BTreeMap::from([(path(INDEX), alice().sign(&digest))]));
    assert_eq!((submission.file_path, submission.public_key), (path(INDEX), alice().public_key()));
}

#[test]
fn a_proposal_is_signed_with_its_metadata() {
    for past in [founded(PROJECT), rotated(PROJECT)] {
        let request = proposal_of(&past);
        let to_sign = request.check().expect("a proposal");
        assert_eq!((to_sign.path(), to_sign.project()), (&path(PENDING), &path(PROJECT)));
        assert_eq!((request.is_first(), to_sign.signature_count()), (past.history.entries.len() == 1, 2));
        let (submission, seen) = sign(&to_sign, &bob());
        assert_eq!(seen.len(), 2);
        for (file, text) in &request.files {
            bob()
                .public_key()
                .verify(&Sha512::of(text.as_bytes()), &submission.signatures[file])
                .expect("signed");
        }
    }
}

#[test]
fn what_our_own_server_asks_for_is_signed_and_accepted() {
    let mut world = World::new();
    world.register(&founders(), &alice()).expect("a registration");
    let complete: Vec<bool> =
        [alice(), bob(), carol(), dave()].iter().map(|person| sign_at(&mut world, PENDING, person)).collect();
    assert_eq!(complete, [false, false, false, true]);
    world.add_release(&first_release(), &alice()).expect("a release");
    assert!(!sign_at(&mut world, INDEX, &alice()));
    assert!(sign_at(&mut world, INDEX, &carol()));
    world.update(&successors(), &alice()).expect("an update");
    for (person, is_last) in
        [(alice(), false), (bob(), false), (carol(), false), (key(5), false), (key(6), true)]
    {
        assert_eq!(sign_at(&mut world, PENDING, &person), is_last);
    }
}

#[test]
fn an_index_from_before_rebuilds_were_required_is_not_signed() {
    let builder = key(21);
    let team = |timestamp: &str| signers(timestamp).artifact(2, [&alice(), &bob()]);
    let required = |timestamp: &str| team(timestamp).builders(1, [&builder]).reproduced_first();
    let everyone = [&alice(), &bob(), &builder];
    let request = |past: &Past, after: i128| {
        let index = ReleaseIndex { mirrored_on: shifted_seconds(noon(), after), ..release_index("v1") };
        SigningRequest::of_index(path(INDEX), index_text(&index), past.history.clone())
    };
    // Each file is fetched an hour after the one before it, the first at noon.
    let past = Past::of(PROJECT).then(&team("2026-01-01T00:00:00Z"), &everyone);
    let past = past.then(&required("2026-01-02T00:00:00Z"), &everyone);
    let past = past.then(&required("2026-01-03T00:00:00Z"), &everyone);
    let refused = refusal(&request(&past, 3_599));
    assert!(
        matches!(&refused, ToSignError::BeforeRebuilds { path: at, .. } if *at == path(INDEX)),
        "{refused}"
    );
    request(&past, 3_600).check().expect("made when the second file was there");
    request(&past.then(&team("2026-01-04T00:00:00Z"), &everyone), 0).check().expect("not required any more");
    let always = Past::of(PROJECT).then(&required("2026-01-01T00:00:00Z"), &everyone);
    request(&always, -1).check().expect("no file asked for less");
}

#[test]
fn bytes_of_any_other_kind_are_not_signed_as_an_index() {
    let metadata = founded(PROJECT).history.entries[0].metadata.clone();
    let request = signed_request(&mallory(), noon(), &good().index);
    let mut others = vec![
        String::new(),
        format!("{}##{}##{}", request.timestamp, request.nonce, request.payload),
        format!("{}##{}##", request.timestamp, request.nonce),
        revocation_text(&revocation_document(None)),
        revocation_text(&revocation_document(Some(Sha512::of(good().index.as_bytes())))),
        founders().text(),
        metadata,
        format!("{} x", good().index),
        format!("\u{feff}{}", good().index),
        good().index.replacen('{', "{\"reason\": \"\", \"timestamp\": 1,", 1),
    ];
    others.extend(KINDS.iter().filter(|kind| kind.name != "index").map(|kind| kind.example_text()));
    for text in others {
        let error = refusal(&index_request(&text));
        assert!(matches!(error, ToSignError::Index { .. }), "{text}: {error}");
    }
}

#[test]
fn bytes_of_any_other_kind_are_not_signed_as_a_signers_file_or_its_metadata() {
    let right = proposal_of(&founded(PROJECT));
    let request = signed_request(&mallory(), noon(), &founders().text());
    let mut others = vec![
        format!("{}##{}##{}", request.timestamp, request.nonce, request.payload),
        revocation_text(&revocation_document(None)),
        good().index,
        right.files[&path(PENDING)].clone() + "{}",
    ];
    others.extend(KINDS.iter().map(|kind| kind.example_text()));
    for text in others {
        let with = |file: &str| {
            let mut changed = right.clone();
            changed.files.insert(path(file), text.clone());
            refusal(&changed)
        };
        let (as_signers, as_metadata) = (with(PENDING), with(PENDING_METADATA));
        // An example of the very kind is of another file.
        let is_refused =
            |e: &ToSignError| matches!(e, ToSignError::Signers { .. } | ToSignError::OtherMetadata(_));
        assert!(is_refused(&as_signers), "{text}: {as_signers}");
        let is_refused =
            |e: &ToSignError| matches!(e, ToSignError::Metadata { .. } | ToSignError::OtherMetadata(_));
        assert!(is_refused(&as_metadata), "{text}: {as_metadata}");
    }
}

#[test]
fn only_an_index_and_a_pending_signers_file_are_signed() {
    let active_metadata = format!("{ACTIVE}.metadata.json");
    let revocation = format!("{INDEX}.revocation.json");
    let superseded = format!("{PROJECT}/svc.signers.superseded/0123456789abcdef/svc.signers.json");
    for other in [
        ACTIVE, &active_metadata, PENDING_METADATA, HISTORY, &revocation, &superseded, PROJECT,
        "svc.signers.json", "svc.signers.pending/svc.signers.json", "x",
    ] {
        for mut request in [index_request(&good().index), proposal_of(&founded(PROJECT))] {
            let text = request.files[&request.path].clone();
            request.path = path(other);
            request.files.insert(path(other), text);
            assert!(matches!(refusal(&request), ToSignError::NotSignable(at) if at == path(other)));
        }
    }
}

#[test]
fn no_file_more_no_file_less_and_no_other_is_signed() {
    let is_refused = |request: &SigningRequest| matches!(refusal(request), ToSignError::OtherFiles(_));
    for right in
        [index_request(&good().index), proposal_of(&founded(PROJECT)), proposal_of(&rotated(PROJECT))]
    {
        for extra in [HISTORY, &index_path("v2"), &format!("{INDEX}.metadata.json"), "x"] {
            let mut more = right.clone();
            more.files.insert(path(extra), good().index);
            assert!(is_refused(&more), "{extra}");
        }
        for file in right.files.keys() {
            let mut fewer = right.clone();
            let text = fewer.files.remove(file).expect("a file");
            assert!(is_refused(&fewer));
            fewer.files.insert(path("x"), text);
            assert!(is_refused(&fewer));
        }
        assert!(is_refused(&SigningRequest { files: BTreeMap::new(), ..right }));
    }
}

#[test]
fn an_index_is_signed_only_with_a_history_that_holds() {
    let history = founded(OTHER_PROJECT).history;
    let error = refusal(&SigningRequest { history, ..index_request(&good().index) });
    let ToSignError::History(ShownHistoryError { project, error }) = error else { panic!("{error}") };
    assert_eq!((project, error.fault), (path(PROJECT), ChainFault::OtherProject(path(OTHER_PROJECT))));
}

#[test]
fn a_signers_file_of_another_project_is_not_signed() {
    let theirs = proposal_of(&founded(OTHER_PROJECT));
    assert!(matches!(refusal(&theirs), ToSignError::OtherMetadata(at) if at == path(PENDING)));
    // The right project under the path of another.
    let mut moved = proposal_of(&founded(PROJECT));
    let rename = |file: &RepoPath| path(&file.as_str().replace(PROJECT, OTHER_PROJECT));
    moved.files = moved.files.iter().map(|(file, text)| (rename(file), text.clone())).collect();
    moved.path = rename(&moved.path);
    assert!(matches!(refusal(&moved), ToSignError::OtherMetadata(_)));
}

#[test]
fn metadata_of_another_file_is_not_signed() {
    let mut request = proposal_of(&rotated(PROJECT));
    request.files.insert(path(PENDING), successors().text() + "\n");
    assert!(matches!(refusal(&request), ToSignError::OtherMetadata(_)));
    let mut request = proposal_of(&rotated(PROJECT));
    let of_first = founded(PROJECT).history.entries[0].metadata.clone();
    request.files.insert(path(PENDING_METADATA), of_first);
    assert!(matches!(refusal(&request), ToSignError::OtherMetadata(_)));
}

/// A third signers file, proposed to the two before.
fn third() -> Past {
    let third = signers("2026-01-03T00:00:00Z").artifact(1, [&carol()]).admin(1, [&carol()]);
    rotated(PROJECT).then(&third, &[&alice(), &carol()])
}

#[test]
fn a_proposal_that_does_not_follow_the_shown_history_is_not_signed() {
    let right = proposal_of(&third());
    assert!(right.check().is_ok());
    let with = |history: History| SigningRequest { history, ..right.clone() };
    assert!(matches!(refusal(&with(History::default())), ToSignError::NotFirst(_)));
    assert!(matches!(refusal(&with(founded(PROJECT).history)), ToSignError::NotNext(_)));
    assert!(matches!(refusal(&with(third().history)), ToSignError::NotNext(_)));
    let hidden_root = History { entries: right.history.entries[1..].to_vec() };
    assert!(matches!(refusal(&with(hidden_root)), ToSignError::History(_)));
    assert!(matches!(refusal(&with(rotated(OTHER_PROJECT).history)), ToSignError::History(_)));
    // Another history of the same project, which holds by itself.
    let theirs = signers("2026-01-01T00:00:00Z").artifact(1, [&mallory()]);
    let replaced = Past::of(PROJECT).then(&theirs, &[&mallory()]);
    assert!(matches!(refusal(&with(replaced.history)), ToSignError::NotNext(_)));
    // A first registration beside a history.
    let again = SigningRequest { history: rotated(PROJECT).history, ..proposal_of(&founded(PROJECT)) };
    assert!(matches!(refusal(&again), ToSignError::NotNext(_)));
}

#[test]
fn a_proposal_that_is_not_later_is_not_signed() {
    for time in ["2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-02T01:00:00+01:00"] {
        let stale = rotated(PROJECT).then(&signers(time).artifact(1, [&carol()]), &[&alice(), &carol()]);
        assert!(matches!(refusal(&proposal_of(&stale)), ToSignError::NotLater(_)), "{time}");
    }
}

#[test]
fn who_may_sign_and_who_has_signed_is_told_from_what_is_proven() {
    let mut release = index_request(&good().index);
    let text = release.files[&path(INDEX)].clone();
    // Bob's is right; Carol's is on another text; Mallory's is right, and no one asked.
    release.collected = with_signature(signed_by(&text, &[&bob(), &mallory()]), &carol(), "another");
    let to_sign = release.check().expect("an index");
    let signed = stored::collected_signatures(&files_of(&release), &path(INDEX)).expect("signatures");
    assert_eq!(signed.signers(), public([&bob(), &mallory()]));
    assert_eq!(to_sign.accepted_signers(), public([&alice(), &bob(), &carol()]));
    assert_eq!(to_sign.chain().map(|chain| chain.links.len()), Some(1));

    let first = proposal_of(&founded(PROJECT)).check().expect("a registration");
    assert_eq!(first.accepted_signers(), public([&alice(), &bob(), &carol(), &dave()]));
    assert!(first.chain().is_none());

    let update = proposal_of(&rotated(PROJECT)).check().expect("an update");
    assert_eq!(update.accepted_signers(), public([&alice(), &bob(), &carol(), &dave(), &key(5), &key(6)]));
    let last = |chain: &VerifiedChain| chain.last().digest;
    assert_eq!(update.chain().map(last), Some(founded(PROJECT).last_digest()));
}

#[test]
fn a_release_is_signed_in_the_formats_that_its_signers_ask_for() {
    let asking = founders().text().replace("\"version\": 1", "\"version\": 1, \"formats\": [\"ssh\"]");
    let past = Past::of(PROJECT).then_text(asking, &[&alice(), &bob(), &carol(), &dave()]);
    let request = SigningRequest { history: past.history.clone(), ..index_request(&good().index) };
    let to_sign = request.check().expect("an index");
    assert_eq!(to_sign.asked_formats(), [OtherFormat::Ssh]);
    let formats = to_sign.formats().expect("digests of all files");
    let sums = render_sha256sums(&release_index("v1")).expect("digests of all files");
    assert_eq!(formats.openpgp_count(), Some(1));
    let mut larger = release_index("v1");
    larger
        .published_files
        .push(file("b.tar.gz", "https://github.com/acme/app/releases/download/v1/b.tar.gz", "b"));
    let larger = SigningRequest { history: past.history.clone(), ..index_request(&index_text(&larger)) };
    let larger = larger.check().expect("an index");
    assert_eq!(larger.formats().expect("digests of all files").openpgp_count(), Some(2));
    for format in OtherFormat::ALL {
        let text = formats.sign(format, &alice().public_key(), &[], |message| {
            Ok::<_, Infallible>(message.sign_with(&alice()))
        });
        let sums =
            ReleaseSums { index: &path(INDEX), mirrored_on: release_index("v1").mirrored_on, text: &sums };
        assert_eq!(format.verify(&text.expect("a signature"), &alice().public_key(), &sums), Ok(()));
        let refused = formats.sign(format, &alice().public_key(), &[], |_| Err("no"));
        assert_eq!(refused, Err("no"));
    }
    // Not those of a proposal, and not where no one asks.
    let proposal = proposal_of(&past).check().expect("a proposal");
    assert_eq!(proposal.asked_formats(), []);
    assert_eq!(proposal.formats().err(), Some(NoFormats::Signers));
    assert_eq!(index_request(&good().index).check().expect("an index").asked_formats(), []);
}

#[test]
fn a_key_that_fails_signs_nothing() {
    let to_sign = proposal_of(&rotated(PROJECT)).check().expect("a proposal");
    let count = RefCell::new(0);
    let result = to_sign.sign(alice().public_key(), |digest| {
        *count.borrow_mut() += 1;
        if *count.borrow() == 2 { Err("the agent is gone") } else { Ok(alice().sign(digest)) }
    });
    assert_eq!(result, Err("the agent is gone"));
}

#[test]
fn a_refusal_names_the_path_and_escapes_what_a_stranger_wrote() {
    let mut index = release_index("v1");
    index.release_url = Some("https://evil.example/\u{1b}[2J\u{202e}".to_owned());
    let error = refusal(&index_request(&index_text(&index)));
    assert!(matches!(&error, ToSignError::Place { path: at, .. } if *at == path(INDEX)));
    let message = error.to_string();
    assert!(!message.contains(['\u{1b}', '\u{202e}']), "{message:?}");
    assert_mentions(&message, &[INDEX, "evil.example"]);
}

#[test]
fn a_signer_sees_earlier_objections_to_the_content_that_came_back() {
    let mut request = index_request(&good().index);
    let said = |subject: &str, by: &SecretKey, signed_by: &SecretKey| {
        let subject_digest = Sha512::of(subject.as_bytes());
        let document = Objection { text: Some("not my build".to_owned()), subject_digest, timestamp: noon() };
        let text = String::from_utf8(document.write()).expect("our documents are text");
        let signature = signed_by.sign(&Sha512::of(text.as_bytes()));
        let said = StoredObjection { text, document, signature, collected_at: noon() };
        EarlierObjection { public_key: by.public_key(), said }
    };
    let (back, other) = (said(&good().index, &bob(), &bob()), said("another content", &carol(), &carol()));
    let forged = said(&good().index, &dave(), &mallory());
    request.earlier.entries = vec![back.clone(), forged, other.clone()];
    let files = request.to_files(&path(PROJECT), &BTreeMap::new()).expect("an index");
    let shown = stored::earlier_objections(&files, &request.path).expect("it was written here");
    assert_eq!(shown.entries, [back, other]);
}
