//! The forges that a server is configured to read from.

use super::{
    forge::{Forge, ForgeConfig, ForgeConfigError},
    kind::{self, KNOWN},
    signers_form::ServedBy,
    source::{ReleaseSource, SignersSource},
};
use crate::{
    file_server::{self, FileServers},
    guard::{AllowFetch, Ports},
    host::Host,
    shown::shown_text,
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
        self.find_signers(url, servers).map_err(|problem| url.refuse(problem))
    }

    pub(super) fn find_signers(
        &self,
        url: &SourceUrl,
        servers: &FileServers,
    ) -> Result<SignersSource, UrlProblem> {
        // Raw hosts first: such a host may be a directory of the forge's own.
        if let Some((forge, segments)) = self.0.iter().find_map(|forge| Some((forge, forge.below_raw(url)?)))
        {
            return forge.locate_signers(url, &segments, ServedBy::RawHost);
        }
        match self.page_forge(url) {
            Some(forge) => forge.locate_signers(url, &url.segments(), ServedBy::Forge),
            None => file_server::locate_signers(url, servers),
        }
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
