//! Checksums files: one directory of one server, whose files they list (spec §4.10, D24).

use std::collections::{BTreeMap, HashSet, btree_map::Entry};

use countersign_core::documents::index::{AssetName, Digests, PublishedFile};
use countersign_core::values::bounds::{INDEX_FILES, INDEX_NAMES_BYTES};
use countersign_core::values::{digest::Sha256, digest::Sha512, path::RepoPath, shown::shown_text};
use thiserror::Error;
use url::Url;

use crate::url::{SourceUrl, UrlProblem, UrlRefusal, check_storable, encode_path};

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

// Checksums files (D24): GNU and BSD formats, SHA-256 and SHA-512.

/// What is wrong with a checksums file, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}, line {line}: {reason}")]
pub struct ChecksumsError {
    pub file: String,
    pub line: usize,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the checksums files list more than {max} files")]
pub struct TooManyFiles {
    max: usize,
}

/// Digests by file name, merged from one or more checksums files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checksums {
    pub files: BTreeMap<AssetName, Digests>,
    names_bytes: usize,
}

enum Digest {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Checksums {
    /// Adds what one checksums file says. `file` is its name in error messages.
    pub fn add_file(&mut self, file: &str, bytes: &[u8]) -> Result<(), ChecksumsError> {
        let fail = |line, reason: String| ChecksumsError {
            file: file.to_owned(),
            line,
            reason: shown_text(&reason),
        };
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            fail(line, "not UTF-8".to_owned())
        })?;
        let mut entries = 0;
        for (i, line) in text.split('\n').enumerate() {
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, digest) = parse_line(line).map_err(|reason| fail(i + 1, reason))?;
            self.add(name, digest).map_err(|reason| fail(i + 1, reason))?;
            entries += 1;
        }
        if entries == 0 {
            return Err(fail(1, "no checksum in the whole file".to_owned()));
        }
        Ok(())
    }

    /// Refuses more files than one release may have.
    pub fn check_count(&self, max: usize) -> Result<(), TooManyFiles> {
        if self.files.len() > max { Err(TooManyFiles { max }) } else { Ok(()) }
    }

    /// Stops at what no index could hold, however much is still to come.
    fn add(&mut self, name: AssetName, digest: Digest) -> Result<(), String> {
        let conflict = format!("another digest is given for {name} elsewhere");
        let count = self.files.len();
        let digests = match self.files.entry(name) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(_) if count == INDEX_FILES => {
                return Err(format!("with this one there are more than {INDEX_FILES} files"));
            }
            Entry::Vacant(entry) => {
                self.names_bytes += entry.key().as_str().len();
                if self.names_bytes > INDEX_NAMES_BYTES {
                    return Err(format!(
                        "with this one all file names have more than {INDEX_NAMES_BYTES} bytes together"
                    ));
                }
                entry.insert(Digests::default())
            }
        };
        let agrees = match digest {
            Digest::Sha256(digest) => *digests.sha256.get_or_insert(digest) == digest,
            Digest::Sha512(digest) => *digests.sha512.get_or_insert(digest) == digest,
        };
        if agrees { Ok(()) } else { Err(conflict) }
    }
}

fn parse_line(line: &str) -> Result<(AssetName, Digest), String> {
    if line.starts_with('\\') {
        return Err("escaped file names are not supported".to_owned());
    }
    let (name, digest) = match split_bsd(line) {
        Some(BsdLine { tag, name, hex }) => (name, parse_tagged(tag, hex)?),
        None => parse_gnu(line).ok_or("not a SHA-256 or SHA-512 checksum line")?,
    };
    let name = name.strip_prefix("./").unwrap_or(name);
    let name = AssetName::parse(name).map_err(|error| error.to_string())?;
    Ok((name, digest))
}

/// Parses a line of GNU format: `<hex>  name` or `<hex> *name`.
fn parse_gnu(line: &str) -> Option<(&str, Digest)> {
    let (hex, rest) = line.split_once(' ')?;
    let name = rest.strip_prefix([' ', '*'])?;
    Some((name, parse_hex(hex)?))
}

/// A line of BSD format: `TAG (name) = <hex>`.
struct BsdLine<'a> {
    tag: &'a str,
    name: &'a str,
    hex: &'a str,
}

fn split_bsd(line: &str) -> Option<BsdLine<'_>> {
    let (tag, rest) = line.split_once(" (")?;
    let (name, hex) = rest.rsplit_once(") = ")?;
    (!tag.contains(' ')).then_some(BsdLine { tag, name, hex })
}

fn parse_tagged(tag: &str, hex: &str) -> Result<Digest, String> {
    match (tag, parse_hex(hex)) {
        ("SHA256", Some(digest @ Digest::Sha256(_))) | ("SHA512", Some(digest @ Digest::Sha512(_))) => {
            Ok(digest)
        }
        ("SHA256" | "SHA512", _) => Err(format!("not a {tag} digest")),
        _ => Err(format!("{tag} is not supported; use SHA256 or SHA512")),
    }
}

fn parse_hex(hex: &str) -> Option<Digest> {
    let sha256 = Sha256::parse_any_case(hex).map(Digest::Sha256);
    sha256.or_else(|| Sha512::parse_any_case(hex).map(Digest::Sha512))
}
