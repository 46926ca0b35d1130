//! Repositories: one in a map, and the real `git`, which looks at those on disk and changes them.

use std::process::{Command, Stdio};
use std::{collections::BTreeMap, io::Write as _, path::Path, sync::Arc};

use countersign_core::documents::{history::History, signers::Metadata};
use countersign_core::rules::snapshot::{Change, ReadError, Snapshot};
use countersign_core::rules::{chain, chain::ChainRefusal, chain::LocatedChain, stored};
use countersign_core::values::{path::RepoPath, time::Timestamp};

use crate::literals::path;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repo {
    files: BTreeMap<RepoPath, Arc<[u8]>>,
}

impl Repo {
    /// Applies a change as the store would, and fails where the store would have to.
    pub fn apply(&mut self, change: &Change) {
        assert!(change.is_empty() || !change.message.is_empty(), "a commit says what happened");
        for (file, content) in &change.files {
            match content {
                Some(bytes) => {
                    self.files.insert(file.clone(), bytes.clone());
                }
                None => {
                    let removed = self.files.remove(file);
                    assert!(removed.is_some(), "{file} is deleted, and was not there");
                }
            }
        }
        for file in self.files.keys() {
            for dir in file.self_and_ancestors().skip(1) {
                assert!(!self.files.contains_key(&dir), "{dir} is a file and a directory");
            }
        }
    }

    pub fn put(&mut self, file: &RepoPath, bytes: &[u8]) {
        self.files.insert(file.clone(), bytes.into());
    }

    pub fn remove(&mut self, file: &RepoPath) {
        self.files.remove(file).expect("a file to remove");
    }

    pub fn bytes(&self, file: &str) -> Arc<[u8]> {
        self.files
            .get(&path(file))
            .unwrap_or_else(|| panic!("no file {file} among {:#?}", self.names()))
            .clone()
    }

    pub fn text(&self, file: &str) -> String {
        String::from_utf8(self.bytes(file).to_vec()).expect("our files are text")
    }

    /// The history of a project, from its entries; empty where it has none.
    pub fn history(&self, project: &str) -> History {
        let project = path(project);
        let entries = 1..=stored::history_len(self, &project);
        stored::history(self, &project, entries).expect("a readable history")
    }

    /// The history up to and including the signers file that governs a file.
    pub fn chain_of(&self, file: &str) -> Result<History, ChainRefusal> {
        let LocatedChain { project, last } = chain::locate(self, &path(file))?;
        Ok(stored::history(self, &project, 1..=last)?)
    }

    pub fn has(&self, file: &str) -> bool {
        self.files.contains_key(&path(file))
    }

    pub fn names(&self) -> Vec<&str> {
        self.files.keys().map(RepoPath::as_str).collect()
    }

    /// The names below a directory, relative to it.
    pub fn names_below(&self, dir: &str) -> Vec<&str> {
        let prefix = format!("{dir}/");
        self.names().into_iter().filter_map(|name| name.strip_prefix(prefix.as_str())).collect()
    }

    fn projects(&self) -> impl Iterator<Item = RepoPath> {
        self.files.keys().filter_map(|file| {
            let dir = file.as_str().strip_suffix("/svc.signers.json")?;
            let project =
                dir.strip_suffix("/svc.signers").or_else(|| dir.strip_suffix("/svc.signers.pending"))?;
            Some(path(project))
        })
    }
}

impl Snapshot for Repo {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        Ok(self.files.get(path).cloned())
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.files.contains_key(path)
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        Ok(self.files.keys().filter(|file| file.is_inside(dir)).cloned().collect())
    }

    fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath> {
        let lower = |project: &RepoPath| path(&project.as_str().to_ascii_lowercase());
        let id = lower(id);
        let overlaps = |other: &RepoPath| *other == id || other.is_inside(&id) || id.is_inside(other);
        let mut projects: Vec<RepoPath> =
            self.projects().filter(|project| overlaps(&lower(project))).collect();
        projects.dedup();
        projects
    }

    fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp> {
        let pending = self.files.iter().filter_map(|(file, bytes)| {
            let project =
                file.as_str().strip_suffix("/svc.signers.pending/svc.signers.json.metadata.json")?;
            let is_new = !self.files.contains_key(&path(&format!("{project}/svc.signers/svc.signers.json")));
            let is_below = path(project).is_inside(dir);
            (is_new && is_below).then(|| Metadata::parse(bytes).expect("metadata").origin.retrieved_at)
        });
        pending.collect()
    }

    fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath> {
        let collecting = self.files.keys().filter(|file| file.is_inside(project)).filter_map(|file| {
            let index = file.as_str().strip_suffix(".signatures.json.pending")?;
            index.ends_with("/svc.index.json").then(|| path(index))
        });
        collecting.collect()
    }
}

// The real `git`.

/// What `git` prints about a repository, and what it says besides. It must succeed. Nothing of the machine's
/// configuration counts. Its commits have a time of our clocks: a store changes nothing that was made long after its
/// own time (D191).
#[track_caller]
pub fn run_git(repository: &Path, arguments: &[&str], input: &[u8]) -> (Vec<u8>, String) {
    let mut command = Command::new("git");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    command.env("GIT_COMMITTER_DATE", "1700000000 +0000").arg("-C").arg(repository).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("`git` is on the path");
    running.stdin.take().expect("piped").write_all(input).expect("git reads its input");
    let output = running.wait_with_output().expect("git ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {}{said}", String::from_utf8_lossy(&output.stdout));
    (output.stdout, said)
}

/// What it prints and says, as one text.
#[track_caller]
pub fn git(repository: &Path, arguments: &[&str], input: &[u8]) -> String {
    let (printed, said) = run_git(repository, arguments, input);
    String::from_utf8_lossy(&printed).into_owned() + &said
}
