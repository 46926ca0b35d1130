//! What an answer tells of all that waits for a key (D21, D41).

use countersign_api::answers::PendingResponse;
use countersign_core::values::path::RepoPath;
use countersign_testing::{INDEX, PENDING, Signers, World, alice, path, signers};

/// Pending signers of so many new projects, of an active one, and an index.
fn waiting(strangers: usize) -> (World, Vec<RepoPath>) {
    let mut world = World::with(&one_signer(), &[&alice()]);
    world.update(&signers("2026-02-01T09:00:00Z").artifact(1, [&alice()]), &alice()).expect("an update");
    let mut paths = vec![path(INDEX), path(PENDING)];
    paths.extend((0..strangers).map(|n| path(&PENDING.replace("acme/app", &format!("a/{n:04}")))));
    paths.sort();
    (world, paths)
}

fn one_signer() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(1, [&alice()])
}

#[test]
fn a_list_of_what_waits_has_room_for_all_that_is_no_strangers_registration() {
    let (world, paths) = waiting(100);
    let bytes = |paths: &[RepoPath]| paths.iter().map(|path| path.as_str().len() + 3).sum::<usize>();
    let within = |most_bytes| PendingResponse::within(most_bytes, &world.repo, paths.iter());
    let all = within(bytes(&paths));
    assert_eq!((all.file_paths, all.left_out), (paths.clone(), 0));

    let one_less = within(bytes(&paths) - 1);
    assert_eq!((one_less.file_paths.len(), one_less.left_out), (paths.len() - 1, 1));
    assert!(one_less.file_paths.is_sorted());

    let own = [path(INDEX), path(PENDING)];
    let few = within(bytes(&own));
    assert_eq!(
        (few.file_paths.as_slice(), few.left_out),
        (&own[..], 100),
        "though strangers come first by name"
    );
    let none = within(0);
    assert_eq!((none.file_paths.len(), none.left_out), (0, 102));
}
