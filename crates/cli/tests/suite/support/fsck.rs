//! `countersign fsck` on histories that someone has rewritten.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::{past::Past, past::past, rewriting::Commit, rewriting::import, server::Launch};

pub(crate) struct Checked {
    pub(crate) code: Option<i32>,
    pub(crate) json: Value,
}

pub(crate) fn fsck(dir: &Path, args: &[&str]) -> Checked {
    let dir = dir.to_str().expect("a plain name");
    let output = Launch::default().args(["fsck", dir, "--json"]).args(args.iter().copied()).output();
    let text = String::from_utf8_lossy(&output.stdout);
    let json = serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
    Checked { code: output.status.code(), json }
}

impl Checked {
    /// A good check; the commit to begin with next time.
    #[track_caller]
    pub(crate) fn is_clean(&self) -> String {
        assert_eq!(self.code, Some(0), "{:#}", self.json);
        assert_eq!(self.json["found"], 0, "{:#}", self.json);
        self.json["head"].as_str().expect("a commit").to_owned()
    }

    /// That the first finding is about this commit, and that one of the findings on it names this file, in these words.
    #[track_caller]
    pub(crate) fn finds(&self, commit: &str, file: &str, words: &str) {
        assert_eq!(self.code, Some(3), "{:#}", self.json);
        let findings = self.json["findings"].as_array().expect("findings");
        assert_eq!(findings.first().expect("a finding")["commit"], commit, "{:#}", self.json);
        let named = findings.iter().filter(|finding| finding["commit"] == commit).any(|finding| {
            let mut files = finding["files"].as_array().expect("files").iter();
            let reason = finding["reason"].as_str().expect("a reason");
            (file.is_empty() || files.any(|named| named == file)) && reason.contains(words)
        });
        assert!(named, "no finding on {commit} names {file} and says {words:?}: {:#}", self.json);
    }
}

/// What is to be found: the position of a commit, a file, and words of the reason.
pub(crate) type Expected = (usize, String, &'static str);

/// What was tampered with is found where it was made.
#[track_caller]
pub(crate) fn assert_found(tamper: impl FnOnce(&Past, &mut Vec<Commit>) -> Expected) {
    let past = past();
    let mut commits = past.commits.clone();
    let (position, file, words) = tamper(past, &mut commits);
    let dir = TempDir::new().expect("a temporary directory");
    let ids = import(dir.path(), &commits);
    fsck(dir.path(), &[]).finds(&ids[position], &file, words);
}
