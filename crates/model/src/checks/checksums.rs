//! Checksums files (D24). Another file follows after each NUL.

use countersign_core::{
    documents::{
        index::{Digests, PublishedFile, ReleaseIndex},
        layout,
    },
    rules::place::check_place,
    values::path::RepoPath,
};
use countersign_forge::checksums::file::Checksums;
use countersign_forge::checksums::locate_checksums;

use super::{index::assert_asset_name, promises::assert_shown};

pub fn check(data: &[u8]) {
    let mut merged = Checksums::default();
    let files: Vec<&[u8]> = data.splitn(3, |byte| *byte == 0).collect();
    for (i, file) in files.iter().enumerate() {
        if let Err(error) = merged.add_file(&format!("file {i}"), file) {
            assert_shown(&error);
            return;
        }
        check_one(file);
    }
    assert!(!merged.files.is_empty(), "a file without a checksum is refused");
    for (name, digests) in &merged.files {
        assert_asset_name(name.as_str());
        assert_ne!(*digests, Digests::default());
    }
    assert!(merged.check_count(merged.files.len()).is_ok());
    assert!(merged.check_count(merged.files.len() - 1).is_err());
    check_order(&files, &merged);
    check_index(&merged);
}

/// Checks that adding a file again changes nothing, and that its content can be written in the formats of GNU and BSD.
fn check_one(file: &[u8]) {
    let mut read = Checksums::default();
    read.add_file("first", file).expect("what can be merged can be read alone");
    let mut twice = read.clone();
    twice.add_file("again", file).expect("a file agrees with itself");
    assert_eq!(twice, read);
    let (mut gnu, mut bsd) = (String::new(), String::new());
    for (name, Digests { sha256, sha512 }) in &read.files {
        let digests = [("SHA256", sha256.map(|d| d.to_string())), ("SHA512", sha512.map(|d| d.to_string()))];
        for (tag, hex) in digests.into_iter().filter_map(|(tag, hex)| Some((tag, hex?))) {
            gnu += &format!("{hex}  ./{name}\r\n");
            bsd += &format!("# comment\n{tag} (./{name}) = {}\n\n", hex.to_uppercase());
        }
    }
    for text in [gnu, bsd] {
        let mut again = Checksums::default();
        again.add_file("written", text.as_bytes()).expect("names and digests can be written in both forms");
        assert_eq!(again, read, "{text}");
    }
}

fn check_order(files: &[&[u8]], merged: &Checksums) {
    let mut reversed = Checksums::default();
    for file in files.iter().rev() {
        reversed.add_file("file", file).expect("the order of files does not matter");
    }
    assert_eq!(&reversed, merged);
}

/// Clients accept the index that the server makes of it.
fn check_index(merged: &Checksums) {
    let source = locate_checksums(&["https://files.example/acme/app/1.0/SHA256SUMS".to_owned()])
        .expect("this URL names a checksums file");
    let published_files = merged.files.iter().map(|(name, digests)| PublishedFile {
        file_name: name.clone(),
        size: None,
        source: source.url_of(name.as_str()),
        digests: *digests,
    });
    let index = ReleaseIndex {
        project_id: RepoPath::parse("https/files.example/443/acme/app").expect("a path"),
        release_url: None,
        mirrored_on: countersign_core::values::time::Timestamp::from_unix_seconds(0)
            .expect("in the range of timestamps"),
        published_on: None,
        published_files: published_files.collect(),
    };
    assert_eq!(ReleaseIndex::parse(&index.write()).as_ref(), Ok(&index), "sorted, one entry a file");
    assert_eq!(check_place(&index, &layout::index_in(&source.dir)), Ok(()));
}
