//! The forges that a server is configured to read from.

use super::{
    forge::{Forge, ForgeConfig, ForgeConfigError},
    signers_form::ServedBy,
};
use crate::{
    file_server::{self, FileServers},
    guard::{AllowFetch, Ports},
    host::Host,
    shown::shown_text,
    source::{
        ReleaseSource, SignersSource,
        kind::{self, KNOWN},
    },
    url::{SourceUrl, UrlProblem, UrlRefusal},
};

/// All forges that this server reads from.
#[derive(Debug, Clone)]
pub struct Forges(Vec<Forge>);

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

    /// The hosts that the operator configured, and whether each has a token.
    pub fn list_configured(&self) -> impl Iterator<Item = (&Host, bool)> {
        let configured = self.0.iter().filter(|forge| !forge.is_known || forge.token.is_some());
        configured.map(|forge| (&forge.host, forge.token.is_some()))
    }

    /// Places that the operator named by configuring forges: D28 lets requests go there, at any address of the host, and
    /// on that port alone.
    pub fn exceptions(&self) -> Vec<AllowFetch> {
        let mut places = Vec::new();
        for forge in self.0.iter().filter(|forge| !forge.is_known) {
            places.push((&forge.host, forge.port.map_or(Ports::Default, Ports::One)));
            let bases = [&forge.api, &forge.raw].into_iter().flatten();
            places.extend(bases.map(|base| (base.host(), Ports::One(base.port()))));
        }
        places.retain(|(host, _)| !file_server::is_known_forge(host));
        places.into_iter().map(|(host, ports)| AllowFetch::host(host.clone(), ports)).collect()
    }

    /// Says which project a signers file belongs to, by the URL alone.
    pub fn locate_signers(
        &self,
        url: &SourceUrl,
        servers: &FileServers,
    ) -> Result<SignersSource, UrlRefusal> {
        // Raw hosts first: such a host may be a directory of the forge's own.
        let raw = self.0.iter().find_map(|forge| Some((forge, forge.below_raw(url)?)));
        let located = match (raw, self.page_forge(url)) {
            (Some((forge, segments)), _) => forge.locate_signers(url, &segments, ServedBy::RawHost),
            (None, Some(forge)) => forge.locate_signers(url, &url.segments(), ServedBy::Forge),
            (None, None) => file_server::locate_signers(url, servers),
        };
        located.map_err(|problem| url.refuse(problem))
    }

    /// Says which release a URL is the page of, by the URL alone.
    pub fn locate_release(&self, url: &str) -> Result<ReleaseSource, UrlRefusal> {
        let url = SourceUrl::parse_release(url)?;
        let located = match self.page_forge(&url) {
            Some(forge) => forge.locate_release(&url),
            None if kind::is_known(url.host()) => {
                Err(UrlProblem::ForgeHttpsOnly { host: url.host().clone() })
            }
            None => Err(UrlProblem::NotAForge { server: url.server() }),
        };
        located.map_err(|problem| url.refuse(problem))
    }

    fn page_forge(&self, url: &SourceUrl) -> Option<&Forge> {
        self.0.iter().find(|forge| forge.serves(url.scheme(), url.host(), url.port()))
    }
}
