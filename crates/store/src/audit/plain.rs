//! Finds a repository, its branch and its objects, and says whether they can be read at all. A clone may come from
//! anyone. Opening a FIFO in it waits for a writer that never comes, and a device never ends, so every file is looked
//! at before anything opens it (D50).

use std::{collections::HashSet, fs, io, path::Path, path::PathBuf, sync::Arc};

use gix::{ObjectId, hash::Kind as HashKind};

use crate::repository::refs::{BRANCH, Branch};
use crate::{audit::CheckError, machine::data_dir::REPOSITORY_DIR, objects::Objects};

/// Files of a line or a few.
const SMALL: u64 = 1 << 20;
/// Files with a line for each branch, tag or commit.
const LISTS: u64 = 256 << 20;
/// Names of branches have no more parts than this.
const MAX_DEPTH: usize = 32;
/// Object directories that one repository may borrow from.
const MAX_BORROWED: usize = 64;

/// The repository that `path` is, or that the file there names, as Git writes it for linked work trees and submodules.
pub(crate) fn check_repository(path: &Path) -> Result<(), String> {
    let git_dir = if path.is_dir() { path.to_owned() } else { follow(path, "gitdir: ")? };
    // A linked work tree has its own HEAD, and shares all else.
    let own = git_dir.join("commondir");
    let common = if exists(&own) { git_dir.join(follow(&own, "")?) } else { git_dir.clone() };
    for dir in [&git_dir, &common] {
        for name in ["HEAD", "config", "config.worktree", "commondir", "gitdir", "refs/heads/main"] {
            check_file(&dir.join(name), SMALL)?;
        }
        for name in ["packed-refs", "shallow"] {
            check_file(&dir.join(name), LISTS)?;
        }
        check_refs(&dir.join("refs"), MAX_DEPTH)?;
    }
    // Opening the repository also opens those that it borrows from.
    list_object_dirs(&common.join("objects")).map(drop)
}

/// An object directory: the list of those that it borrows from, packs and their indexes, and loose objects.
fn check_objects(dir: &Path) -> Result<(), String> {
    check_file(&dir.join("info/alternates"), SMALL)?;
    for (path, _) in list(dir)? {
        if path.is_dir() {
            // Directories below these hold nothing that anything here reads.
            for (inside, _) in list(&path)?.into_iter().filter(|(inside, _)| !inside.is_dir()) {
                check_file(&inside, u64::MAX)?;
            }
        } else {
            check_file(&path, u64::MAX)?;
        }
    }
    Ok(())
}

/// The directory itself, and those that it borrows from (`git clone --shared`), each of them checked.
pub(crate) fn list_object_dirs(own: &Path) -> Result<Vec<PathBuf>, String> {
    let mut dirs = vec![own.to_owned()];
    let mut done = 0;
    while let Some(dir) = dirs.get(done).cloned() {
        check_objects(&dir)?;
        let list = dir.join("info/alternates");
        if exists(&list) {
            let borrowed = read(&list)?;
            let borrowed = gix::odb::alternate::parse(&borrowed).map_err(|error| error.to_string())?;
            // As Git does: relative to the first directory.
            let borrowed = borrowed.into_iter().map(|path| own.join(path));
            let new: Vec<PathBuf> = borrowed.filter(|path| !dirs.contains(path)).collect();
            dirs.extend(new);
        }
        if dirs.len() > MAX_BORROWED {
            return Err(format!("it borrows from more than {MAX_BORROWED} other repositories"));
        }
        done += 1;
    }
    Ok(dirs)
}

/// Branches and tags, one in each file. A link to a directory would lead out of what is looked at here.
fn check_refs(dir: &Path, depth: usize) -> Result<(), String> {
    if depth == 0 {
        return Err(format!("{}: there are too many directories in each other", dir.display()));
    }
    for (path, kind) in list(dir)? {
        if kind.is_dir() {
            check_refs(&path, depth - 1)?;
        } else {
            check_file(&path, SMALL)?;
        }
    }
    Ok(())
}

/// Reads the path that a file of one line names after `prefix`.
fn follow(path: &Path, prefix: &str) -> Result<PathBuf, String> {
    check_file(path, SMALL)?;
    let text = read(path)?;
    let text = String::from_utf8_lossy(&text);
    let target = text.trim_end().strip_prefix(prefix);
    let target = target.ok_or_else(|| format!("{} is no Git repository", path.display()))?;
    Ok(path.parent().unwrap_or(Path::new("")).join(target))
}

/// A file that is missing is nothing to wait for.
fn check_file(path: &Path, max_bytes: u64) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(format!("{} is not a plain file", path.display())),
        Ok(found) if found.len() > max_bytes => Err(format!("{} is too large to be read", path.display())),
        Ok(_) => Ok(()),
        // A link into nothing, or through a file.
        Err(error) if is_absence(&error) => Ok(()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn list(dir: &Path) -> Result<Vec<(PathBuf, fs::FileType)>, String> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", dir.display())),
    };
    let entry =
        |entry: io::Result<fs::DirEntry>| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)));
    entries.map(entry).collect::<io::Result<_>>().map_err(|error| format!("{}: {error}", dir.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

// Finding the repository, its branch and its objects, wherever a clone keeps them.

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
    check_repository(&path).map_err(refuse)?;
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
    let dirs = if is_in_data_dir { vec![own] } else { list_object_dirs(&own).map_err(refuse)? };
    let objects = Arc::new(Objects::open(&dirs, CACHE_BYTES, true)?);
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
