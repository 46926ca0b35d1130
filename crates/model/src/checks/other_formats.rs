//! Signatures for other programs (D101, D102): the stored file, or one text.

use countersign_core::{
    documents::other_formats::OtherFormatsFile,
    values::{
        key::SecretKey,
        other_format::{OtherFormat, ReleaseSums, minisign, ssh},
        path::RepoPath,
    },
};

use super::promises::check_document;

/// The text that the signatures in the seeds sign.
pub const SUMS: &str = include_str!("../../../core/tests/vectors/formats/SHA256SUMS");
const INDEX: &str = "https/github.com/443/acme/app/releases/tag/v1/svc.index.json";

pub fn check(data: &[u8]) {
    let index = RepoPath::parse(INDEX).expect("a path");
    let sums = ReleaseSums { index: &index, text: SUMS };
    if let Some(file) = check_document(data, OtherFormatsFile::parse, OtherFormatsFile::write) {
        let kept = file.keep_verifying(&sums);
        assert_eq!(kept.keep_verifying(&sums), kept);
        assert!(OtherFormat::ALL.into_iter().all(|format| kept.count(format) <= file.count(format)));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let key = SecretKey::from_seed(&[1; 32]).public_key();
    let comment = minisign::trusted_comment(&index);
    // What is read is written again as the same text.
    if let Some(signature) = ssh::parse(text, &key) {
        assert_eq!(ssh::write(&key, &signature), text);
    }
    if let Some(pair) = minisign::parse(text, &key, &comment) {
        assert_eq!(minisign::write(&key, &comment, &pair), text);
    }
    let read = OtherFormat::ALL.map(|format| format.verify(text, &key, &sums).is_ok());
    assert!(read != [true, true], "no text is of two formats");
}
