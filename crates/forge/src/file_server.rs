//! File servers: which hosts may register projects, and what their URLs mean (D27).

use std::str::FromStr;

use countersign_core::{documents::signers::SourceKind, values::path::Scheme, values::wire};
use thiserror::Error;

use crate::url::{Host, HostProblem, SourceUrl, UrlProblem, check_storable, shown_text};
use crate::{source, source::OutgoingRequest, source::Retrieval, source::SignersSource};

/// How far above a file its project and its index are looked for. Checksums files may name `sub/file`, but each level
/// is a question.
pub(crate) const MAX_LEVELS_ABOVE: usize = 8;

/// The hosts whose files may register projects.
#[derive(Debug, Clone, Default)]
pub struct FileServers {
    pub rules: Vec<FileServerRule>,
    /// Every file server on this machine (`--dev`).
    pub loopback: bool,
}

/// The value of one `--file-server`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileServerRule {
    Any,
    /// A host; without a port, the default port of the URL's scheme is meant.
    Host {
        host: Host,
        port: Option<u16>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` does not name a file server: {problem}. Write HOST, HOST:PORT, or `*` for all")]
pub struct FileServerRuleError {
    text: String,
    problem: HostProblem,
}

impl FileServers {
    /// Whether files of this server may register projects, and be read over plain http.
    pub fn allow(&self, scheme: Scheme, host: &Host, port: u16) -> bool {
        let matches = |rule: &FileServerRule| match rule {
            FileServerRule::Any => true,
            FileServerRule::Host { host: allowed, port: own } => {
                allowed == host && own.unwrap_or(scheme.default_port()) == port
            }
        };
        let is_allowed = (self.loopback && host.is_loopback()) || self.rules.iter().any(matches);
        is_allowed && !is_known_forge(host)
    }
}

impl FromStr for FileServerRule {
    type Err = FileServerRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (host, port) = Host::parse_with_port(text)
            .map_err(|problem| FileServerRuleError { text: shown_text(text), problem })?;
        Ok(Self::Host { host, port })
    }
}

/// Says which project a signers file on a host that is no forge belongs to, by the URL alone.
pub(crate) fn locate_signers(url: &SourceUrl, servers: &FileServers) -> Result<SignersSource, UrlProblem> {
    let host = url.host();
    // On another port than the forge's, or without TLS.
    if is_known_forge(host) {
        return Err(UrlProblem::ForgeHttpsOnly { host: host.clone() });
    }
    if has_forge_form(url) {
        return Err(UrlProblem::ForgeForm { host: host.clone() });
    }
    let file_name = url.plain_file_name()?;
    if !servers.allow(url.scheme(), host, url.port()) {
        return Err(UrlProblem::FileServerNotAllowed { server: url.server() });
    }
    let dir = url.dir_segments();
    if dir.is_empty() && file_name != wire::SIGNERS_FILE {
        return Err(UrlProblem::RootFileName);
    }
    let project = match dir.split_last() {
        Some((last, project)) if wire::PUBLISHED_SIGNERS_DIRS.contains(&last.as_str()) => project,
        Some(_) | None => dir,
    };
    let request = OutgoingRequest::plain(url.request_url().clone());
    Ok(SignersSource {
        kind: SourceKind::FileServer,
        project: check_storable(url.path_on_server(project)?)?,
        url: url.as_str().to_owned(),
        retrievals: vec![vec![Retrieval { request, branch: None }]],
        needs_slashed_branch: false,
    })
}

/// Forges whose pages we know by their host. They are never file servers, whatever the operator allows.
pub(crate) fn is_known_forge(host: &Host) -> bool {
    source::is_known(host) || host.as_str() == "raw.githubusercontent.com"
}

/// Forges serve commits of strangers under a project's own path, so their pages must never pass for plain files.
pub(crate) fn has_forge_form(url: &SourceUrl) -> bool {
    let segments = url.segments();
    let has_pair = |firsts: &[&str], seconds: &[&str]| {
        segments.windows(2).any(|pair| firsts.contains(&pair[0]) && seconds.contains(&pair[1]))
    };
    // GitLab sets everything of a project's own apart with it: files, releases, artifacts, uploads.
    let is_gitlab = url.dir_segments().iter().any(|segment| segment == "-");
    let is_forgejo = has_pair(&["src", "raw", "media"], &["branch", "tag", "commit"]);
    // People who may attach a file to a release may not be allowed to push to a branch.
    let is_release = has_pair(&["releases"], &["tag", "download", "latest"]);
    let is_blob = url.dir_segments().iter().any(|segment| segment == "blob");
    // OWNER/REPO/raw/REF/PATH, perhaps below a directory: shorter, `raw` is a name like any other.
    let is_raw = segments.windows(5).any(|window| window[2] == "raw");
    is_gitlab || is_forgejo || is_release || is_blob || is_raw
}
