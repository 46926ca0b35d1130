//! Finds where a project's own forge or file server may show its signers file, by the URL of anything in the project
//! (D61).
//!
//! What is found there only says which servers to ask. Nothing of it is believed: the servers' answers are verified,
//! and trust begins with the file at the origin that the history names.

use countersign_core::{documents::signers::SignersFile, values::bounds::SIGNERS_FILE_BYTES, values::wire};
use serde::Deserialize;
use url::Url;

use crate::fetch::{FetchError, FetchLimits, Fetcher, Redirects};
use crate::file_server::{MAX_LEVELS_ABOVE, is_known_forge};
use crate::url::{SourceUrl, UrlRefusal, encode, encode_path};

/// The branches that are tried if a forge does not say which branch is the default.
const USUAL_BRANCHES: [&str; 2] = ["main", "master"];
const REPOSITORY_BYTES: u64 = 1 << 20;

/// A signers file where a project publishes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedSigners {
    pub url: String,
    pub file: SignersFile,
}

/// The ways of one project's host to name a file on a branch.
struct ProjectUrls {
    /// The beginning of all URLs, `https://host:port`.
    base: String,
    /// The project, percent-encoded, without a slash at either end.
    project: String,
    form: UrlForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UrlForm {
    /// github.com, whose raw files and API have hosts of their own.
    GithubCom,
    /// GitHub or Forgejo, which have the same URLs for releases.
    OwnerAndRepository,
    Gitlab,
}

#[derive(Deserialize)]
struct RepositoryAnswer {
    default_branch: String,
}

impl Fetcher {
    /// The first signers file that names servers, else the first at all; `None` where no known place has one.
    pub async fn find_published_signers(
        &self,
        url: &str,
    ) -> Result<Option<PublishedSigners>, DiscoveryError> {
        let url = SourceUrl::parse_release(url)?;
        let mut silent = None;
        let mut failed = None;
        let urls = ProjectUrls::of(&url);
        let first = match &urls {
            Some(urls) => urls.on_branch(None),
            None => on_file_server(&url),
        };
        let mut waiting: Vec<String> = first.into_iter().rev().collect();
        let mut branches = urls.as_ref();
        loop {
            let Some(candidate) = waiting.pop() else {
                // The forge does not take `HEAD` for a branch: it may say how it calls its default one.
                let Some(urls) = branches.take() else { break };
                if silent.is_none() {
                    waiting = self.name_branches(urls).await.into_iter().rev().collect();
                }
                continue;
            };
            match self.read_signers(&candidate).await {
                Ok(Some(file)) if !file.servers().is_empty() => {
                    return Ok(Some(PublishedSigners { url: candidate, file }));
                }
                Ok(Some(file)) => silent = silent.or(Some(PublishedSigners { url: candidate, file })),
                Ok(None) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match (silent, failed) {
            (Some(found), _) => Ok(Some(found)),
            (None, Some(error)) => Err(error.into()),
            (None, None) => Ok(None),
        }
    }

    /// Reads a signers file; `None` also if something else is there.
    async fn read_signers(&self, url: &str) -> Result<Option<SignersFile>, FetchError> {
        let Ok(url) = Url::parse(url) else { return Ok(None) };
        let limits = FetchLimits { max_bytes: SIGNERS_FILE_BYTES as u64, redirects: Redirects::SameOrigin };
        let bytes = self.get(&url, limits).await?;
        Ok(bytes.and_then(|bytes| SignersFile::parse(&bytes).ok()))
    }

    async fn name_branches(&self, urls: &ProjectUrls) -> Vec<String> {
        let limits = FetchLimits { max_bytes: REPOSITORY_BYTES, redirects: Redirects::SameOrigin };
        let mut branches = Vec::new();
        for api in urls.api_urls() {
            let Ok(url) = Url::parse(&api) else { continue };
            let Ok(Some(bytes)) = self.get(&url, limits).await else { continue };
            if let Ok(answer) = serde_json::from_slice::<RepositoryAnswer>(&bytes) {
                branches.push(answer.default_branch);
                break;
            }
        }
        if branches.is_empty() {
            branches.extend(USUAL_BRANCHES.map(str::to_owned));
        }
        branches.iter().flat_map(|branch| urls.on_branch(Some(branch))).collect()
    }
}

/// Why a project's own place could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    #[error(transparent)]
    Url(#[from] UrlRefusal),
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

impl ProjectUrls {
    /// The place on a forge; `None` if the URL has no form of a forge.
    fn of(url: &SourceUrl) -> Option<Self> {
        let segments = url.segments();
        let base = format!("{}://{}", url.scheme().as_str(), url.server());
        let dash = segments.iter().position(|segment| *segment == "-").filter(|dash| *dash >= 2);
        let is_known = is_known_forge(url.host());
        let (names, form) = match (dash, segments.as_slice()) {
            (Some(dash), segments) => (&segments[..dash], UrlForm::Gitlab),
            (None, segments) if is_known && url.host().as_str() == "gitlab.com" => {
                (segments, UrlForm::Gitlab)
            }
            (None, [_, _, ..]) if url.host().as_str() == "github.com" => (&segments[..2], UrlForm::GithubCom),
            (None, [_, _, ..]) if is_known => (&segments[..2], UrlForm::OwnerAndRepository),
            (None, [_, _, "releases", ..]) => (&segments[..2], UrlForm::OwnerAndRepository),
            (None, _) => return None,
        };
        let project = encode_path(names.iter().copied());
        Some(Self { base, project, form })
    }

    /// The signers files on a branch, or on the default one.
    fn on_branch(&self, branch: Option<&str>) -> Vec<String> {
        let branch = branch.map(|branch| encode_path(branch.split('/')));
        let Self { base, project, form } = self;
        let raw = match (form, &branch) {
            (UrlForm::GithubCom, None) => vec![format!("https://raw.githubusercontent.com/{project}/HEAD")],
            (UrlForm::GithubCom, Some(branch)) => {
                vec![format!("https://raw.githubusercontent.com/{project}/refs/heads/{branch}")]
            }
            (UrlForm::OwnerAndRepository, None) => {
                vec![format!("{base}/{project}/raw/HEAD"), format!("{base}/api/v1/repos/{project}/raw")]
            }
            (UrlForm::OwnerAndRepository, Some(branch)) => vec![
                format!("{base}/{project}/raw/branch/{branch}"),
                format!("{base}/{project}/raw/refs/heads/{branch}"),
            ],
            (UrlForm::Gitlab, None) => vec![format!("{base}/{project}/-/raw/HEAD")],
            (UrlForm::Gitlab, Some(branch)) => vec![format!("{base}/{project}/-/raw/{branch}")],
        };
        let files = raw.iter().flat_map(|dir| files_in(dir));
        // GitLab would take a tag of the same name.
        let is_named = *form == UrlForm::Gitlab && branch.is_some();
        let kind = if is_named { "?ref_type=heads" } else { "" };
        files.map(|file| format!("{file}{kind}")).collect()
    }

    /// The repository in the API, which tells its default branch.
    fn api_urls(&self) -> Vec<String> {
        let Self { base, project, form } = self;
        match form {
            UrlForm::GithubCom => vec![format!("https://api.github.com/repos/{project}")],
            UrlForm::OwnerAndRepository => {
                vec![format!("{base}/api/v1/repos/{project}"), format!("{base}/api/v3/repos/{project}")]
            }
            UrlForm::Gitlab => vec![format!("{base}/api/v4/projects/{}", project.replace('/', "%2F"))],
        }
    }
}

fn files_in(dir: &str) -> Vec<String> {
    let dirs = wire::PUBLISHED_SIGNERS_DIRS.map(|own| format!("{dir}/{own}/{}", wire::SIGNERS_FILE));
    std::iter::once(format!("{dir}/{}", wire::SIGNERS_FILE)).chain(dirs).collect()
}

/// The URLs to try on a file server: in the file's own directory and those above it; last below the URL itself, which
/// may be that of a directory.
fn on_file_server(url: &SourceUrl) -> Vec<String> {
    let dirs = url.dir_segments();
    let base = format!("{}://{}", url.scheme().as_str(), url.server());
    let own_and_above =
        (0..=dirs.len().min(MAX_LEVELS_ABOVE)).map(|above| dirs[..dirs.len() - above].to_vec());
    let below = url.file_name().map(|name| [dirs, &[name.to_owned()]].concat());
    own_and_above
        .chain(below)
        .flat_map(|names| {
            let names = names.iter().map(|name| encode(name));
            let dir = std::iter::once(base.clone()).chain(names).collect::<Vec<_>>().join("/");
            [
                format!("{dir}/{}", wire::SIGNERS_FILE),
                format!("{dir}/{}/{}", wire::ACTIVE_DIR, wire::SIGNERS_FILE),
            ]
        })
        .collect()
}
