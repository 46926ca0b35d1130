//! An index beside the files that the signer built or fetched.

use std::{fs::File, io, path::Path};

use countersign_core::documents::index::{AssetName, PublishedFile, ReleaseIndex};
use ring::digest::{Context, SHA256, SHA512};

use crate::{download::for_each_block, error::CliError};

#[derive(Debug)]
pub(crate) struct Comparison {
    /// In the order of the index.
    pub(crate) files: Vec<(AssetName, MatchOutcome)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchOutcome {
    Match,
    Differ,
    Missing,
}

impl Comparison {
    /// Whether every file was there and the same.
    pub(crate) fn is_match(&self) -> bool {
        self.files.iter().all(|(_, outcome)| *outcome == MatchOutcome::Match)
    }

    pub(crate) fn count(&self, wanted: MatchOutcome) -> usize {
        self.files.iter().filter(|(_, outcome)| *outcome == wanted).count()
    }
}

pub(crate) fn compare(index: &ReleaseIndex, dir: &Path) -> Result<Comparison, CliError> {
    if !dir.is_dir() {
        return Err(CliError::usage(
            format!("{} is not a directory", dir.display()),
            "--files names the directory with the files that you built or fetched",
        ));
    }
    let compare = |file: &PublishedFile| Ok((file.file_name.clone(), compare_file(file, dir)?));
    Ok(Comparison { files: index.published_files.iter().map(compare).collect::<Result<_, CliError>>()? })
}

/// Every digest that the index lists is compared: all of them are going to be signed.
fn compare_file(listed: &PublishedFile, dir: &Path) -> Result<MatchOutcome, CliError> {
    let path = dir.join(listed.file_name.as_str());
    let unreadable = |error| CliError::file("read", &path, error);
    // Looked at before it is opened: a FIFO would wait for a writer.
    let opened = std::fs::metadata(&path).and_then(|found| match found.is_file() {
        true => File::open(&path).map(Some),
        false => Ok(None),
    });
    let mut file = match opened {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(MatchOutcome::Differ),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(MatchOutcome::Missing);
        }
        Err(error) => return Err(unreadable(error)),
    };
    let found = file.metadata().map_err(unreadable)?;
    if !found.is_file() || listed.size.is_some_and(|size| size != found.len()) {
        return Ok(MatchOutcome::Differ);
    }
    let (mut sha256, mut sha512) = (Context::new(&SHA256), Context::new(&SHA512));
    for_each_block(&mut file, |block| {
        sha256.update(block);
        sha512.update(block);
    })
    .map_err(unreadable)?;
    let (sha256, sha512) = (sha256.finish(), sha512.finish());
    let is_same = listed.digests.sha256.is_none_or(|digest| digest.as_bytes() == sha256.as_ref())
        && listed.digests.sha512.is_none_or(|digest| digest.as_bytes() == sha512.as_ref());
    Ok(if is_same { MatchOutcome::Match } else { MatchOutcome::Differ })
}
