//! Signers files by what their metadata claims, for clients, which have no configuration that names forges.

use countersign_core::{
    documents::metadata::OriginKind,
    values::{
        path::RepoPath,
        url::{Scheme, parse_port},
    },
};

use super::{
    configured::Forges,
    forge::Forge,
    signers_form::{ServedBy, read_page},
};
use crate::{
    file_server::{self, FileServerRule, FileServers},
    host::Host,
    source::{SignersSource, kind::ForgeKind},
    url::{SourceUrl, UrlProblem, UrlRefusal},
};

/// Says where a signers file of this claimed origin is to be read, and which project it would speak for; whether that is
/// the right one, the caller decides. A host that is not known is taken for what the claim says, under the same rules.
pub fn locate_claimed(url: &str, claimed: OriginKind) -> Result<SignersSource, UrlRefusal> {
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

/// Whether a server can be configured to read this URL as a raw file of this project: on another server than the forge's
/// own, or in a directory of it. Never so where a host is known, since its raw files are where they are.
pub fn may_be_configured(url: &str, claimed: OriginKind, project: &RepoPath) -> bool {
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
