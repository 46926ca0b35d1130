//! Finding the repository, its branch and its objects, wherever a clone keeps them.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use gix::{ObjectId, hash::Kind as HashKind};

use super::{
    super::{
        objects::Objects,
        refs::{BRANCH, Branch},
    },
    CheckError,
};

const CACHE_BYTES: u64 = 128 << 20;
/// Where a data directory has its repository.
const REPOSITORY_DIR: &str = "repo.git";

pub(super) struct Opened {
    pub(super) objects: Arc<Objects>,
    pub(super) head: ObjectId,
    /// Whether the clone has only the newest part of the history.
    pub(super) is_shallow: bool,
    /// Other branches and tags, which lead elsewhere.
    pub(super) other_refs: Vec<String>,
}

pub(super) fn open(dir: &Path) -> Result<Opened, CheckError> {
    let inside = dir.join(REPOSITORY_DIR);
    let path = if inside.is_dir() { inside } else { dir.to_owned() };
    let refuse = |reason: String| CheckError::NotARepository { path: path.clone(), reason };
    let opened = gix::open_opts(&path, gix::open::Options::isolated());
    let opened = opened.map_err(|error| refuse(error.to_string()))?;
    if opened.object_hash() != HashKind::Sha1 {
        return Err(refuse("its ids are not SHA-1".to_owned()));
    }
    // A linked work tree shares branches and objects with the repository that it belongs to.
    let git_dir = opened.common_dir();
    let head = Branch::of(git_dir).read()?.ok_or_else(|| CheckError::NoBranch { path: path.clone() })?;
    // Packs are opened after the branch was read, so that they hold whatever it points to.
    let dirs = list_object_dirs(&git_dir.join("objects")).map_err(refuse)?;
    let objects = Arc::new(Objects::open_to_check(&dirs, CACHE_BYTES)?);
    let is_shallow = git_dir.join("shallow").exists();
    let other_refs = list_other_refs(&opened, head).unwrap_or_default();
    Ok(Opened { objects, head, is_shallow, other_refs })
}

/// The directory itself, and those that it borrows from (`git clone --shared`).
fn list_object_dirs(own: &Path) -> Result<Vec<PathBuf>, String> {
    let here = env::current_dir().map_err(|error| error.to_string())?;
    let borrowed = gix::odb::alternate::resolve(own.to_owned(), &here).map_err(|error| error.to_string())?;
    Ok(std::iter::once(own.to_owned()).chain(borrowed).collect())
}

/// `None` where they cannot be listed: they are not checked anyway.
fn list_other_refs(repository: &gix::Repository, head: ObjectId) -> Option<Vec<String>> {
    let references = repository.references().ok()?;
    let mut names = Vec::new();
    for reference in references.all().ok()?.flatten() {
        let leads_elsewhere = reference.target().try_id().is_some_and(|id| *id != *head);
        let name = reference.name().as_bstr().to_string();
        if leads_elsewhere && name != BRANCH {
            names.push(name);
        }
    }
    Some(names)
}
