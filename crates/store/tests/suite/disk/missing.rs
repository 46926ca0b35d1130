//! Objects that went missing or were damaged on disk: readers are told which file, and nothing about the disk.

use std::{fs, os::unix::fs::PermissionsExt as _, path::MAIN_SEPARATOR, path::Path};

use countersign_core::rules::snapshot::{ReadError, Snapshot};

use crate::support::{Fixture, foreign_repository, path, put, read};

const NAME: &str = "svc.other.json";

/// What a reader is told when `harm` was done to the one blob of a repository.
fn read_errors(harm: impl Fn(&Path)) -> (Fixture, [ReadError; 2]) {
    let fixture = Fixture::new();
    foreign_repository(&fixture, "main", "100644", "svc.repository.json");
    let store = fixture.start();
    harm(&fixture.loose_object(NAME));
    let head = store.head();
    let errors = [
        head.read(&path(NAME)).expect_err("the blob is gone"),
        head.read_signers(&path(NAME)).expect_err("the blob is gone"),
    ];
    (fixture, errors)
}

/// The error names the file in the repository, and no place on disk.
#[track_caller]
fn assert_tells_the_file_alone(fixture: &Fixture, error: &ReadError) {
    assert_eq!(error.path, path(NAME));
    let text = error.to_string();
    assert!(text.contains(NAME), "{text}");
    let object = fixture.loose_object(NAME);
    for place in [fixture.dir.path(), Path::new(object.file_name().unwrap()), Path::new("objects")] {
        assert!(!text.contains(place.to_str().unwrap()), "{text}");
    }
    assert!(!text.contains(MAIN_SEPARATOR), "{text}");
}

#[test]
fn a_missing_blob_is_told_by_the_name_of_its_file_alone() {
    let (fixture, errors) = read_errors(|object| fs::remove_file(object).unwrap());
    for error in &errors {
        assert_tells_the_file_alone(&fixture, error);
    }
}

#[test]
fn a_damaged_blob_is_told_by_the_name_of_its_file_alone() {
    let damages: [&[u8]; 3] = [b"", b"not deflated", b"\x78\x01\x03\x00\x00\x00\x00\x01"];
    for damage in damages {
        let (fixture, errors) = read_errors(|object| {
            fs::set_permissions(object, fs::Permissions::from_mode(0o644)).unwrap();
            fs::write(object, damage).unwrap();
        });
        for error in &errors {
            assert_tells_the_file_alone(&fixture, error);
        }
    }
}

#[tokio::test]
async fn a_missing_blob_stops_no_other_file() {
    let (fixture, _) = read_errors(|object| fs::remove_file(object).unwrap());
    let store = fixture.start();
    put(&store, &["+a/b=1"]).await.unwrap();
    assert_eq!(read(&store.head(), "a/b").as_deref(), Some("1"));
    put(&store, &[&format!("+{NAME}=anew")]).await.unwrap();
    assert_eq!(read(&store.head(), NAME).as_deref(), Some("anew"));
}
