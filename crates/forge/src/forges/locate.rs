//! Leads from the URL of a page to the requests for what it shows (D26).

use countersign_core::documents::layout;
use countersign_core::values::{path::PathError, path::RepoPath, path::Scheme, wire};
use thiserror::Error;
use url::Url;

use crate::source;
use crate::source::{
    Credential, ForgeKind, OutgoingRequest, PathNames, ReleasePath, ReleaseSource, Retrieval, SignersSource,
    SplitPath, Token,
};
use crate::url::{
    Host, HostProblem, SourceUrl, UrlProblem, bare_url, check_storable, encode, encode_path, shown_text,
};

/// Makes GitHub send the file itself instead of a description of it.
const GITHUB_RAW_MEDIA: &str = "application/vnd.github.raw+json";

/// A repository on a forge, whatever host served the URL that named it.
struct ForgeRepository<'a> {
    forge: &'a Forge,
    /// The scheme of the forge's own pages.
    scheme: Scheme,
    names: PathNames<'a>,
}

impl Forge {
    /// Locates a signers file. `segments` are those of the page, or of a raw file below the place of raw files.
    pub(super) fn locate_signers(
        &self,
        url: &SourceUrl,
        segments: &[&str],
        served_by: ServedBy,
    ) -> Result<SignersSource, UrlProblem> {
        if url.has_fragment() {
            return Err(UrlProblem::Fragment);
        }
        let page = read_page(self.kind, segments, served_by)?;
        if url.file_name().is_none() {
            return Err(UrlProblem::NoFileName);
        }
        let repository = self.repository(url, page.project);
        let project = repository.path()?;
        let credential = repository.credential()?;
        let needs_slashed_branch = page.files.iter().all(|file| file.branch.len() > 1);
        let retrieve = |file| match &credential {
            Some(_) => vec![repository.retrieve_by_api(file, credential.clone())],
            None if needs_slashed_branch => repository.retrieve_slashed(file),
            None => vec![repository.retrieve_raw(file)],
        };
        let mut retrievals: Vec<Vec<Retrieval>> = page.files.iter().map(retrieve).collect();
        retrievals.dedup();
        let (kind, url) = (self.kind.source_kind(), url.as_str().to_owned());
        Ok(SignersSource { kind, project, url, retrievals, needs_slashed_branch })
    }

    pub(super) fn locate_release(&self, url: &SourceUrl) -> Result<ReleaseSource, UrlProblem> {
        if url.has_fragment() {
            return Err(UrlProblem::Fragment);
        }
        let segments = url.segments();
        let form = || release_form(self.kind);
        let ReleasePath { project: names, tag } = self.kind.split_release_page(&segments).ok_or_else(form)?;
        // Only the tag may hold encoded slashes.
        if names.iter().any(|name| name.contains('/')) {
            return Err(UrlProblem::ForbiddenInSegment);
        }
        if url.file_name().is_none() {
            return Err(form());
        }
        let tag = tag.join("/");
        let repository = self.repository(url, names);
        let project = repository.path()?;
        let dir = layout::release_dir(&project, &tag)?;
        Ok(ReleaseSource {
            kind: self.kind,
            project,
            dir: check_storable(dir)?,
            url: url.as_str().split('?').next().unwrap_or_default().to_owned(),
            api_project: to_url(&repository.api()),
            api_urls: repository.api_release_urls(&tag),
            credential: repository.credential()?,
            tag,
        })
    }

    /// The request that shows whether the API answers, and whether it knows the token.
    pub(super) fn first_question(&self) -> OutgoingRequest {
        let repository = ForgeRepository { forge: self, scheme: self.usual_scheme(), names: &[] };
        let base = repository.api_base();
        let url = to_url(&match self.kind {
            ForgeKind::Github => base.clone(),
            ForgeKind::Gitlab | ForgeKind::Forgejo => format!("{base}/version"),
        });
        let credential = |token| Credential::new(self.kind, token, &to_url(&base), vec![url.clone()]);
        OutgoingRequest { accept: None, credential: self.token.as_ref().map(credential), url }
    }

    /// A URL on the host of raw files does not tell the scheme of the forge's own pages: one repository must not become
    /// two projects by it.
    fn repository<'a>(&'a self, url: &SourceUrl, names: PathNames<'a>) -> ForgeRepository<'a> {
        let own_port = self.port.unwrap_or(url.scheme().default_port());
        let is_own = *url.host() == self.host && url.port() == own_port;
        let scheme = if is_own { url.scheme() } else { self.usual_scheme() };
        ForgeRepository { forge: self, scheme, names }
    }

    fn usual_scheme(&self) -> Scheme {
        match &self.api {
            Some(api) => api.scheme(),
            None if self.host.is_loopback() => Scheme::Http,
            None => Scheme::Https,
        }
    }
}

impl ForgeRepository<'_> {
    fn path(&self) -> Result<RepoPath, PathError> {
        let port = self.forge.port.unwrap_or(self.scheme.default_port());
        let (scheme, host, names) = (self.scheme.as_str(), &self.forge.host, self.names.join("/"));
        RepoPath::parse(&format!("{scheme}/{host}/{port}/{names}")).and_then(check_storable)
    }

    /// The token, for the places of this project alone.
    fn credential(&self) -> Result<Option<Credential>, UrlProblem> {
        let Forge { host, kind, api, .. } = self.forge;
        let Some(token) = &self.forge.token else { return Ok(None) };
        // The caller chooses the scheme of the URL, but must not make us send the token in the clear.
        if api.is_none() && self.scheme == Scheme::Http && !host.is_loopback() {
            return Err(UrlProblem::TokenOverHttp { host: host.clone() });
        }
        let own_urls = [self.api(), self.page()].map(|url| to_url(&format!("{url}/")));
        Ok(Some(Credential::new(*kind, token, &to_url(&self.api_base()), own_urls.into())))
    }

    fn retrieve_raw(&self, file: &BranchFile<'_>) -> Retrieval {
        Retrieval { request: OutgoingRequest::plain(self.raw_file_url(file)), branch: None }
    }

    fn retrieve_by_api(&self, file: &BranchFile<'_>, credential: Option<Credential>) -> Retrieval {
        let accept = (self.forge.kind == ForgeKind::Github).then_some(GITHUB_RAW_MEDIA);
        let request = OutgoingRequest { url: self.api_file_url(file), accept, credential };
        Retrieval { request, branch: None }
    }

    /// The ways to ask for a file whose branch may have slashes. In a raw URL the forge decides where the branch ends:
    /// of `main/docs/svc.signers.json` it would send the file in `docs` on `main`, which is no place for signers. So
    /// the forge is asked for the branch first; where it does not tell, for the file through the API, which takes
    /// branch and path apart.
    fn retrieve_slashed(&self, file: &BranchFile<'_>) -> Vec<Retrieval> {
        let branch = Some(self.api_branch_url(file));
        vec![Retrieval { branch, ..self.retrieve_raw(file) }, self.retrieve_by_api(file, None)]
    }

    // No base and no page has a slash at its end.

    fn page_base(&self) -> String {
        let port = self.forge.port.map(|port| self.scheme.written_port(port)).unwrap_or_default();
        format!("{}://{}{port}", self.scheme.as_str(), self.forge.host)
    }

    fn page(&self) -> String {
        format!("{}/{}", self.page_base(), encode_names(self.names))
    }

    fn api_base(&self) -> String {
        match &self.forge.api {
            Some(api) => base_text(api).to_owned(),
            None => format!("{}/{}", self.page_base(), self.forge.kind.api_path()),
        }
    }

    /// The URL of the project in the API.
    fn api(&self) -> String {
        let api = self.api_base();
        match self.forge.kind {
            ForgeKind::Github | ForgeKind::Forgejo => format!("{api}/repos/{}", encode_names(self.names)),
            ForgeKind::Gitlab => format!("{api}/projects/{}", encode(&self.names.join("/"))),
        }
    }

    fn raw_file_url(&self, file: &BranchFile<'_>) -> Url {
        let raw = self.forge.raw.as_ref();
        let base = match raw {
            Some(raw) => format!("{}/{}", base_text(raw), encode_names(self.names)),
            None => self.page(),
        };
        let (branch, path) = (encode_names(file.branch), encode_names(file.path));
        to_url(&match self.forge.kind {
            ForgeKind::Github if raw.is_some() => format!("{base}/refs/heads/{branch}/{path}"),
            ForgeKind::Github => format!("{base}/raw/refs/heads/{branch}/{path}"),
            ForgeKind::Gitlab => format!("{base}/-/raw/{branch}/{path}?ref_type=heads"),
            ForgeKind::Forgejo => format!("{base}/raw/branch/{branch}/{path}"),
        })
    }

    fn api_file_url(&self, file: &BranchFile<'_>) -> Url {
        let (api, path) = (self.api(), encode_names(file.path));
        let query = format!("ref=refs%2Fheads%2F{}", encode(&file.branch.join("/")));
        to_url(&match self.forge.kind {
            ForgeKind::Github => format!("{api}/contents/{path}?{query}"),
            ForgeKind::Gitlab => {
                format!("{api}/repository/files/{}/raw?{query}", encode(&file.path.join("/")))
            }
            ForgeKind::Forgejo => format!("{api}/raw/{path}?{query}"),
        })
    }

    fn api_branch_url(&self, file: &BranchFile<'_>) -> Url {
        let (api, branch) = (self.api(), encode(&file.branch.join("/")));
        to_url(&match self.forge.kind {
            ForgeKind::Github | ForgeKind::Forgejo => format!("{api}/branches/{branch}"),
            ForgeKind::Gitlab => format!("{api}/repository/branches/{branch}"),
        })
    }

    fn api_release_urls(&self, tag: &str) -> Vec<Url> {
        let api = self.api();
        let mut urls = match self.forge.kind {
            ForgeKind::Github | ForgeKind::Forgejo => {
                // Proxies in front of a forge may refuse an encoded slash.
                let spellings = [encode(tag), encode_path(tag.split('/'))];
                spellings.map(|tag| to_url(&format!("{api}/releases/tags/{tag}"))).to_vec()
            }
            ForgeKind::Gitlab => vec![to_url(&format!("{api}/releases/{}", encode(tag)))],
        };
        urls.dedup();
        urls
    }
}

fn release_form(kind: ForgeKind) -> UrlProblem {
    UrlProblem::ReleaseForm {
        form: match kind {
            ForgeKind::Github | ForgeKind::Forgejo => "…/OWNER/REPOSITORY/releases/tag/TAG",
            ForgeKind::Gitlab => "…/GROUP/PROJECT/-/releases/TAG",
        },
    }
}

/// The text of a base URL without a slash at its end.
fn base_text(base: &SourceUrl) -> &str {
    base.request_url().as_str().trim_end_matches('/')
}

fn encode_names(names: PathNames<'_>) -> String {
    encode_path(names.iter().copied())
}

fn to_url(text: &str) -> Url {
    Url::parse(text).expect("a base that was parsed, and encoded segments")
}

// What the path of a signers file's page says: the repository, and the ways to read a branch and a path from it.

/// A signers file on a branch.
pub(super) struct BranchFile<'a> {
    pub(super) branch: PathNames<'a>,
    pub(super) path: PathNames<'a>,
}

/// The host that serves a URL: GitHub's raw host has no `blob` in its paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServedBy {
    Forge,
    RawHost,
}

pub(super) struct SignersPage<'a> {
    pub(super) project: PathNames<'a>,
    /// The files that the URL can mean, at least one. There are two if a last directory may belong to the branch's
    /// name or to the path.
    pub(super) files: Vec<BranchFile<'a>>,
}

pub(super) fn read_page<'a>(
    kind: ForgeKind,
    segments: PathNames<'a>,
    served_by: ServedBy,
) -> Result<SignersPage<'a>, UrlProblem> {
    let malformed = UrlProblem::SignersForm { form: expected_form(kind, served_by) };
    let SplitPath { project, page } = kind.split_project(segments).ok_or_else(|| malformed.clone())?;
    let rest = match (kind, page) {
        (ForgeKind::Github, _) if served_by == ServedBy::RawHost => page,
        (ForgeKind::Github | ForgeKind::Gitlab, ["blob" | "raw", rest @ ..])
        | (ForgeKind::Forgejo, ["src" | "raw", "branch", rest @ ..]) => rest,
        (ForgeKind::Forgejo, ["src" | "raw", kind @ ("tag" | "commit"), named, ..]) => {
            return Err(UrlProblem::NotABranch { named: shown_text(&format!("{kind}/{named}")) });
        }
        (ForgeKind::Github | ForgeKind::Gitlab | ForgeKind::Forgejo, _) => return Err(malformed),
    };
    let rest = strip_refs(rest)?;
    if rest.len() < 2 {
        return Err(malformed);
    }
    let mut files = split_branch(rest);
    let first = files.first().ok_or(UrlProblem::SignersPath)?;
    let named = first.branch.join("/");
    files.retain(|file| is_branch_name(file.branch));
    if files.is_empty() {
        return Err(UrlProblem::NotABranch { named: shown_text(&named) });
    }
    Ok(SignersPage { project, files })
}

fn expected_form(kind: ForgeKind, served_by: ServedBy) -> &'static str {
    match (kind, served_by) {
        (ForgeKind::Github, ServedBy::RawHost) => "…/OWNER/REPOSITORY/refs/heads/BRANCH/svc.signers.json",
        (ForgeKind::Github, ServedBy::Forge) => "…/OWNER/REPOSITORY/blob/BRANCH/svc.signers.json",
        (ForgeKind::Gitlab, _) => "…/GROUP/PROJECT/-/blob/BRANCH/svc.signers.json",
        (ForgeKind::Forgejo, _) => "…/OWNER/REPOSITORY/src/branch/BRANCH/svc.signers.json",
    }
}

/// Drops `refs/heads/`, and refuses what is certainly no branch.
fn strip_refs(rest: PathNames<'_>) -> Result<PathNames<'_>, UrlProblem> {
    let not_a_branch = |named: String| UrlProblem::NotABranch { named: shown_text(&named) };
    let rest = match rest {
        ["refs", "heads", rest @ ..] => rest,
        ["refs", kind, named, _, ..] => return Err(not_a_branch(format!("refs/{kind}/{named}"))),
        rest => rest,
    };
    match rest {
        [named, _, ..] if is_hash(named) || *named == "HEAD" => Err(not_a_branch((*named).to_owned())),
        rest => Ok(rest),
    }
}

/// A whole object name, of SHA-1 or SHA-256. A shorter one is asked for as a branch, and not found.
fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a name follows Git's rules for names of references. Without them `main~2` or `main^2` would name a commit
/// that was never the head of a branch here, such as one from the middle of a merged pull request.
fn is_branch_name(segments: &[&str]) -> bool {
    let is_component = |name: &&str| {
        !name.starts_with('.')
            && !name.ends_with('.')
            && !name.ends_with(".lock")
            && !name.contains("..")
            && !name.contains("@{")
            && !name.chars().any(|c| c.is_control() || " ~^:?*[\\".contains(c))
    };
    let starts_plainly = segments.first().is_some_and(|first| !first.starts_with('-') && *first != "@");
    starts_plainly && segments.iter().all(is_component)
}

fn split_branch(rest: PathNames<'_>) -> Vec<BranchFile<'_>> {
    let file = |at: usize| BranchFile { branch: &rest[..at], path: &rest[at..] };
    let in_directory = match rest {
        [_, .., dir, _] => wire::PUBLISHED_SIGNERS_DIRS.contains(dir),
        _ => false,
    };
    let at_root = rest.last() == Some(&wire::SIGNERS_FILE);
    let splits = [in_directory.then(|| rest.len() - 2), at_root.then(|| rest.len() - 1)];
    splits.into_iter().flatten().map(file).collect()
}

// One forge: its hosts, and which URLs are on it.

/// One `[[forge]]` of the configuration.
#[derive(Debug, Clone)]
pub struct ForgeConfig {
    /// `HOST` or `HOST:PORT`. Without a port, the default port of the URL's scheme is meant.
    pub host: String,
    pub kind: ForgeKind,
    /// The place of its API, unless it is the kind's usual place on that host.
    pub api: Option<String>,
    /// The place of its raw files, unless on that host.
    pub raw: Option<String>,
    pub token: Option<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ForgeConfigError {
    #[error("the forge host `{text}` cannot be used: {problem}. Write HOST or HOST:PORT")]
    Host { text: String, problem: HostProblem },
    #[error("the forge {host} is configured twice: keep one entry")]
    Twice { host: String },
    #[error(
        "`{key}` of the forge {host} is `{text}`, which is not an absolute http(s) URL without user information, query \
         and fragment"
    )]
    Base { host: String, key: &'static str, text: String },
    #[error("{host} is read over https on its usual port: leave out the port, and write `{key}` with https")]
    KnownHost { host: String, key: &'static str },
}

#[derive(Debug, Clone)]
pub(crate) struct Forge {
    pub(super) host: Host,
    /// The port; `None` for the default port of the URL's scheme.
    pub(super) port: Option<u16>,
    pub(super) kind: ForgeKind,
    pub(super) api: Option<SourceUrl>,
    pub(super) raw: Option<SourceUrl>,
    pub(super) token: Option<Token>,
    /// Whether it is one of the public forges, which is https only and no exception from D28.
    pub(super) is_known: bool,
}

impl Forge {
    pub(super) fn configured(config: ForgeConfig) -> Result<Self, ForgeConfigError> {
        let ForgeConfig { host: text, kind, mut api, mut raw, token } = config;
        let (host, port) = Host::parse_with_port(&text)
            .map_err(|problem| ForgeConfigError::Host { text: shown_text(&text), problem })?;
        let is_known = source::is_known(&host);
        if host.as_str() == "github.com" {
            api = api.or_else(|| Some("https://api.github.com".to_owned()));
            raw = raw.or_else(|| Some("https://raw.githubusercontent.com".to_owned()));
        }
        let base = |key, text: Option<String>| text.map(|text| parse_base(&host, key, &text)).transpose();
        let (api, raw) = (base("api", api)?, base("raw", raw)?);
        let is_plain = |url: &Option<SourceUrl>| url.as_ref().is_some_and(|url| url.scheme() == Scheme::Http);
        let has_other_port = port.is_some_and(|port| port != Scheme::Https.default_port());
        for (key, is_wrong) in [("api", has_other_port || is_plain(&api)), ("raw", is_plain(&raw))] {
            if is_known && is_wrong {
                return Err(ForgeConfigError::KnownHost { host: host.to_string(), key });
            }
        }
        let port = port.filter(|_| !is_known);
        Ok(Self { host, port, kind, api, raw, token, is_known })
    }

    /// Whether some URL would be on both forges.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let is_default = |port: Option<u16>| port.is_none_or(|port| matches!(port, 80 | 443));
        let same_port = match (self.port, other.port) {
            (Some(a), Some(b)) => a == b,
            (a, b) => is_default(a) && is_default(b),
        };
        self.host == other.host && same_port
    }

    pub(super) fn serves(&self, scheme: Scheme, host: &Host, port: u16) -> bool {
        let is_scheme = scheme == Scheme::Https || !self.is_known;
        is_scheme && self.host == *host && self.port.unwrap_or(scheme.default_port()) == port
    }

    /// The segments of a URL below the place of the raw files, where it is there.
    pub(super) fn below_raw<'u>(&self, url: &'u SourceUrl) -> Option<Vec<&'u str>> {
        let raw = self.raw.as_ref()?;
        let same_server = raw.request_url().origin() == url.request_url().origin();
        let base = raw.segments();
        let is_own_page = base.is_empty() && self.serves(url.scheme(), url.host(), url.port());
        let mut segments = url.segments();
        let is_below = same_server && segments.starts_with(&base);
        (is_below && !is_own_page).then(|| segments.split_off(base.len()))
    }
}

fn parse_base(host: &Host, key: &'static str, text: &str) -> Result<SourceUrl, ForgeConfigError> {
    let url = SourceUrl::parse(text).ok().filter(|url| !url.has_query() && !url.has_fragment());
    url.ok_or_else(|| ForgeConfigError::Base { host: host.to_string(), key, text: bare_url(text) })
}
