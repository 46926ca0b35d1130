//! An index beside the files that the signer built or fetched.

use std::{collections::BTreeSet, fs, fs::File, io, path::Path, path::PathBuf};

use countersign_core::documents::index::{Digests, PublishedFile, ReleaseIndex};
use countersign_core::values::other_format::OpenpgpFile;
use serde::Serialize;
use serde_json::{Value, json};

use crate::evidence::download::{OwnFile, for_each_block};
use crate::words::error::{CliError, shown_path};

/// A directory with more than this is no build of one release.
const MAX_OWN_FILES: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Comparison {
    /// The files in the order of the index.
    pub(crate) files: Vec<ComparedFile>,
    /// What the signer has and the release has not, sorted.
    pub(crate) not_released: Vec<String>,
    pub(crate) dir: PathBuf,
    /// The signer's own files as OpenPGP signs them by themselves, if that is wanted.
    pub(crate) openpgp: Vec<OpenpgpFile>,
}

/// Whether files are hashed for OpenPGP as well, as they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForOpenpgp {
    Yes,
    No,
}

#[derive(Debug)]
pub(crate) struct ComparedFile {
    pub(crate) listed: PublishedFile,
    pub(crate) outcome: MatchOutcome,
    /// The signer's own file, or `None` if it is missing or no plain file.
    pub(crate) own: Option<OwnFile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MatchOutcome {
    Match,
    Differ,
    Missing,
}

impl Comparison {
    /// Whether every file was there and the same.
    pub(crate) fn is_match(&self) -> bool {
        self.mismatches().next().is_none()
    }

    pub(crate) fn count(&self, wanted: MatchOutcome) -> usize {
        self.files.iter().filter(|file| file.outcome == wanted).count()
    }

    pub(crate) fn mismatches(&self) -> impl Iterator<Item = &ComparedFile> {
        self.files.iter().filter(|file| file.outcome != MatchOutcome::Match)
    }

    pub(crate) fn json(&self) -> Value {
        let bytes = |size: Option<u64>, digests: &Digests| {
            json!({
                "size": size,
                "sha256": digests.sha256.map(|digest| digest.to_string()),
                "sha512": digests.sha512.map(|digest| digest.to_string()),
            })
        };
        let file = |file: &ComparedFile| {
            json!({
                "file_name": file.listed.file_name.as_str(),
                "outcome": file.outcome,
                "release": bytes(file.listed.size, &file.listed.digests),
                "yours": file.own.map(|own| bytes(Some(own.size), &own.digests)),
            })
        };
        json!({
            "is_match": self.is_match(),
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
            "not_in_release": self.not_released,
        })
    }
}

pub(crate) fn compare(
    index: &ReleaseIndex,
    dir: &Path,
    for_openpgp: ForOpenpgp,
) -> Result<Comparison, CliError> {
    if !dir.is_dir() {
        return Err(CliError::usage(
            format!("{} is not a directory", shown_path(dir)),
            "--files names the directory with the files that you built or fetched",
        ));
    }
    let mut openpgp = Vec::new();
    let files = index.published_files.iter().map(|file| {
        let mut own = (for_openpgp == ForOpenpgp::Yes).then(OpenpgpFile::default);
        let compared = compare_file(file, dir, own.as_mut());
        openpgp.extend(own);
        compared
    });
    let files: Vec<ComparedFile> = files.collect::<Result<_, CliError>>()?;
    let released: BTreeSet<&str> = index.published_files.iter().map(|file| file.file_name.as_str()).collect();
    let mut own = BTreeSet::new();
    list_files(dir, "", &mut own).map_err(|error| CliError::file("read", dir, error))?;
    let not_released = own.into_iter().filter(|name| !released.contains(name.as_str())).collect();
    Ok(Comparison { files, not_released, dir: dir.to_owned(), openpgp })
}

/// Links are not followed: they could lead around in a circle.
fn list_files(dir: &Path, prefix: &str, found: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if found.len() >= MAX_OWN_FILES {
            return Ok(());
        }
        if entry.file_type()?.is_dir() {
            list_files(&entry.path(), &format!("{name}/"), found)?;
        } else {
            found.insert(name);
        }
    }
    Ok(())
}

/// Every digest that the index lists is compared: all of them are going to be signed.
fn compare_file(
    listed: &PublishedFile,
    dir: &Path,
    openpgp: Option<&mut OpenpgpFile>,
) -> Result<ComparedFile, CliError> {
    let path = dir.join(listed.file_name.as_str());
    let compared = |outcome, own| Ok(ComparedFile { listed: listed.clone(), outcome, own });
    match read_own(&path, openpgp) {
        Ok(None) => compared(MatchOutcome::Differ, None),
        Ok(Some(own)) => {
            let is_same = listed.size.is_none_or(|size| size == own.size)
                && listed.digests.sha256.is_none_or(|digest| own.digests.sha256 == Some(digest))
                && listed.digests.sha512.is_none_or(|digest| own.digests.sha512 == Some(digest));
            compared(if is_same { MatchOutcome::Match } else { MatchOutcome::Differ }, Some(own))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            compared(MatchOutcome::Missing, None)
        }
        Err(error) => Err(CliError::file("read", &path, error)),
    }
}

/// Reads and hashes the signer's own file. Returns `None` if it is no plain file.
fn read_own(path: &Path, mut openpgp: Option<&mut OpenpgpFile>) -> io::Result<Option<OwnFile>> {
    // Looked at before it is opened: a FIFO would wait for a writer.
    if !fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let own = OwnFile::hash(|hash| {
        for_each_block(&mut file, |block| {
            hash(block);
            if let Some(openpgp) = &mut openpgp {
                openpgp.update(block);
            }
        })
    });
    own.map(Some)
}
