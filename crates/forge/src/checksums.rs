//! Checksums files: one directory of one server, whose files they list (spec §4.10, D24).

use std::collections::HashSet;

use countersign_core::{documents::index::PublishedFile, values::path::RepoPath};
use url::Url;

use self::file::Checksums;
use crate::url::{SourceUrl, UrlProblem, UrlRefusal, check_storable, encode_path};

pub mod file;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChecksumsSource {
    /// The directory that all of them lie in.
    pub dir: RepoPath,
    /// The files in the order given; never empty.
    pub files: Vec<SourceUrl>,
    dir_url: Url,
}

pub fn locate_checksums(urls: &[String]) -> Result<ChecksumsSource, UrlRefusal> {
    let files = urls.iter().map(|url| SourceUrl::parse(url)).collect::<Result<Vec<_>, _>>()?;
    let first = files.first().ok_or(UrlRefusal::NoUrl)?;
    let mut names = HashSet::new();
    for file in &files {
        let name = file.plain_file_name().map_err(|problem| file.refuse(problem))?;
        let same_server = file.request_url().origin() == first.request_url().origin();
        if !same_server || file.dir_segments() != first.dir_segments() {
            return Err(file.refuse(UrlProblem::OtherDirectory { first: first.to_string() }));
        }
        if !names.insert(name) {
            return Err(file.refuse(UrlProblem::GivenTwice));
        }
    }
    let dir = first.path_on_server(first.dir_segments()).and_then(check_storable);
    let dir = dir.map_err(|error| first.refuse(error.into()))?;
    let dir_url = first.request_url().join(".").expect("every URL lies in a directory");
    Ok(ChecksumsSource { dir, dir_url, files })
}

impl ChecksumsSource {
    /// The files of a release, as its index lists them.
    pub fn list_files(&self, checksums: Checksums) -> Vec<PublishedFile> {
        let listed = checksums.files.into_iter().map(|(file_name, digests)| {
            let source = self.url_of(file_name.as_str());
            PublishedFile { file_name, size: None, source, digests }
        });
        listed.collect()
    }

    /// The URL of a file that a checksums file lists under this name, which must have passed the rules of D24: with
    /// dot segments it would lead elsewhere.
    pub fn url_of(&self, relative_name: &str) -> String {
        format!("{}{}", self.dir_url, encode_path(relative_name.split('/')))
    }
}
