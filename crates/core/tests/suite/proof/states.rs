//! The state of a release or a project as files (D232): what is found at a path, and nothing that its author did not
//! sign.

use countersign_core::documents::layout;
use countersign_core::proof::state::{State, StateSubject};
use countersign_core::rules::snapshot::{Scratch, Snapshot as _};
use countersign_core::rules::{stored, stored::collected_signatures};
use countersign_core::values::{other_format::OtherFormat, path::RepoPath};
use countersign_testing::{
    INDEX, PENDING, PROJECT, Signers, World, alice, bob, key, path, public, release, signers,
};

fn team(time: &str) -> Signers {
    signers(time).artifact(2, [&alice(), &bob()]).builders(1, [&key(7)]).rebuilt(&["*"])
}

/// The release v1 with a signature and an objection, and new signers with a signature.
fn waiting() -> World {
    let mut world = World::with(&team("2026-01-31T10:00:00Z"), &[&alice(), &bob(), &key(7)]);
    world.add_release(&release("v1", "one"), &alice()).expect("a release");
    world.submit(&world.submission_with(&alice(), &[OtherFormat::Ssh])).expect("a signature");
    world.object(Some("not my build"), &bob()).expect("an objection");
    world.state(&world.rebuild(), &key(7)).expect("a rebuild");
    world.update(&team("2026-02-01T10:00:00Z"), &alice()).expect("an update");
    world.sign(PENDING, &bob()).expect("a signature");
    world
}

fn state(world: &World, about: &str) -> State {
    let subject = StateSubject::find(&world.repo, &path(about)).expect("something is there");
    State::gather(&world.repo, subject).expect("a readable state")
}

fn files(state: &State) -> Scratch {
    state.to_files().expect("files")
}

#[test]
fn what_is_found_in_a_directory_depends_on_what_is_there() {
    let dir = path("https/example.org/443/app");
    let (index, mut files) = (layout::index_in(&dir), Scratch::default());
    let is_nothing = |files: &Scratch| {
        [&dir, &index, &layout::pending_signers(&dir), &layout::active_signers(&dir)]
            .map(|at| StateSubject::find(files, at).is_none())
    };
    assert_eq!(is_nothing(&files), [true; 4]);
    let release = Some(StateSubject::Release(index.clone()));
    let project = Some(StateSubject::Project(dir.clone()));
    files.put(layout::withdrawal_of(&index), *b"gone");
    assert_eq!([&dir, &index].map(|at| StateSubject::find(&files, at)), [release.clone(), release.clone()]);
    for signers in [layout::pending_signers(&dir), layout::active_signers(&dir)] {
        let mut files = files.clone();
        files.put(signers.clone(), *b"signers");
        assert_eq!(StateSubject::find(&files, &signers), project);
        let expected = if signers == layout::pending_signers(&dir) { &project } else { &release };
        assert_eq!(&StateSubject::find(&files, &dir), expected);
        files.put(index.clone(), *b"there");
        assert_eq!(StateSubject::find(&files, &dir), release);
        files.remove(&index);
        files.remove(&layout::withdrawal_of(&index));
        assert_eq!(StateSubject::find(&files, &dir), project);
        assert_eq!(StateSubject::find(&files, &index), None);
    }
    let parent = dir.parent().expect("a parent");
    assert_eq!(StateSubject::find_tag(&files, &parent, "app"), release);
    assert_eq!(StateSubject::find_tag(&files, &parent, "other"), None);
    let of_tag = layout::index_in(&layout::release_dir(&parent, "app").expect("a directory"));
    files.put(of_tag.clone(), *b"there");
    assert_eq!(StateSubject::find_tag(&files, &parent, "app"), Some(StateSubject::Release(of_tag)));
}

#[test]
fn a_release_keeps_what_was_signed_about_it() {
    let state = state(&waiting(), INDEX);
    let kept = files(&state);
    let index = path(INDEX);
    assert_eq!(collected_signatures(&kept, &index).expect("signatures").signers(), public([&alice()]));
    assert_eq!(stored::objections(&kept, &index).expect("objections").entries.len(), 1);
    assert!(!stored::rebuilds(&kept, &index).expect("rebuilds").is_empty());
    assert_eq!(stored::other_formats(&kept, &index).expect("formats").entries.len(), 1);
    let mut other = state;
    other.files.get_mut(&index).expect("the index").push(' ');
    let kept = files(&other);
    assert_eq!(collected_signatures(&kept, &index).expect("signatures").signers(), public([]));
    let of_nothing = [layout::objections_of(&index), layout::rebuilds_of(&index)];
    assert!(of_nothing.iter().all(|file| !kept.contains(file)));
}

#[test]
fn a_complete_release_keeps_rebuilds_and_a_begun_revocation() {
    let team = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).builders(1, [&key(7)]).rebuilt(&["*"]);
    let mut world = World::with(&team.revocation(2, [&alice(), &bob()]), &[&alice(), &bob(), &key(7)]);
    world.release_signed_by(&[&alice()]);
    let index = path(INDEX);
    let kept = files(&state(&world, INDEX));
    assert!(kept.contains(&index) && !kept.contains(&layout::rebuilds_of(&index)));
    world.state(&world.rebuild(), &key(7)).expect("a rebuild");
    assert!(!stored::rebuilds(&files(&state(&world, INDEX)), &index).expect("rebuilds").is_empty());
    let begun = world.revoke_request(&world.revocation_document("a bad build"), &bob());
    world.revoke(&begun).expect("a begun revocation");
    let signed = stored::begun_signatures(&files(&state(&world, INDEX)), &index).expect("signatures");
    assert_eq!(signed.signers(), public([&bob()]));
}

#[test]
fn proposed_signers_keep_only_signatures_on_themselves() {
    let mut state = state(&waiting(), PROJECT);
    let pending = path(PENDING);
    let signed = |state: &State| collected_signatures(&files(state), &pending).expect("signatures").signers();
    assert_eq!(signed(&state), public([&bob()]));
    state.files.get_mut(&pending).expect("the file").push(' ');
    assert_eq!(signed(&state), public([]));
}

#[test]
fn only_files_of_the_subject_are_taken_and_a_withdrawal_only_of_its_own_index() {
    let mut world = waiting();
    let foreign = world.withdrawal(INDEX, "the wrong tag", &alice());
    world.withdraw_as(&foreign).expect("a withdrawal");
    let withdrawn = state(&world, INDEX);
    let withdrawal = layout::withdrawal_of(&path(INDEX));
    assert!(files(&withdrawn).contains(&withdrawal));
    let text = withdrawn.files[&withdrawal].clone();

    let mut about = |tag: &str| {
        let index = world.add_release(&release(tag, tag), &alice()).expect("a release");
        (state(&world, index.as_str()), index)
    };
    let (mut state, index): (State, RepoPath) = about("v2");
    let strangers = [withdrawal, path("https/github.com/443/acme/app/releases/tag/v2/x"), path(PENDING)];
    for (file, text) in strangers.iter().map(|file| (file, text.clone())) {
        state.files.insert(file.clone(), text);
    }
    state.files.insert(layout::withdrawal_of(&index), text);
    let kept = files(&state);
    assert!(strangers.iter().chain([&layout::withdrawal_of(&index)]).all(|file| !kept.contains(file)));
    assert!(kept.contains(&index));
}
