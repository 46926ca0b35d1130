//! Whether what lies in a repository can be read at all. A clone may come from anyone. Opening a FIFO in it waits for a
//! writer that never comes, and a device never ends, so every file is looked at before anything opens it (D50).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

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
