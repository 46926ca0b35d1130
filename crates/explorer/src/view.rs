//! A state as decisions see it.

use std::sync::Arc;

use countersign_core::{
    documents::{history::EntryFacts, metadata::Metadata, signatures::SignatureSet},
    rules::snapshot::{ReadError, Snapshot, StoredSigners},
    values::{path::RepoPath, time::Timestamp},
};

use crate::contents::{Blob, Contents, State};

#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub contents: &'a Contents,
    pub state: &'a State,
}

impl<'a> View<'a> {
    fn blob(&self, path: &RepoPath) -> Option<&'a Blob> {
        let id = self.state.content(self.contents.find_path(path)?)?;
        Some(self.contents.blob(id))
    }

    pub fn paths(&self) -> impl Iterator<Item = &'a RepoPath> + use<'a> {
        let contents = self.contents;
        self.state.files.iter().map(|(path, _)| contents.path(*path))
    }

    /// Projects that are registered or pending.
    fn projects(&self) -> impl Iterator<Item = RepoPath> + use<'a> {
        self.paths().filter_map(|file| {
            let dir = file.as_str().strip_suffix("/svc.signers.json")?;
            let project =
                dir.strip_suffix("/svc.signers").or_else(|| dir.strip_suffix("/svc.signers.pending"))?;
            RepoPath::parse(project).ok()
        })
    }
}

fn unreadable(path: &RepoPath) -> ReadError {
    ReadError { path: path.clone(), reason: "it does not parse".to_owned() }
}

impl Snapshot for View<'_> {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        Ok(self.blob(path).map(|blob| Arc::clone(&blob.bytes)))
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.blob(path).is_some()
    }

    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        let Some(blob) = self.blob(path) else { return Ok(None) };
        let parse = || StoredSigners::parse(path, Arc::clone(&blob.bytes)).ok();
        blob.signers.get_or_init(parse).clone().map(Some).ok_or_else(|| unreadable(path))
    }

    fn read_signatures(&self, path: &RepoPath) -> Result<Option<SignatureSet>, ReadError> {
        let Some(blob) = self.blob(path) else { return Ok(None) };
        let set = blob.signatures.get_or_init(|| SignatureSet::parse(&blob.bytes).ok());
        set.clone().map(Some).ok_or_else(|| unreadable(path))
    }

    fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        let Some(blob) = self.blob(path) else { return Ok(None) };
        let entry = blob.entry.get_or_init(|| EntryFacts::parse(&blob.bytes).ok());
        entry.map(Some).ok_or_else(|| unreadable(path))
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        let mut files: Vec<RepoPath> = self.paths().filter(|file| file.is_inside(dir)).cloned().collect();
        files.sort();
        Ok(files)
    }

    fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath> {
        let overlaps = |other: &RepoPath| other == id || other.is_inside(id) || id.is_inside(other);
        let mut projects: Vec<RepoPath> = self.projects().filter(overlaps).collect();
        projects.sort();
        projects.dedup();
        projects
    }

    fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp> {
        let pending = self.paths().filter_map(|file| {
            let project =
                file.as_str().strip_suffix("/svc.signers.pending/svc.signers.json.metadata.json")?;
            let active = RepoPath::parse(&format!("{project}/svc.signers/svc.signers.json")).ok()?;
            let is_new = !self.contains(&active) && RepoPath::parse(project).ok()?.is_inside(dir);
            let metadata = self.blob(file).filter(|_| is_new)?;
            Some(Metadata::parse(&metadata.bytes).ok()?.origin.retrieved_at)
        });
        pending.collect()
    }

    fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath> {
        let collecting = self.paths().filter(|file| file.is_inside(project)).filter_map(|file| {
            let index = file.as_str().strip_suffix(".signatures.json.pending")?;
            RepoPath::parse(index).ok().filter(|_| index.ends_with("/svc.index.json"))
        });
        let mut collecting: Vec<RepoPath> = collecting.collect();
        collecting.sort();
        collecting
    }
}
