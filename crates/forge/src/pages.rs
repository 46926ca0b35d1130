//! The addresses that a project's signers file and releases have on its forge or file server, as a browser shows them.

use countersign_core::documents::signers::SourceKind;
use countersign_core::{rules::place::path_of_url, values::path::RepoPath, values::wire};

use crate::{source::KNOWN, url::encode_path};

/// The name that checksums files have by custom.
const CHECKSUMS_FILE: &str = "SHA256SUMS";

/// A project's place on the web.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectPages {
    /// The address of the project itself, without a slash at its end.
    pub url: String,
    pub kind: SourceKind,
}

/// What the server reads a release from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseAddress {
    /// The release's page on a forge.
    Page(String),
    /// The checksums file of a release on a file server.
    Checksums(String),
}

impl ProjectPages {
    /// `None` if the path does not begin with a scheme, a host and a port.
    pub fn new(project: &RepoPath, kind: SourceKind) -> Option<Self> {
        let (server, names) = project.split_server()?;
        let names = encode_path(names.split('/'));
        Some(Self { url: format!("{server}/{names}").trim_end_matches('/').to_owned(), kind })
    }

    /// Tells the kind by the host. A host that is not one of the public forges counts as a file server.
    pub fn of_host(project: &RepoPath) -> Option<Self> {
        let known = KNOWN.into_iter().find(|(host, _)| project.host() == Some(host));
        Self::new(project, known.map_or(SourceKind::FileServer, |(_, kind)| kind.source_kind()))
    }

    /// The kind of the public forge that a URL is on; `None` if it is on another host.
    pub fn known_forge(url: &str) -> Option<SourceKind> {
        let pages = Self::of_host(&path_of_url(url.split(['?', '#']).next()?)?)?;
        (pages.kind != SourceKind::FileServer).then_some(pages.kind)
    }

    /// The signers file in the root of the project, on this branch of its repository.
    pub fn signers_file(&self, branch: &str) -> String {
        let (url, file) = (&self.url, wire::SIGNERS_FILE);
        let branch = encode_path(branch.split('/'));
        match self.kind {
            SourceKind::Github => format!("{url}/blob/{branch}/{file}"),
            SourceKind::Gitlab => format!("{url}/-/blob/{branch}/{file}"),
            SourceKind::Forgejo => format!("{url}/src/branch/{branch}/{file}"),
            SourceKind::FileServer => format!("{url}/{file}"),
        }
    }

    /// The release with this tag, or in this directory of a file server.
    pub fn release(&self, tag: &str) -> ReleaseAddress {
        let (url, tag) = (&self.url, encode_path(tag.split('/')));
        match self.kind {
            SourceKind::Github | SourceKind::Forgejo => {
                ReleaseAddress::Page(format!("{url}/releases/tag/{tag}"))
            }
            SourceKind::Gitlab => ReleaseAddress::Page(format!("{url}/-/releases/{tag}")),
            SourceKind::FileServer => ReleaseAddress::Checksums(format!("{url}/{tag}/{CHECKSUMS_FILE}")),
        }
    }
}
