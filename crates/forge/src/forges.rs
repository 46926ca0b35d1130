//! Code forges (D26): which hosts are forges, and where their signers files and releases are read.

use std::str::FromStr;

use countersign_core::{documents::metadata::OriginKind, values::path::RepoPath};
use reqwest::header::HeaderValue;
use thiserror::Error;
use url::Url;

use crate::{
    file_server::{self, FileServers},
    guard::{AllowFetch, Ports},
    host::{Host, HostProblem},
    shown::{shown_text, shown_url},
    url::{Scheme, SourceUrl, UrlRefusal},
};

pub use claimed::{locate_claimed, may_be_configured};
pub use token::{Token, TokenError};

pub(crate) use credential::Credential;

use signers_form::ServedBy;

mod claimed;
mod credential;
mod locate;
mod signers_form;
#[cfg(test)]
mod tests;
mod token;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeKind {
    Github,
    Gitlab,
    Forgejo,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a kind of forge: write `github`, `gitlab` or `forgejo`")]
pub struct ForgeKindError(String);

/// One `[[forge]]` of the configuration.
#[derive(Debug, Clone)]
pub struct ForgeConfig {
    /// `HOST` or `HOST:PORT`. Without a port, the default port of the URL's scheme is meant.
    pub host: String,
    pub kind: ForgeKind,
    /// Where its API is, unless in the kind's usual place on that host.
    pub api: Option<String>,
    /// Where its raw files are, unless on that host.
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

/// All forges that this server reads from.
#[derive(Debug, Clone)]
pub struct Forges(Vec<Forge>);

#[derive(Debug, Clone)]
pub(crate) struct Forge {
    host: Host,
    /// `None`: the default port of the URL's scheme.
    port: Option<u16>,
    kind: ForgeKind,
    api: Option<Url>,
    raw: Option<Url>,
    token: Option<Token>,
    /// One of the public forges, which is https only and no exception from D28.
    is_known: bool,
}

/// Where a signers file is to be read, and the project that it speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignersSource {
    pub kind: OriginKind,
    pub project: RepoPath,
    /// As given.
    pub url: String,
    /// Several where the URL does not tell the branch from the path: then exactly one of them must exist.
    pub(crate) retrievals: Vec<Retrieval>,
    /// Whether the branch must have a `/` in its name for the file to be in an allowed place.
    pub(crate) needs_slashed_branch: bool,
}

/// One request for a signers file, in a form that can only name a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retrieval {
    pub(crate) url: Url,
    pub(crate) accept: Option<HeaderValue>,
    pub(crate) credential: Option<Credential>,
    /// Forges answer with a page where a file is missing or a login is; a file server may send what it likes.
    pub(crate) refuses_html: bool,
    /// The branch's own page in the API, which must exist first: a raw URL alone would let the forge decide where the
    /// branch's name ends.
    pub(crate) branch: Option<Url>,
    /// Another way to ask for the same file, where this one knows none.
    pub(crate) otherwise: Option<Box<Retrieval>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedSigners {
    pub bytes: Vec<u8>,
    /// As requested, not where a redirect led.
    pub retrieval_url: String,
}

/// Where a release is to be read, and the directory that its index belongs into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseSource {
    pub kind: OriginKind,
    pub project: RepoPath,
    pub tag: String,
    /// The page of the release as given, without a query.
    pub url: String,
    /// `<project>/releases/tag/<tag>`
    pub dir: RepoPath,
    pub(crate) forge_kind: ForgeKind,
    /// The project in the API.
    pub(crate) api_project: Url,
    /// Spellings of one request, to be tried in this order.
    pub(crate) api_urls: Vec<Url>,
    pub(crate) credential: Option<Credential>,
}

impl ForgeKind {
    fn origin(self) -> OriginKind {
        match self {
            Self::Github => OriginKind::Github,
            Self::Gitlab => OriginKind::Gitlab,
            Self::Forgejo => OriginKind::Forgejo,
        }
    }

    /// The usual place of the API on a host.
    fn api_path(self) -> &'static str {
        match self {
            Self::Github => "api/v3",
            Self::Gitlab => "api/v4",
            Self::Forgejo => "api/v1",
        }
    }
}

impl FromStr for ForgeKind {
    type Err = ForgeKindError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Github, Self::Gitlab, Self::Forgejo]
            .into_iter()
            .find(|kind| kind.origin().as_str() == text)
            .ok_or_else(|| ForgeKindError(shown_text(text)))
    }
}

impl Forges {
    /// The configured forges, and the known ones that are not among them.
    pub fn new(configured: Vec<ForgeConfig>) -> Result<Self, ForgeConfigError> {
        let mut forges: Vec<Forge> = Vec::new();
        for config in configured {
            let shown = shown_text(&config.host);
            let forge = Forge::configured(config)?;
            if forges.iter().any(|other| other.overlaps(&forge)) {
                return Err(ForgeConfigError::Twice { host: shown });
            }
            forges.push(forge);
        }
        for (host, kind) in KNOWN {
            if !forges.iter().any(|forge| forge.host.as_str() == host) {
                let config = ForgeConfig { host: host.to_owned(), kind, api: None, raw: None, token: None };
                forges.push(Forge::configured(config)?);
            }
        }
        Ok(Self(forges))
    }

    /// Places that the operator named by configuring forges: D28 lets requests go there, at any address of the host, and
    /// on that port alone.
    pub fn exceptions(&self) -> Vec<AllowFetch> {
        let configured = self.0.iter().filter(|forge| !forge.is_known);
        let places = configured.flat_map(|forge| {
            let bases = [&forge.api, &forge.raw].into_iter().flatten();
            let bases = bases.filter_map(|base| {
                let port = base.port_or_known_default()?;
                Some((Host::parse(base.host_str()?).ok()?, Ports::One(port)))
            });
            let ports = forge.port.map_or(Ports::Default, Ports::One);
            std::iter::once((forge.host.clone(), ports)).chain(bases)
        });
        let places = places.filter(|(host, _)| !file_server::is_known_forge(host));
        places.map(|(host, ports)| AllowFetch::host(host, ports)).collect()
    }

    /// Says which project a signers file belongs to, by the URL alone.
    pub fn locate_signers(
        &self,
        url: &SourceUrl,
        servers: &FileServers,
    ) -> Result<SignersSource, UrlRefusal> {
        // Raw hosts first: such a host may be a directory of the forge's own.
        if let Some((forge, segments)) = self.0.iter().find_map(|forge| Some((forge, forge.below_raw(url)?)))
        {
            return forge.locate_signers(url, &segments, ServedBy::RawHost);
        }
        match self.page_forge(url) {
            Some(forge) => forge.locate_signers(url, &url.segments().collect::<Vec<_>>(), ServedBy::Forge),
            None => file_server::locate_signers(url, servers),
        }
    }

    /// Says which release a URL is the page of, by the URL alone.
    pub fn locate_release(&self, url: &str) -> Result<ReleaseSource, UrlRefusal> {
        let url = SourceUrl::parse_release(url)?;
        match self.page_forge(&url) {
            Some(forge) => forge.locate_release(&url),
            None => Err(url.refuse(locate::no_forge_problem(&url))),
        }
    }

    fn page_forge(&self, url: &SourceUrl) -> Option<&Forge> {
        self.0.iter().find(|forge| forge.serves(url.scheme(), url.host(), url.port()))
    }
}

/// What a signers file of github.com is read from.
const GITHUB_API: &str = "https://api.github.com";
const GITHUB_RAW: &str = "https://raw.githubusercontent.com";

const KNOWN: [(&str, ForgeKind); 4] = [
    ("github.com", ForgeKind::Github),
    ("gitlab.com", ForgeKind::Gitlab),
    ("codeberg.org", ForgeKind::Forgejo),
    ("gitea.com", ForgeKind::Forgejo),
];

impl Forge {
    fn configured(config: ForgeConfig) -> Result<Self, ForgeConfigError> {
        let ForgeConfig { host: text, kind, mut api, mut raw, token } = config;
        let (host, port) = Host::parse_with_port(&text)
            .map_err(|problem| ForgeConfigError::Host { text: shown_text(&text), problem })?;
        let is_known = KNOWN.iter().any(|(known, _)| *known == host.as_str());
        if host.as_str() == "github.com" {
            api = api.or_else(|| Some(GITHUB_API.to_owned()));
            raw = raw.or_else(|| Some(GITHUB_RAW.to_owned()));
        }
        let base = |key, text: Option<String>| text.map(|text| parse_base(&host, key, &text)).transpose();
        let (api, raw) = (base("api", api)?, base("raw", raw)?);
        let known_host = |key| ForgeConfigError::KnownHost { host: host.to_string(), key };
        let is_plain = |url: &Option<Url>| url.as_ref().is_some_and(|url| url.scheme() != "https");
        if is_known && (port.is_some_and(|port| port != 443) || is_plain(&api)) {
            return Err(known_host("api"));
        }
        if is_known && is_plain(&raw) {
            return Err(known_host("raw"));
        }
        let port = if is_known { None } else { port };
        Ok(Self { host, port, kind, api, raw, token, is_known })
    }

    /// Whether some URL would be on both.
    fn overlaps(&self, other: &Self) -> bool {
        let is_default = |port: Option<u16>| port.is_none_or(|port| matches!(port, 80 | 443));
        let same_port = match (self.port, other.port) {
            (Some(a), Some(b)) => a == b,
            (a, b) => is_default(a) && is_default(b),
        };
        self.host == other.host && same_port
    }

    fn serves(&self, scheme: Scheme, host: &Host, port: u16) -> bool {
        let is_scheme = scheme == Scheme::Https || !self.is_known;
        is_scheme && self.host == *host && self.port.unwrap_or(scheme.default_port()) == port
    }

    /// The segments of a URL below the place of the raw files, where it is there.
    fn below_raw<'u>(&'u self, url: &'u SourceUrl) -> Option<Vec<&'u str>> {
        let raw = self.raw.as_ref()?;
        let same_server = raw.scheme() == url.scheme().as_str()
            && raw.host_str() == Some(url.host().as_str())
            && raw.port_or_known_default() == Some(url.port());
        let base: Vec<&str> = raw.path_segments()?.filter(|segment| !segment.is_empty()).collect();
        let is_own_page = base.is_empty() && self.serves(url.scheme(), url.host(), url.port());
        let segments: Vec<&str> = url.segments().collect();
        let below = segments.strip_prefix(base.as_slice())?;
        (same_server && !is_own_page).then(|| below.to_vec())
    }
}

fn parse_base(host: &Host, key: &'static str, text: &str) -> Result<Url, ForgeConfigError> {
    let url = SourceUrl::parse(text).ok().filter(|url| !url.has_query() && !url.has_fragment());
    url.map(|url| url.request_url().clone()).ok_or_else(|| ForgeConfigError::Base {
        host: host.to_string(),
        key,
        text: shown_url(text),
    })
}
