//! The state of a release or a project, as of one commit (D232): written, read, and broken in thousands of ways.

use countersign_api::state::{DroppedReleases, LogAnswer, StateResponse, is_answer};
use countersign_core::proof::state::{State, StateSubject};
use countersign_core::proof::{bundle::Bundle, verify::VerifyError, verify::verify};
use countersign_core::values::{digest::Sha512, path::RepoPath};
use countersign_core::{documents::layout, rules::snapshot::Snapshot as _};
use countersign_testing::Random;
use countersign_testing::{
    INDEX, PENDING, PROJECT, Signers, World, alice, bob, carol, dave, evidence::complete_world, key, path,
    release, signers,
};

/// What a server answers about a path.
fn answer(world: &World, about: &str) -> StateResponse {
    let subject = StateSubject::find(&world.repo, &path(about)).expect("something is there");
    StateResponse {
        commit: "0".repeat(40),
        committed_at: world.now.to_whole_seconds(),
        state: State::gather(&world.repo, subject).expect("a readable state"),
        staple: None,
        log: LogAnswer::default(),
        history_after: None,
        drops: DroppedReleases::default(),
        skipped: Vec::new(),
    }
}

/// The answer reads as it was written, and as files it is what is stored.
#[track_caller]
fn assert_shown(world: &World, about: &str) -> StateResponse {
    let written = answer(world, about);
    let read = StateResponse::parse(&written.write()).expect("our own answer");
    assert_eq!(read, written);
    let files = read.state.to_files().expect("our own files");
    let subject = read.state.subject.path().as_str();
    let near: Vec<RepoPath> = world.repo.names().into_iter().map(path).collect();
    let is_near = |file: &&RepoPath| match &read.state.subject {
        StateSubject::Release(_) => file.as_str().starts_with(subject),
        StateSubject::Project(project) => file.parent() == Some(layout::pending_dir(project)),
    };
    let mut count = 0;
    for file in near.iter().filter(is_near) {
        let (shown, stored) = (files.read(file).unwrap(), world.repo.read(file).unwrap());
        assert_eq!(shown, stored, "{file}");
        count += 1;
    }
    assert!(count > 0, "{about} has files");
    read
}

fn team(time: &str) -> Signers {
    signers(time).artifact(2, [&alice(), &bob()]).master(1, [&dave()])
}

fn complete() -> World {
    complete_world(&team("2026-01-31T10:00:00Z"), &[&alice(), &bob(), &dave()])
}

#[test]
fn every_state_is_shown_as_it_is_stored() {
    let file = team("2026-01-31T10:00:00Z").revocation(2, [&carol(), &key(5)]);
    let mut world = complete_world(&file, &[&alice(), &bob(), &carol(), &dave(), &key(5)]);
    let read = assert_shown(&world, INDEX);
    assert!(verify(&read.state.evidence.expect("evidence")).is_ok());
    let document = world.revocation_document("a bad build");
    world.revoke(&world.revoke_request(&document, &key(5))).expect("begun");
    assert_shown(&world, INDEX);
    world.revoke(&world.revoke_request(&document, &carol())).expect("revoked");
    let read = assert_shown(&world, INDEX);
    let verified = verify(&read.state.evidence.expect("evidence"));
    assert!(matches!(verified, Err(VerifyError::Revoked(_))));

    let slow = |time| {
        signers(time).artifact(2, [&alice(), &bob()]).admin(1, [&bob()]).master(2, [&carol(), &dave()])
    };
    let mut world =
        World::with(&slow("2026-01-31T10:00:00Z").delay(48), &[&alice(), &bob(), &carol(), &dave()]);
    world.add_release(&release("v1", "content"), &alice()).expect("a release");
    assert_shown(&world, INDEX);
    world.sign(INDEX, &alice()).expect("a signature");
    world.object(Some("not my build"), &bob()).expect("an objection");
    let read = assert_shown(&world, INDEX);
    assert!(read.bundle().is_none() && read.state.history.is_some());
    world.withdraw(&alice()).expect("a withdrawal");
    assert_shown(&world, INDEX);
    world.update(&slow("2026-02-01T10:00:00Z").delay(48), &bob()).expect("an update");
    assert_shown(&world, PROJECT);
    world.sign(PENDING, &bob()).expect("a signature");
    world.veto(&world.veto_request(&world.veto_document("no"), &carol())).expect("a first veto");
    assert_shown(&world, PENDING);
    world.veto(&world.veto_request(&world.veto_document("no"), &dave())).expect("a veto");
    let read = answer(&world, PROJECT);
    assert!(read.state.files.keys().any(|file| file.as_str().contains("svc.signers.vetoed")));
}

#[test]
fn the_answer_contains_the_bundle_byte_for_byte() {
    let answer = answer(&complete(), INDEX);
    let (bytes, bundle) = (answer.write(), answer.bundle().expect("a bundle").write());
    assert!(bytes.windows(bundle.len()).any(|part| part == bundle));
    assert_eq!(is_answer(&bytes), Ok(true));
    assert_eq!(is_answer(&bundle), Ok(false));
    assert_eq!(Bundle::parse(&bundle).expect("our own bundle"), answer.bundle().expect("a bundle"));
}

#[test]
fn the_rest_of_a_history_joins_what_is_known() {
    let mut world = complete();
    world.rotate(&team("2026-02-01T11:00:00Z"), &[&alice(), &bob()]);
    let whole = answer(&world, INDEX);
    let entries = whole.state.history().entries.clone();
    assert_eq!(entries.len(), 2);
    let known = Sha512::of(entries[0].signers_config.as_bytes());
    let mut rest = whole.clone();
    assert!(rest.state.leave_out(&known));
    assert_eq!(rest.state.history().entries, entries[1..]);
    assert!(!rest.state.leave_out(&Sha512::of(b"unknown")));
    rest.state.put_before(countersign_core::documents::history::History { entries: entries[..1].to_vec() });
    assert_eq!(rest, whole);
}

#[test]
fn what_is_about_another_place_is_not_taken() {
    let answer = String::from_utf8(answer(&complete(), INDEX).write()).unwrap();
    let elsewhere =
        answer.replacen(&format!("\"project_id\":\"{PROJECT}\""), "\"project_id\":\"https/a/443/b\"", 1);
    assert!(StateResponse::parse(elsewhere.as_bytes()).is_err());
    let other = answer.replacen(&format!("\"path\":\"{INDEX}\""), &format!("\"path\":\"{INDEX}x\""), 1);
    assert!(StateResponse::parse(other.as_bytes()).is_err());
}

#[test]
fn five_thousand_changed_answers_prove_nothing_else() {
    let honest = answer(&complete(), INDEX);
    let artifact = verify(&honest.state.evidence.clone().expect("evidence")).expect("a true release");
    let bytes = honest.write();
    let mut random = Random::congruential(0x5eed);
    let mut next = |below: usize| random.place(below);
    let (mut read, mut verified) = (0, 0);
    for _ in 0..5_000 {
        let mut changed = bytes.clone();
        let at = next(changed.len());
        match next(4) {
            0 => changed[at] ^= 1 << next(7),
            1 => drop(changed.remove(at)),
            2 => changed.insert(at, b"{}[]\",:0aA \\"[next(12)]),
            _ => drop(changed.splice(
                at..(at + next(400)).min(bytes.len()),
                bytes[next(bytes.len())..].iter().copied().take(30),
            )),
        }
        let Ok(answer) = StateResponse::parse(&changed) else { continue };
        read += 1;
        let _ = answer.state.to_files();
        let Some(Ok(found)) = answer.state.evidence.as_ref().map(verify) else { continue };
        verified += 1;
        assert_eq!(found.index_digest, artifact.index_digest);
        assert_eq!(found.governing().digest, artifact.governing().digest);
    }
    assert!(read > 50 && verified > 5, "{read} were read, and {verified} still verify");
}
