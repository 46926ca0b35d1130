//! Signers files by what their metadata claims, for clients, which have no configuration that names forges.

use countersign_core::metadata::OriginKind;

use super::{Forge, ForgeKind, Forges, SignersSource, signers_form::ServedBy};
use crate::{
    file_server::{self, FileServerRule, FileServers},
    url::{SourceUrl, UrlProblem, UrlRefusal},
};

/// Says where a signers file of this claimed origin is to be read, and which project it would speak for; whether that is
/// the right one, the caller decides. A host that is not known is taken for what the claim says, under the same rules.
pub fn locate_claimed(url: &str, claimed: OriginKind) -> Result<SignersSource, UrlRefusal> {
    let url = SourceUrl::parse(url)?;
    if file_server::is_known_forge(url.host()) {
        return locate_known(&url, claimed);
    }
    let kind = match claimed {
        OriginKind::FileServer => return locate_on_file_server(&url),
        OriginKind::Github => ForgeKind::Github,
        OriginKind::Gitlab => ForgeKind::Gitlab,
        OriginKind::Forgejo => ForgeKind::Forgejo,
    };
    let (host, port) = (url.host().clone(), Some(url.port()));
    let forge = Forge { host, port, kind, api: None, raw: None, token: None, is_known: false };
    forge.locate_signers(&url, &url.segments().collect::<Vec<_>>(), ServedBy::Forge)
}

/// Where a claim can change nothing.
fn locate_known(url: &SourceUrl, claimed: OriginKind) -> Result<SignersSource, UrlRefusal> {
    // A known host on another port, or without TLS, is no file server either, and is refused as one.
    let known = Forges::new(Vec::new()).expect("the known forges are configured rightly");
    let source = known.locate_signers(url, &FileServers::default())?;
    if source.kind != claimed {
        let (host, known) = (url.host().clone(), source.kind.as_str());
        return Err(url.refuse(UrlProblem::OtherKind { host, known, claimed: claimed.as_str() }));
    }
    Ok(source)
}

fn locate_on_file_server(url: &SourceUrl) -> Result<SignersSource, UrlRefusal> {
    if file_server::has_forge_form(url) {
        return Err(url.refuse(UrlProblem::ClaimedFileServer { host: url.host().clone() }));
    }
    file_server::locate_signers(url, &FileServers { rules: vec![FileServerRule::Any], loopback: true })
}
