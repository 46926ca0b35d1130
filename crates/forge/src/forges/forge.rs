//! One forge: its hosts, and which URLs are on it.

use countersign_core::values::path::Scheme;
use thiserror::Error;

use crate::url::{Host, HostProblem, SourceUrl, shown_text, shown_url};
use crate::{source, source::ForgeKind, source::Token};

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
    url.ok_or_else(|| ForgeConfigError::Base { host: host.to_string(), key, text: shown_url(text) })
}
