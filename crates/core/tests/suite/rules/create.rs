//! The first commit of a repository.

use countersign_core::documents::layout::{FORMAT, RepositoryMarker};
use countersign_core::rules::decide::register::create;
use countersign_testing::at;

#[test]
fn a_new_repository_begins_with_its_marker_and_nothing_else() {
    let change = create(at("2026-02-01T12:00:00.5Z"));
    assert_eq!(change.message, "Create the repository\n");
    let files: Vec<_> = change.files.into_iter().collect();
    let [(path, Some(bytes))] = &files[..] else { panic!("one file is written: {files:?}") };
    assert_eq!(*path, RepositoryMarker::path());
    let marker = RepositoryMarker::parse(bytes).unwrap();
    assert_eq!((marker.format, marker.created_at), (FORMAT, at("2026-02-01T12:00:00Z")));
}
