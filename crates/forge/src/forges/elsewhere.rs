//! Signers files on hosts that are no forge (D27).

use countersign_core::{documents::metadata::OriginKind, values::wire};

use super::source::{Retrieval, SignersSource};
use crate::{
    file_server::{FileServers, has_forge_form, is_known_forge},
    url::{SourceUrl, UrlProblem, UrlRefusal},
};

/// Says which project a signers file on a host that is no forge belongs to, by the URL alone.
pub(crate) fn locate_signers(url: &SourceUrl, servers: &FileServers) -> Result<SignersSource, UrlRefusal> {
    let host = url.host();
    // On another port than the forge's, or without TLS.
    if is_known_forge(host) {
        return Err(url.refuse(UrlProblem::ForgeHttpsOnly { host: host.clone() }));
    }
    if has_forge_form(url) {
        return Err(url.refuse(UrlProblem::ForgeForm { host: host.clone() }));
    }
    let file_name = url.plain_file_name()?;
    if !servers.allow(url.scheme(), host, url.port()) {
        return Err(url.refuse(UrlProblem::FileServerNotAllowed { server: url.server() }));
    }
    let project_dir = strip_signers_dir(url.dir_segments());
    let stands_at_root = url.dir_segments().is_empty();
    if stands_at_root && file_name != wire::SIGNERS_FILE {
        return Err(url.refuse(UrlProblem::RootFileName));
    }
    Ok(SignersSource {
        kind: OriginKind::FileServer,
        project: url.storable_dir(project_dir)?,
        url: url.as_str().to_owned(),
        retrievals: vec![Retrieval::plain(url.request_url().clone())],
        needs_slashed_branch: false,
    })
}

fn strip_signers_dir(dir: &[String]) -> &[String] {
    match dir.split_last() {
        Some((last, project)) if wire::PUBLISHED_SIGNERS_DIRS.contains(&last.as_str()) => project,
        _ => dir,
    }
}
