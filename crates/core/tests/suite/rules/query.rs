//! What may be asked about a file, and by whom (spec §4.4, §4.5; D18, D21).

use countersign_core::rules::stored;
use countersign_core::rules::stored::{ReleaseState, StatusRefusal, file_status, files_to_sign};
use countersign_core::values::key::SecretKey;
use countersign_testing::{
    ACTIVE, HISTORY, INDEX, PENDING, PENDING_METADATA, Signers, World, alice, bob, carol, dave, key, mallory,
    path, release, signers,
};

/// Alice and Bob sign releases, Carol administrates, Dave is master, key 6 revokes.
fn team() -> Signers {
    signers("2026-01-31T10:00:00Z")
        .artifact(2, [&alice(), &bob()])
        .admin(1, [&carol()])
        .master(1, [&dave()])
        .revocation(1, [&key(6)])
}

fn collecting() -> World {
    let mut world = World::with(&team(), &[&alice(), &bob(), &carol(), &dave(), &key(6)]);
    world.add_release(&release("v1", "one"), &alice()).expect("a release");
    world
}

/// Without Alice and Carol, and with key 7 as another artifact signer.
fn next() -> Signers {
    signers("2026-02-01T09:00:00Z").artifact(1, [&bob(), &key(7)]).admin(1, [&bob()]).master(1, [&dave()])
}

fn status(world: &World, file: &str, caller: &SecretKey) -> Result<ReleaseState, StatusRefusal> {
    file_status(&world.repo, &path(file), &caller.public_key())
}

const COLLECTING: Result<ReleaseState, StatusRefusal> = Ok(ReleaseState::Collecting);
const COMPLETE: Result<ReleaseState, StatusRefusal> = Ok(ReleaseState::Complete);
const REVOKED: Result<ReleaseState, StatusRefusal> = Ok(ReleaseState::Revoked);

#[track_caller]
fn assert_no_signer(world: &World, file: &str, caller: &SecretKey) {
    let expected = StatusRefusal::NotASigner { key: caller.public_key(), path: path(file) };
    assert_eq!(status(world, file, caller), Err(expected));
}

/// The files to sign, by their paths and contents.
fn to_sign(world: &World, file: &str) -> Option<Vec<(String, String)>> {
    let files = files_to_sign(&world.repo, &path(file)).expect("a sound repository")?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    Some(files.into_iter().map(|(path, bytes)| (path.to_string(), text(&bytes))).collect())
}

#[test]
fn the_status_of_an_index_follows_its_signatures() {
    let mut world = collecting();
    assert_eq!(status(&world, INDEX, &alice()), COLLECTING);
    world.sign(INDEX, &alice()).unwrap();
    assert_eq!(status(&world, INDEX, &alice()), COLLECTING);
    world.sign(INDEX, &bob()).unwrap();
    assert_eq!(status(&world, INDEX, &alice()), COMPLETE);
    world.revoke_index(&key(6));
    assert_eq!(status(&world, INDEX, &alice()), REVOKED);
}

#[test]
fn any_role_of_the_current_signers_file_may_ask_whatever_copy_a_complete_index_has() {
    for caller in [alice(), carol(), dave(), key(6)] {
        assert_eq!(status(&collecting(), INDEX, &caller), COLLECTING);
    }
    assert_no_signer(&collecting(), INDEX, &mallory());
    let mut world = collecting();
    world.sign_all(INDEX, &[&alice(), &bob()]);
    world.rotate(&next(), &[&dave(), &key(7)]);
    assert_no_signer(&world, INDEX, &alice());
    assert_eq!(status(&world, INDEX, &key(7)), COMPLETE);
}

#[test]
fn a_registration_is_shown_to_its_own_keys_and_an_update_to_those_of_both_files() {
    let mut first = World::new();
    first.register(&team(), &alice()).unwrap();
    let mut world = collecting();
    world.update(&next(), &alice()).unwrap();
    for caller in [alice(), dave(), key(6)] {
        assert_eq!(status(&first, PENDING, &caller), COLLECTING);
    }
    for caller in [alice(), carol(), key(6), bob(), key(7)] {
        assert_eq!(status(&world, PENDING, &caller), COLLECTING);
    }
    assert_no_signer(&first, PENDING, &mallory());
    assert_no_signer(&world, PENDING, &mallory());
    assert_no_signer(&world, INDEX, &key(7));
}

#[test]
fn what_collects_no_signatures_has_no_status() {
    let world = collecting();
    let copy = format!("{INDEX}.signers.json");
    let elsewhere = "https/github.com/443/acme/app/releases/tag/v9/svc.index.json";
    for file in [ACTIVE, HISTORY, PENDING, &copy, elsewhere, "https/github.com/443/acme/app", "x"] {
        let refusal = status(&world, file, &alice()).unwrap_err();
        assert_eq!(refusal, StatusRefusal::NotFound(path(file)));
        assert_eq!(refusal.to_string(), format!("File not found: {file}"));
    }
    assert_eq!(status(&World::new(), INDEX, &mallory()), Err(StatusRefusal::NotFound(path(INDEX))));
}

#[test]
fn an_index_without_signers_above_it_says_so() {
    let mut world = collecting();
    world.repo.remove(&path(ACTIVE));
    assert_eq!(status(&world, INDEX, &alice()), Err(StatusRefusal::NoSigners(path(INDEX))));
}

#[test]
fn an_index_is_signed_alone_and_a_signers_file_with_its_metadata() {
    let mut world = collecting();
    for file in [PENDING, "https/github.com/443/acme/app", "x"] {
        assert_eq!(to_sign(&world, file), None, "{file}");
    }
    world.update(&next(), &alice()).unwrap();
    let text = |file: &str| (file.to_owned(), world.repo.text(file));
    let metadata = format!("{ACTIVE}.metadata.json");
    assert_eq!(to_sign(&world, INDEX), Some(vec![text(INDEX)]));
    assert_eq!(to_sign(&world, PENDING), Some(vec![text(PENDING), text(PENDING_METADATA)]));
    assert_eq!(to_sign(&world, ACTIVE), Some(vec![text(ACTIVE), text(&metadata)]));
    world.repo.remove(&path(&metadata));
    let error = files_to_sign(&world.repo, &path(ACTIVE)).unwrap_err();
    assert_eq!(error.path, path(&metadata), "a fault of ours");
}

#[test]
fn the_nearest_active_signers_file_governs_a_path() {
    let world = collecting();
    for below in [INDEX, ACTIVE, "https/github.com/443/acme/app", "https/github.com/443/acme/app/a/b"] {
        let governing = stored::signers_in_force(&world.repo, &path(below)).unwrap().expect(below);
        assert_eq!(*governing.bytes, *team().text().as_bytes());
    }
    for beside in ["https/github.com/443/acme", "https/github.com/443/acme/app2", "x"] {
        assert!(stored::signers_in_force(&world.repo, &path(beside)).unwrap().is_none(), "{beside}");
    }
}
