//! File servers: which hosts may register projects, and what their URLs mean (D27).

use std::str::FromStr;

use thiserror::Error;

use crate::{
    host::{Host, HostProblem},
    shown::shown_text,
    url::{Scheme, SourceUrl},
};

/// Forges whose pages we know by their host. They are never file servers, whatever the operator allows.
const KNOWN_FORGE_HOSTS: [&str; 5] =
    ["github.com", "raw.githubusercontent.com", "gitlab.com", "codeberg.org", "gitea.com"];

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
    /// Without a port, the default port of the URL's scheme is meant.
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
        if is_known_forge(host) {
            return false;
        }
        (self.loopback && host.is_loopback())
            || self.rules.iter().any(|rule| rule.matches(scheme, host, port))
    }
}

impl FileServerRule {
    fn matches(&self, scheme: Scheme, host: &Host, port: u16) -> bool {
        match self {
            Self::Any => true,
            Self::Host { host: allowed, port: allowed_port } => {
                allowed == host && allowed_port.unwrap_or(scheme.default_port()) == port
            }
        }
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

pub(crate) fn is_known_forge(host: &Host) -> bool {
    KNOWN_FORGE_HOSTS.contains(&host.as_str())
}

/// Also a host that a known forge keeps for what its users upload.
pub(crate) fn is_of_known_forge(host: &Host) -> bool {
    is_known_forge(host) || host.as_str().ends_with(".githubusercontent.com")
}

/// Forges serve commits of strangers under a project's own path, so their pages must never pass for plain files.
pub(crate) fn has_forge_form(url: &SourceUrl) -> bool {
    let segments: Vec<&str> = url.segments().collect();
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
