//! A log as a stranger derives it: from what `git` shows of a repository, in the plainest way, with none of the code
//! that keeps logs.

use std::{collections::BTreeMap, collections::HashMap, path::Path};

use countersign_core::values::digest::{Sha256, Sha512};

use crate::repo::run_git;

const INDEX: &str = "svc.index.json";

/// The leaves of all commits on the branch, oldest first, as texts.
pub fn derive_leaves(repository: &Path) -> Vec<String> {
    let commits = git(repository, &["rev-list", "--reverse", "main"]);
    let mut derived = DerivedStatuses::default();
    let commits = String::from_utf8(commits).expect("hexadecimal");
    commits.lines().map(|commit| derived.next_leaf(repository, commit)).collect()
}

/// The root of a Merkle tree over these texts (RFC 6962, 2.1).
pub fn root_of(leaves: &[String]) -> Sha256 {
    match leaves {
        [] => Sha256::of(b""),
        [leaf] => Sha256::of(&[b"\0", leaf.as_bytes()].concat()),
        _ => {
            let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
            let (left, right) = (root_of(left), root_of(right));
            Sha256::of(&[b"\x01", left.as_bytes().as_slice(), right.as_bytes()].concat())
        }
    }
}

#[derive(Default)]
struct DerivedStatuses {
    files: HashMap<String, Vec<u8>>,
    /// Releases by the path of the index: their number, and the digest of the revocation.
    releases: BTreeMap<String, (usize, Option<Sha512>)>,
    /// Projects: the length of the history, and the completed indexes.
    projects: BTreeMap<String, (usize, Vec<String>)>,
}

impl DerivedStatuses {
    fn next_leaf(&mut self, repository: &Path, commit: &str) -> String {
        let object = Sha256::of(&git(repository, &["cat-file", "commit", commit]));
        let listed = git(
            repository,
            &["diff-tree", "-r", "--root", "--no-renames", "--no-commit-id", "-z", "--raw", commit],
        );
        let listed = String::from_utf8(listed).expect("paths are UTF-8");
        let mut fields = listed.split_terminator('\0');
        let mut changed = BTreeMap::new();
        while let (Some(kinds), Some(path)) = (fields.next(), fields.next()) {
            let blob = kinds.split(' ').nth(3).expect("the id of the new blob");
            let is_gone = blob.bytes().all(|digit| digit == b'0');
            let content = (!is_gone).then(|| git(repository, &["cat-file", "blob", blob]));
            changed.insert(path.to_owned(), content);
        }
        let mut list = String::new();
        for (path, content) in &changed {
            match content {
                Some(content) => {
                    list += &format!("{path}\0{}\n", Sha256::of(content));
                    self.files.insert(path.clone(), content.clone());
                }
                None => {
                    list += &format!("{path}\0-\n");
                    self.files.remove(path);
                }
            }
        }
        self.note(&changed);
        let (changes, state) = (Sha256::of(list.as_bytes()), self.root());
        format!("countersign/leaf/v1\ncommit {commit}\nobject {object}\nchanges {changes}\nstate {state}\n")
    }

    fn note(&mut self, changed: &BTreeMap<String, Option<Vec<u8>>>) {
        let written = |path: &String| changed[path].is_some();
        for path in changed.keys().filter(|path| written(path)) {
            if let Some(project) = path.strip_suffix("/svc.signers/svc.signers.json") {
                let dir = format!("{project}/svc.signers.history/");
                let length = self.files.keys().filter(|path| path.starts_with(&dir)).count();
                self.projects.entry(project.to_owned()).or_default().0 = length;
            }
        }
        for path in changed.keys().filter(|path| written(path)) {
            let Some((dir, name)) = path.rsplit_once('/') else { continue };
            let index = format!("{dir}/{INDEX}");
            if name == format!("{INDEX}.signatures.json") {
                let project = self.project_of(&index);
                let (_, completed) = self.projects.get_mut(&project).expect("a project");
                completed.push(index.clone());
                self.releases.insert(index, (completed.len(), None));
            } else if name == format!("{INDEX}.revocation.json") {
                let revocation = Sha512::of(&self.files[path]);
                self.releases.get_mut(&index).expect("a complete release").1 = Some(revocation);
            }
        }
    }

    fn project_of(&self, index: &str) -> String {
        let is_above = |project: &&String| index.starts_with(&format!("{project}/"));
        self.projects.keys().find(is_above).expect("it lies in a project").clone()
    }

    fn root(&self) -> Sha256 {
        let mut map = BTreeMap::new();
        let key = |kind: &str, path: &str| *Sha256::of(format!("{kind}\0{path}").as_bytes()).as_bytes();
        for (path, (number, revocation)) in &self.releases {
            let index = Sha512::of(&self.files[path]);
            let state = revocation.map_or("complete".to_owned(), |digest| format!("revoked {digest}"));
            let record = format!(
                "countersign/release/v1\npath {path}\nnumber {number}\nindex {index}\nstate {state}\n"
            );
            map.insert(key("release", path), record);
        }
        for (path, (history, completed)) in &self.projects {
            let signers = Sha512::of(&self.files[&format!("{path}/svc.signers/svc.signers.json")]);
            let count = completed.len();
            let mut record = format!(
                "countersign/project/v1\npath {path}\nsigners {signers}\nhistory {history}\ncompleted {count}\n"
            );
            for (at, index) in completed.iter().enumerate().rev().take(8) {
                record += &format!("newest {} {index}\n", at + 1);
            }
            map.insert(key("project", path), record);
        }
        let entries: Vec<_> = map.into_iter().collect();
        map_root(&entries)
    }
}

/// The root of entries in the order of their keys.
fn map_root(entries: &[([u8; 32], String)]) -> Sha256 {
    match entries {
        [] => Sha256::from_bytes([0; 32]),
        [(key, record)] => {
            let record = Sha256::of(record.as_bytes());
            Sha256::of(&[b"\x02", key.as_slice(), record.as_bytes()].concat())
        }
        [first, .., last] => {
            let bit_of = |key: &[u8; 32], bit: usize| key[bit / 8] >> (7 - bit % 8) & 1;
            let differs = |bit: &usize| bit_of(&first.0, *bit) != bit_of(&last.0, *bit);
            let bit = (0..256).find(differs).expect("keys differ");
            let (left, right): (Vec<_>, Vec<_>) =
                entries.iter().cloned().partition(|(key, _)| bit_of(key, bit) == 0);
            let (left, right) = (map_root(&left), map_root(&right));
            let bit = u8::try_from(bit).expect("below 256");
            Sha256::of(&[&[3, bit], left.as_bytes().as_slice(), right.as_bytes()].concat())
        }
    }
}

fn git(repository: &Path, arguments: &[&str]) -> Vec<u8> {
    run_git(repository, arguments, b"").0
}
