//! Code forges (D26): which hosts are forges, which of them a server is configured to read from, and where their
//! signers files and releases are read.

mod locate;

use countersign_core::documents::signers::{SignersOrigin, SourceKind};
use countersign_core::values::path::{RepoPath, Scheme, parse_port};

use crate::file_server::{FileServerRule, FileServers};
use crate::forges::locate::{Forge, ServedBy, read_page};
pub use crate::forges::locate::{ForgeConfig, ForgeConfigError};
use crate::source::KNOWN;
pub use crate::source::{
    Credential, FetchedSigners, ForgeKind, ForgeKindError, OutgoingRequest, ReleaseSource, Retrieval,
    SignersSource, Token, TokenError,
};
use crate::url::{Host, SourceUrl, UrlProblem, UrlRefusal, shown_text};
use crate::{file_server, guard::AllowFetch, guard::Ports, source};

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

    /// The hosts that the operator configured, each with a request that it answers if it can be used
    /// ([`crate::fetch::Fetcher::ask`]).
    pub fn list_configured(&self) -> impl Iterator<Item = (&Host, OutgoingRequest)> {
        let configured = self.0.iter().filter(|forge| !forge.is_known || forge.token.is_some());
        configured.map(|forge| (&forge.host, forge.first_question()))
    }

    /// Places that the operator named by configuring forges: D28 lets requests go there, at any address of the host,
    /// and on that port alone.
    pub fn exceptions(&self) -> Vec<AllowFetch> {
        let mut servers = Vec::new();
        for forge in self.0.iter().filter(|forge| !forge.is_known) {
            servers.push((&forge.host, forge.port.map_or(Ports::Default, Ports::One)));
            let bases = [&forge.api, &forge.raw].into_iter().flatten();
            servers.extend(bases.map(|base| (base.host(), Ports::One(base.port()))));
        }
        servers.retain(|(host, _)| !file_server::is_known_forge(host));
        servers.into_iter().map(|(host, ports)| AllowFetch::host(host.clone(), ports)).collect()
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
            None if source::is_known(url.host()) => {
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

// Signers files by what their metadata claims, for clients, which have no configuration that names forges.

/// Says where a signers file of this claimed origin is to be read, and which project it would speak for; whether that
/// is the right one, the caller decides. A host that is not known is taken for what the claim says, under the same
/// rules.
pub fn locate_claimed(url: &str, claimed: SourceKind) -> Result<SignersSource, UrlRefusal> {
    let url = SourceUrl::parse(url)?;
    let refuse = |problem| url.refuse(problem);
    let host = url.host();
    if file_server::is_known_forge(host) {
        // A known host on another port, or without TLS, is no file server either, and is refused as one.
        let known = Forges::new(Vec::new()).expect("the known forges are configured rightly");
        let source = known.locate_signers(&url, &FileServers::default())?;
        if source.kind == claimed {
            return Ok(source);
        }
        let (host, known) = (host.clone(), source.kind.name());
        return Err(refuse(UrlProblem::OtherKind { host, known, claimed: claimed.name() }));
    }
    if let Some(kind) = ForgeKind::of(claimed) {
        let (host, port) = (host.clone(), Some(url.port()));
        let forge = Forge { host, port, kind, api: None, raw: None, token: None, is_known: false };
        return forge.locate_signers(&url, &url.segments(), ServedBy::Forge).map_err(refuse);
    }
    if file_server::has_forge_form(&url) {
        return Err(refuse(UrlProblem::ClaimedFileServer { host: host.clone() }));
    }
    let any = FileServers { rules: vec![FileServerRule::Any], loopback: true };
    file_server::locate_signers(&url, &any).map_err(refuse)
}

/// Whether a server can be configured to read this URL as a raw file of this project: on another server than the
/// forge's own, or in a directory of it. Never so where a host is known, since its raw files are where they are.
pub fn may_be_configured(url: &str, claimed: SourceKind, project: &RepoPath) -> bool {
    let Some((kind, url)) = ForgeKind::of(claimed).zip(SourceUrl::parse(url).ok()) else { return false };
    let segments: Vec<&str> = project.segments().collect();
    let [scheme, host, port, names @ ..] = &segments[..] else { return false };
    let (scheme, host, port) = (Scheme::parse(scheme), Host::parse(host), parse_port(port));
    let (Some(scheme), Ok(host), Some(port)) = (scheme, host, port) else { return false };
    // Or a host that a known forge keeps for what its users upload.
    let is_known =
        |host: &Host| file_server::is_known_forge(host) || host.as_str().ends_with(".githubusercontent.com");
    if is_known(&host) || is_known(url.host()) {
        return false;
    }
    let is_own_server = (&host, port) == (url.host(), url.port());
    // On its own server, the URL has the scheme of the forge's pages.
    if url.has_fragment() || url.file_name().is_none() || (is_own_server && scheme != url.scheme()) {
        return false;
    }
    let segments = url.segments();
    let begin = usize::from(is_own_server);
    (begin..segments.len()).any(|base| {
        read_page(kind, &segments[base..], ServedBy::RawHost).is_ok_and(|page| page.project == names)
    })
}

// Whether a URL may speak for a project, when the configuration of the server is not known any more.

pub fn speaks_for(origin: &SignersOrigin, project: &RepoPath) -> Result<(), String> {
    let located = locate_claimed(&origin.url, origin.kind);
    let is_located = located.as_ref().is_ok_and(|source| source.project == *project);
    // A self-hosted forge may serve raw files from elsewhere. Where, only its configuration said.
    if is_located || may_be_configured(&origin.url, origin.kind, project) {
        return check_retrieval(origin);
    }
    Err(match located {
        Ok(source) => {
            format!("the URL of the signers file speaks for {}", shown_text(source.project.as_str()))
        }
        Err(refusal) => format!("the URL of the signers file speaks for no project: {refusal}"),
    })
}

/// A file server is asked for the URL itself. What a forge is asked for depends on its configuration.
fn check_retrieval(origin: &SignersOrigin) -> Result<(), String> {
    let is_itself =
        SourceUrl::parse(&origin.url).is_ok_and(|url| url.request_url().as_str() == origin.retrieval_url);
    if origin.kind != SourceKind::FileServer || is_itself {
        return Ok(());
    }
    Err(format!("it was retrieved from another URL, {}", shown_text(&origin.retrieval_url)))
}
