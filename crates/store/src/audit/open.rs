//! Finding the repository, its branch and its objects, wherever a clone keeps them.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gix::{ObjectId, hash::Kind as HashKind};

use crate::{
    audit::{plain, report::CheckError},
    data_dir::REPOSITORY_DIR,
    objects::Objects,
    repository::refs::{BRANCH, Branch},
};

const CACHE_BYTES: u64 = 128 << 20;
/// The name, in a work tree, of the repository or of a file that names it.
const GIT_DIR: &str = ".git";
/// The file by which a linked work tree names the repository that it belongs to.
const COMMON_DIR: &str = "commondir";
/// The refs below which Git looks for objects that it shows in the place of others.
const REPLACING: &str = "refs/replace/";

pub(crate) struct RepositoryCopy {
    /// What was opened: a repository, or in a work tree what leads to it.
    pub(crate) path: PathBuf,
    pub(crate) objects: Arc<Objects>,
    pub(crate) head: ObjectId,
    /// The commits at which a shallow clone ends.
    pub(crate) shallow: HashSet<ObjectId>,
    /// Other branches and tags, which lead elsewhere.
    pub(crate) other_refs: Vec<String>,
    /// Why other programs may see something else in the same place.
    pub(crate) warnings: Vec<String>,
}

pub(crate) fn open(dir: &Path) -> Result<RepositoryCopy, CheckError> {
    let path = find_repository(dir);
    let refuse = |reason: String| CheckError::NotARepository { path: path.clone(), reason };
    // Git itself follows this file. The server does not, so it must not lead a check elsewhere than the server reads.
    if path.join(COMMON_DIR).symlink_metadata().is_ok() {
        return Err(refuse(format!("it has a file `{COMMON_DIR}`, which leads Git to another repository")));
    }
    plain::check_repository(&path).map_err(refuse)?;
    let opened = gix::open_opts(&path, gix::open::Options::isolated().open_path_as_is(true));
    let opened = opened.map_err(|error| refuse(error.to_string()))?;
    if opened.object_hash() != HashKind::Sha1 {
        return Err(refuse("its ids are not SHA-1".to_owned()));
    }
    // A linked work tree shares branches and objects with the repository that it belongs to.
    let git_dir = opened.common_dir();
    let head = Branch::of(git_dir).read()?.ok_or_else(|| CheckError::NoBranch { path: path.clone() })?;
    // Packs are opened after the branch was read, so that they hold whatever it points to.
    let own = git_dir.join("objects");
    // A server reads its own objects only: nothing borrowed may stand in for what is damaged or missing there.
    let is_in_data_dir = path == dir.join(REPOSITORY_DIR);
    let dirs = if is_in_data_dir { vec![own] } else { plain::list_object_dirs(&own).map_err(refuse)? };
    let objects = Arc::new(Objects::open_to_check(&dirs, CACHE_BYTES)?);
    let refs = list_other_refs(&opened, head).unwrap_or_default();
    let (replacing, other_refs) = refs.into_iter().partition(|name| name.starts_with(REPLACING));
    let inside = dir.join(REPOSITORY_DIR);
    let unchecked = (inside != path && inside.symlink_metadata().is_ok()).then_some(inside);
    let warnings = list_warnings(unchecked, &opened, head, replacing);
    Ok(RepositoryCopy { shallow: read_shallow(git_dir), path, objects, head, other_refs, warnings })
}

/// A repository is what it is, whatever lies inside: the files of a work tree are whatever someone committed.
fn find_repository(dir: &Path) -> PathBuf {
    let (git_dir, inside) = (dir.join(GIT_DIR), dir.join(REPOSITORY_DIR));
    if git_dir.symlink_metadata().is_ok() {
        git_dir
    } else if !is_repository(dir) && inside.is_dir() && !inside.is_symlink() {
        inside
    } else {
        dir.to_owned()
    }
}

fn is_repository(dir: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| dir.join(name).symlink_metadata().is_ok())
}

fn list_warnings(
    unchecked: Option<PathBuf>,
    opened: &gix::Repository,
    head: ObjectId,
    replacing: Vec<String>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(other) = unchecked {
        warnings.push(format!("{} is there as well, and was not checked", other.display()));
    }
    if !replacing.is_empty() {
        warnings
            .push(format!("Git's commands show other objects than were checked: {}", replacing.join(", ")));
    }
    if opened.common_dir().join("info/grafts").symlink_metadata().is_ok() {
        warnings.push("Git's commands show other parents than were checked: info/grafts".to_owned());
    }
    let shown = opened.head_id().ok().map(|id| id.detach());
    let is_detached = opened.head_name().is_ok_and(|name| name.is_none());
    if let Some(shown) = shown.filter(|shown| *shown != head) {
        let what = if is_detached { "no branch" } else { "another branch" };
        warnings.push(format!(
            "HEAD is at {shown}, on {what}: Git's commands show that, and {BRANCH} was checked"
        ));
    }
    warnings
}

/// Reads the commits at which a shallow clone ends. A whole clone has none. A list that cannot be read counts as empty:
/// it is no excuse for what is missing.
fn read_shallow(git_dir: &Path) -> HashSet<ObjectId> {
    let listed = fs::read_to_string(git_dir.join("shallow")).unwrap_or_default();
    listed.lines().filter_map(|line| ObjectId::from_hex(line.trim().as_bytes()).ok()).collect()
}

/// Lists the branches and tags beside ours. `None` if they cannot be listed: they are not checked anyway.
fn list_other_refs(repository: &gix::Repository, head: ObjectId) -> Option<Vec<String>> {
    let references = repository.references().ok()?;
    let mut names = Vec::new();
    for reference in references.all().ok()?.flatten() {
        let leads_elsewhere = reference.target().try_id().is_some_and(|id| *id != *head);
        let name = reference.name().as_bstr().to_string();
        if (leads_elsewhere || name.starts_with(REPLACING)) && name != BRANCH {
            names.push(name);
        }
    }
    Some(names)
}
