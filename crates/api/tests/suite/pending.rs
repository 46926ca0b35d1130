//! What waits for whom, and what an answer tells of it (D18, D21, D41).

use countersign_api::{answers, answers::Collecting, answers::PendingResponse};
use countersign_core::documents::{layout, said::ObjectionsFile};
use countersign_core::values::{bounds::LIST_ENTRIES, bounds::PENDING_LIST_BYTES, path::RepoPath};
use countersign_testing::{
    INDEX, PENDING, Signers, World, alice, bob, carol, dave, documents, key, path, public, release, signers,
};

/// Alice and Bob sign releases, Carol administrates, Dave is master.
fn team() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]).admin(1, [&carol()]).master(1, [&dave()])
}

fn collecting() -> World {
    let mut world = World::with(&team(), &[&alice(), &bob(), &carol(), &dave()]);
    world.add_release(&release("v1", "one"), &alice()).expect("a release");
    world
}

/// Without Alice and Carol, and with key 7 as another artifact signer.
fn next() -> Signers {
    signers("2026-02-01T09:00:00Z").artifact(1, [&bob(), &key(7)]).admin(1, [&bob()]).master(1, [&dave()])
}

fn who(world: &World, file: &str) -> Option<Collecting> {
    answers::collecting(&world.repo, &path(file)).expect("a sound repository")
}

#[test]
fn an_index_waits_for_its_artifact_signers() {
    let mut world = collecting();
    world.sign(INDEX, &alice()).unwrap();
    let expected = Collecting { accepted: public([&alice(), &bob()]), signed: public([&alice()]) };
    assert_eq!(who(&world, INDEX), Some(expected));
    world.sign(INDEX, &bob()).unwrap();
    assert_eq!(who(&world, INDEX), None);
}

#[test]
fn master_keys_see_signers_proposals_and_no_indexes() {
    let mut world = collecting();
    world.update(&next(), &alice()).unwrap();
    let proposal = who(&world, PENDING).unwrap();
    assert_eq!(proposal.accepted, public([&carol(), &dave(), &bob(), &key(7)]));
    assert!(!who(&world, INDEX).unwrap().accepted.contains(&dave().public_key()));
}

#[test]
fn the_list_has_the_objections_that_stand() {
    let mut world = collecting();
    world.object(Some("not my build"), &carol()).unwrap();
    world.pass(1);
    world.object(Some("nor mine"), &dave()).unwrap();
    world.pass(1);
    world.object(None, &carol()).unwrap();
    let waiting = [path(INDEX)];
    let answer = PendingResponse::within(usize::MAX, &world.repo, waiting.iter());
    let shown: Vec<_> = answer.objections.iter().map(|entry| entry.objection.as_str()).collect();
    assert_eq!(shown, ["nor mine"]);
    assert_eq!(answer.objections[0].file_path, path(INDEX));
    let written = serde_json::to_vec(&answer).unwrap();
    assert_eq!(PendingResponse::parse(&written), Ok(answer));
}

#[test]
fn the_list_has_a_hundred_objections_and_no_more() {
    let mut world = collecting();
    world.add_release(&release("v2", "two"), &alice()).unwrap();
    let waiting = [path(INDEX), path(&INDEX.replace("/v1/", "/v2/"))];
    let entry = documents::objections().entries[&alice().public_key()].clone();
    for (index, count) in waiting.iter().zip([60, 41]) {
        let entries = (0..count).map(|n| (key(100 + n).public_key(), entry.clone())).collect();
        world.repo.put(&layout::objections_of(index), &ObjectionsFile { entries }.write());
    }
    let answer = PendingResponse::within(usize::MAX, &world.repo, waiting.iter());
    assert_eq!(answer.objections.len(), LIST_ENTRIES);
}

/// Pending signers of so many new projects, of an active one, and an index.
fn with_strangers(strangers: usize) -> (World, Vec<RepoPath>) {
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
    let (world, paths) = with_strangers(100);
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

/// Paths of pending signers that take exactly so many bytes of the list.
fn long_paths(bytes: usize) -> Vec<RepoPath> {
    let path_of = |number: usize, bytes: usize| {
        let project = format!("n{number:05}/{}", "a/".repeat(3));
        let rest = bytes - 3 - PENDING.len() - project.len() + "acme/app".len();
        path(&PENDING.replace("acme/app", &format!("{project}{}", "b".repeat(rest))))
    };
    const EACH: usize = 250;
    let first = EACH + bytes % EACH;
    (0..bytes / EACH).map(|number| path_of(number, if number == 0 { first } else { EACH })).collect()
}

#[test]
fn the_list_of_what_waits_ends_exactly_at_its_bound() {
    let world = World::with(&one_signer(), &[&alice()]);
    let within = |paths: &[RepoPath]| PendingResponse::within(PENDING_LIST_BYTES, &world.repo, paths.iter());
    let paths = long_paths(PENDING_LIST_BYTES);
    let full = within(&paths);
    assert_eq!((full.file_paths.len(), full.left_out), (paths.len(), 0));
    let written = full.file_paths.iter().map(|path| format!("{:?},", path.as_str()).len()).sum::<usize>();
    assert_eq!(written, PENDING_LIST_BYTES);

    let longer = long_paths(PENDING_LIST_BYTES + 1);
    let cut = within(&longer);
    assert_eq!((cut.file_paths.len(), cut.left_out), (longer.len() - 1, 1));
}
