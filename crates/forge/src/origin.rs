//! Whether a URL may speak for a project, when the configuration of the server is not known any more.

use crate::{
    forges::{locate_claimed, may_be_configured},
    url::SourceUrl,
};
use countersign_core::{
    documents::metadata::{Origin, OriginKind},
    values::{path::RepoPath, shown::shown_text},
};

pub fn speaks_for(origin: &Origin, project: &RepoPath) -> Result<(), String> {
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
fn check_retrieval(origin: &Origin) -> Result<(), String> {
    let is_itself =
        SourceUrl::parse(&origin.url).is_ok_and(|url| url.request_url().as_str() == origin.retrieval_url);
    if origin.kind != OriginKind::FileServer || is_itself {
        return Ok(());
    }
    Err(format!("it was retrieved from another URL, {}", shown_text(&origin.retrieval_url)))
}
