//! Objects that went missing or were damaged on disk: readers are told which file, and nothing about the disk.

use std::{fs, os::unix::fs::PermissionsExt as _, path::MAIN_SEPARATOR};

use countersign_core::rules::snapshot::Snapshot;

use crate::support::{Fixture, foreign_repository, path, put, read};

const NAME: &str = "svc.other.json";

/// A repository made by hand whose one blob was harmed while a store has it open: what its readers are told, and that
/// it stops no other file.
#[tokio::test]
async fn a_missing_or_damaged_blob_is_told_by_the_name_of_its_file_alone_and_stops_no_other() {
    let damages: [Option<&[u8]>; 4] =
        [None, Some(b""), Some(b"not deflated"), Some(b"\x78\x01\x03\x00\x00\x00\x00\x01")];
    let whole = Fixture::new();
    foreign_repository(&whole, "main", "100644", "svc.repository.json");
    assert_eq!(read(&whole.start().head(), NAME).as_deref(), Some("{}\n"), "a loose object is read");
    for damage in damages {
        let fixture = Fixture::new();
        foreign_repository(&fixture, "main", "100644", "svc.repository.json");
        let store = fixture.start();
        let object = fixture.loose_object(NAME);
        fs::set_permissions(&object, fs::Permissions::from_mode(0o644)).unwrap();
        match damage {
            Some(bytes) => fs::write(&object, bytes).unwrap(),
            None => fs::remove_file(&object).unwrap(),
        }
        let head = store.head();
        let name = path(NAME);
        for error in [head.read(&name).unwrap_err(), head.read_signers(&name).unwrap_err()] {
            assert_eq!(error.path, name);
            let text = error.to_string();
            assert!(
                text.contains(NAME) && !text.contains(MAIN_SEPARATOR) && !text.contains("objects"),
                "{text}"
            );
            assert!(!text.contains(object.file_name().unwrap().to_str().unwrap()), "{text}");
        }
        drop(store);
        let store = fixture.start();
        put(&store, &["+a/b=1"]).await.unwrap();
        assert_eq!(read(&store.head(), "a/b").as_deref(), Some("1"));
        put(&store, &[&format!("+{NAME}=anew")]).await.unwrap();
        assert_eq!(read(&store.head(), NAME).as_deref(), Some("anew"));
    }
}
