//! Checksums files: one directory of one server, whose files they list (spec §4.10, D24).

use std::collections::HashSet;

use countersign_core::values::path::RepoPath;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::url::{SourceUrl, UrlProblem, UrlRefusal};

pub mod file;

/// All but the unreserved characters: some servers read a `+` in a path as a space.
pub(crate) const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChecksumsSource {
    /// The directory that all of them lie in.
    pub dir: RepoPath,
    /// In the order given; never empty.
    pub files: Vec<SourceUrl>,
    dir_url: String,
}

pub fn locate_checksums(urls: &[String]) -> Result<ChecksumsSource, UrlRefusal> {
    let files = urls.iter().map(|url| SourceUrl::parse(url)).collect::<Result<Vec<_>, _>>()?;
    let first = files.first().ok_or(UrlRefusal::NoUrl)?;
    let mut names = HashSet::new();
    for file in &files {
        let name = file.plain_file_name()?;
        if !is_beside(file, first) {
            return Err(file.refuse(UrlProblem::OtherDirectory { first: first.to_string() }));
        }
        if !names.insert(name) {
            return Err(file.refuse(UrlProblem::GivenTwice));
        }
    }
    let dir = first.storable_dir(first.dir_segments())?;
    let dir_url = parent_text(first.request_url().as_str()).to_owned();
    Ok(ChecksumsSource { dir, dir_url, files })
}

impl ChecksumsSource {
    /// The URL of a file that a checksums file lists under this name, which must have passed the rules of D24: with
    /// dot segments it would lead elsewhere.
    pub fn url_of(&self, relative_name: &str) -> String {
        let encoded: Vec<String> = relative_name
            .split('/')
            .map(|segment| utf8_percent_encode(segment, ENCODED).to_string())
            .collect();
        format!("{}{}", self.dir_url, encoded.join("/"))
    }
}

fn is_beside(file: &SourceUrl, first: &SourceUrl) -> bool {
    let origin = |url: &SourceUrl| (url.scheme(), url.host().clone(), url.port());
    origin(file) == origin(first) && file.dir_segments() == first.dir_segments()
}

/// Everything up to the last slash, as the server spells it.
fn parent_text(url: &str) -> &str {
    &url[..url.rfind('/').map_or(url.len(), |slash| slash + 1)]
}
