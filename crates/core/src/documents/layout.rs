//! The place of each stored file (the table of them is in docs/api.md), and the format marker at the root (D38).

use serde::Serialize;

use crate::json_fields;
use crate::values::json::{FromField as _, Json, ParseError};
use crate::values::{digest::Sha512, json, path::PathError, path::RepoPath, time::Timestamp, wire};

/// The two kinds of files that collect signatures (D17), told by their path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signable {
    /// A proposed signers file; it is signed together with its metadata.
    PendingSigners {
        project: RepoPath,
    },
    Index,
}

/// What a path would hold, if it collects signatures at all.
pub fn signable(path: &RepoPath) -> Option<Signable> {
    match path.file_name() {
        wire::INDEX_FILE => Some(Signable::Index),
        wire::SIGNERS_FILE => {
            project_of(path, wire::PENDING_DIR).map(|project| Signable::PendingSigners { project })
        }
        _ => None,
    }
}

/// The project whose active signers file this path names.
pub fn project_of_active_signers(path: &RepoPath) -> Option<RepoPath> {
    if path.file_name() == wire::SIGNERS_FILE { project_of(path, wire::ACTIVE_DIR) } else { None }
}

fn project_of(signers: &RepoPath, dir_name: &str) -> Option<RepoPath> {
    let dir = signers.parent().filter(|dir| dir.file_name() == dir_name)?;
    dir.parent()
}

pub fn active_signers(project: &RepoPath) -> RepoPath {
    project.with_suffixes(["/", wire::ACTIVE_DIR, "/", wire::SIGNERS_FILE])
}

pub fn pending_dir(project: &RepoPath) -> RepoPath {
    project.join(wire::PENDING_DIR)
}

pub fn pending_signers(project: &RepoPath) -> RepoPath {
    pending_dir(project).join(wire::SIGNERS_FILE)
}

pub fn superseded_dir(project: &RepoPath) -> RepoPath {
    project.join(wire::SUPERSEDED_DIR)
}

pub fn superseded_signers(project: &RepoPath, digest: &Sha512) -> RepoPath {
    superseded_dir(project).join(&digest.short()).join(wire::SIGNERS_FILE)
}

pub fn vetoed_dir(project: &RepoPath) -> RepoPath {
    project.join(wire::VETOED_DIR)
}

/// The veto of a signers file with this digest.
pub fn veto_record(project: &RepoPath, digest: &Sha512) -> RepoPath {
    vetoed_dir(project).join(&digest.half()).join(wire::VETO_FILE)
}

/// The newest veto as it is served, with its signatures beside it: no file lies here, it is one of the records (D220).
pub fn newest_veto(project: &RepoPath) -> RepoPath {
    vetoed_dir(project).join(wire::VETO_FILE)
}

/// The project whose newest veto, or its signatures, is served at this path.
pub fn project_of_newest_veto(path: &RepoPath) -> Option<RepoPath> {
    let project = path.parent()?.parent()?;
    let veto = newest_veto(&project);
    (*path == veto || *path == signatures_of(&veto)).then_some(project)
}

/// The history as it is served: no file lies here, it is assembled from its entries (D42).
pub fn history(project: &RepoPath) -> RepoPath {
    project.join(wire::HISTORY_FILE)
}

pub fn history_dir(project: &RepoPath) -> RepoPath {
    project.join(wire::HISTORY_DIR)
}

/// An entry of the history, counted from 1. Numbers of six digits sort as text; the bound of a history allows fewer.
pub fn history_entry(project: &RepoPath, number: usize) -> RepoPath {
    project.with_suffixes(["/", wire::HISTORY_DIR, &format!("/{number:06}.json")])
}

/// The number of the entry that lies at this path.
pub fn history_number(path: &RepoPath, project: &RepoPath) -> Option<usize> {
    let number = path.file_name().strip_suffix(".json")?.parse().ok()?;
    (history_entry(project, number) == *path).then_some(number)
}

/// The project whose history is served at this path.
pub fn project_of_history(path: &RepoPath) -> Option<RepoPath> {
    if path.file_name() == wire::HISTORY_FILE { path.parent() } else { None }
}

/// The directory of a forge's release. Releases elsewhere are directories of the project itself.
pub fn release_dir(project: &RepoPath, tag: &str) -> Result<RepoPath, PathError> {
    if tag.is_empty() {
        return Err(PathError::EmptySegment);
    }
    RepoPath::parse(&format!("{project}/{}/{tag}", wire::RELEASES_DIR))
}

/// The tag of the release that such a directory is for.
pub fn tag_of_release<'a>(dir: &'a RepoPath, project: &RepoPath) -> Option<&'a str> {
    dir.below(project)?.strip_prefix(wire::RELEASES_DIR)?.strip_prefix('/')
}

/// What tells a release apart from the others of its project: its tag, or else its directory there. `None` for one in the
/// project's own directory.
pub fn name_in_project<'a>(dir: &'a RepoPath, project: &RepoPath) -> Option<&'a str> {
    tag_of_release(dir, project).or_else(|| dir.below(project))
}

/// The name by which people call a release.
pub fn release_name(index: &RepoPath, project: &RepoPath) -> String {
    let dir = index.parent().unwrap_or_else(|| index.clone());
    name_in_project(&dir, project).unwrap_or_else(|| dir.file_name()).to_owned()
}

pub fn index_in(dir: &RepoPath) -> RepoPath {
    dir.join(wire::INDEX_FILE)
}

pub fn metadata_of(signers: &RepoPath) -> RepoPath {
    signers.with_suffix(wire::METADATA_SUFFIX)
}

pub fn registration_of(signers: &RepoPath) -> RepoPath {
    signers.with_suffix(wire::REGISTRATION_SUFFIX)
}

pub fn signers_copy_of(file: &RepoPath) -> RepoPath {
    file.with_suffix(wire::SIGNERS_COPY_SUFFIX)
}

pub fn signatures_of(file: &RepoPath) -> RepoPath {
    file.with_suffix(wire::SIGNATURES_SUFFIX)
}

/// Signatures on the same release that other programs verify (D102).
pub fn other_formats_of(index: &RepoPath) -> RepoPath {
    index.with_suffix(wire::OTHER_FORMATS_SUFFIX)
}

/// Who registered an index that collects signatures (D121).
pub fn registrant_of(index: &RepoPath) -> RepoPath {
    index.with_suffix(wire::REGISTRANT_SUFFIX)
}

/// The request that withdrew the index that was here (D122).
pub fn withdrawal_of(index: &RepoPath) -> RepoPath {
    index.with_suffix(wire::WITHDRAWAL_SUFFIX)
}

pub fn objections_of(index: &RepoPath) -> RepoPath {
    index.with_suffix(wire::OBJECTIONS_SUFFIX)
}

/// What builders state about a release (D260).
pub fn rebuilds_of(index: &RepoPath) -> RepoPath {
    index.with_suffix(wire::REBUILDS_SUFFIX)
}

/// Objections to contents that were here before (D224).
pub fn earlier_objections_of(index: &RepoPath) -> RepoPath {
    index.with_suffix(wire::EARLIER_OBJECTIONS_SUFFIX)
}

pub fn pending_signatures_of(file: &RepoPath) -> RepoPath {
    file.with_suffixes([wire::SIGNATURES_SUFFIX, wire::PENDING_SUFFIX])
}

pub fn revoked_signatures_of(file: &RepoPath) -> RepoPath {
    file.with_suffixes([wire::SIGNATURES_SUFFIX, wire::REVOKED_SUFFIX])
}

pub fn revocation_of(file: &RepoPath) -> RepoPath {
    file.with_suffix(wire::REVOCATION_SUFFIX)
}

pub fn pending_revocation_signatures_of(file: &RepoPath) -> RepoPath {
    pending_signatures_of(&revocation_of(file))
}

pub fn pending_revocation_of(file: &RepoPath) -> RepoPath {
    pending_of(&revocation_of(file))
}

/// A statement that waits for more signatures, by the path that it has or would have without waiting.
pub fn pending_of(statement: &RepoPath) -> RepoPath {
    statement.with_suffix(wire::PENDING_SUFFIX)
}

/// The file that says that a pending signers file waits for the delay to pass (D131).
pub fn agreement_of(signers: &RepoPath) -> RepoPath {
    signers.with_suffix(wire::AGREEMENT_SUFFIX)
}

/// A veto that collects signatures, beside the pending signers file.
pub fn veto_of(signers: &RepoPath) -> RepoPath {
    signers.with_suffix(wire::VETO_SUFFIX)
}

pub fn pending_veto_of(signers: &RepoPath) -> RepoPath {
    pending_of(&veto_of(signers))
}

pub fn request_of(revocation: &RepoPath) -> RepoPath {
    revocation.with_suffix(wire::REQUEST_SUFFIX)
}

/// The file whose signatures, signers copy and so on `path` belongs to; the file itself where it is one.
pub fn signable_behind(path: &RepoPath) -> Option<RepoPath> {
    let name = path.file_name();
    [wire::INDEX_FILE, wire::SIGNERS_FILE].into_iter().find(|base| name.starts_with(base)).and_then(|base| {
        let file = path.parent()?.join(base);
        signable(&file).map(|_| file)
    })
}

/// The project in whose directory of active or pending signers a path lies. Only these two make it a project.
pub fn project_with_signers_at(path: &RepoPath) -> Option<RepoPath> {
    let dir = path.parent()?;
    if matches!(dir.file_name(), wire::ACTIVE_DIR | wire::PENDING_DIR) { dir.parent() } else { None }
}

// The format marker at the root of the tree (D38).

/// The newest repository format that this program knows.
pub const FORMAT: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepositoryMarker {
    pub format: u64,
    pub created_at: Timestamp,
}

json_fields!(object RepositoryMarker { format, created_at });

impl RepositoryMarker {
    pub fn path() -> RepoPath {
        RepoPath::parse(wire::REPOSITORY_FILE).expect("a plain name is a path")
    }

    /// Reads the format first: a newer one may have other fields, and is still told apart from nonsense.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let format = json.root().open_object()?.required("format")?;
        if format.integer()? != FORMAT {
            let found = format.integer()?;
            let reason = format!(
                "the repository is of format {found}, and this program knows format {FORMAT}: use a version of \
                 Countersign that knows format {found}"
            );
            return Err(format.error(reason));
        }
        Self::parse_field(&json.root())
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(self)
    }
}
