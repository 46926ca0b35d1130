//! Gathers what a server shows for a download. Whether it holds, core says.

use countersign_core::{
    documents::{
        history::History,
        index::{AssetName, ReleaseIndex},
        layout,
        signatures::SignatureSet,
        signed_request::SignedRequest,
        signers::SignersFile,
    },
    proof::verify::{Evidence, RevocationEvidence},
    rules::tally::Tally,
    values::{
        digest::Sha512,
        path::RepoPath,
        shown::{marked_name, plural},
    },
};
use countersign_forge::download_url::{CandidateKind, DownloadPlace};

use crate::{
    client::ServerClient,
    error::CliError,
    shown_release::{find_withdrawal, say_withdrawn},
};

const ASK_PROJECT: &str = "ask the project whether it signs its releases, and on which server; see --server";

/// The evidence for one file of a release.
#[derive(Debug)]
pub(crate) struct ShownEvidence {
    pub(crate) evidence: Evidence,
    pub(crate) file_name: AssetName,
}

/// Finds the index that lists the file at a URL, and everything that belongs to it.
pub(crate) async fn gather(client: &ServerClient, place: &DownloadPlace) -> Result<ShownEvidence, CliError> {
    let mut exists = None;
    for candidate in &place.candidates {
        let Some(text) = client.document(&candidate.index).await? else { continue };
        let index = parse_index(&text, &candidate.index)?;
        if index.published_files.iter().any(|file| file.file_name == candidate.file_name) {
            let evidence = gather_for(client, candidate.index.clone(), text, &index.project_id).await?;
            return Ok(ShownEvidence { evidence, file_name: candidate.file_name.clone() });
        }
        exists = exists.or(Some(&candidate.index));
        if candidate.kind == CandidateKind::Release {
            break;
        }
    }
    let url = &place.url;
    Err(match exists {
        Some(index) => CliError::unverified(
            format!("{url} is not signed: {index} does not list it"),
            "it may have been added to the release after the release was signed: ask the project",
        ),
        None => CliError::unverified(
            format!("{url} is not signed: the server {} has no index that could list it", client.address()),
            ASK_PROJECT,
        ),
    })
}

/// Everything that belongs to the release with this index.
pub(crate) async fn gather_release(client: &ServerClient, path: &RepoPath) -> Result<Evidence, CliError> {
    let Some(text) = client.document(path).await? else {
        return Err(match find_withdrawal(client, path).await? {
            Some(withdrawal) => CliError::unverified(
                format!("{path} was withdrawn {}", say_withdrawn(client, &withdrawal).await),
                "its signers took it back before it was complete: look for another release",
            ),
            None => {
                CliError::unverified(format!("the server {} has no {path}", client.address()), ASK_PROJECT)
            }
        });
    };
    let index = parse_index(&text, path)?;
    gather_for(client, path.clone(), text, &index.project_id).await
}

fn parse_index(text: &str, path: &RepoPath) -> Result<ReleaseIndex, CliError> {
    ReleaseIndex::parse(text.as_bytes()).map_err(|error| {
        CliError::unverified(
            format!("what the server shows as {path} is not an index"),
            "do not use the file: the server lies or is broken",
        )
        .because(error)
    })
}

async fn gather_for(
    client: &ServerClient,
    path: RepoPath,
    index: String,
    project: &RepoPath,
) -> Result<Evidence, CliError> {
    let revocation = gather_revocation(client, &path).await?;
    let signatures = gather_signatures(client, &path, revocation.is_some()).await?;
    let (chain, history) = (client.chain(&path).await?, client.history(project).await?);
    let Some(last) = chain.entries.last() else {
        return Err(CliError::unverified(format!("the server shows no signers for {path}"), ASK_PROJECT));
    };
    let governed_by = Sha512::of(last.signers_config.as_bytes());
    if !is_prefix(&chain, &history) {
        return Err(CliError::unverified(
            format!("the server shows two histories of the signers of {project}"),
            "do not use the file: the server lies or is broken",
        ));
    }
    Ok(Evidence { path, index, signatures, governed_by, history, revocation })
}

fn is_prefix(chain: &History, history: &History) -> bool {
    history.entries.starts_with(&chain.entries)
}

async fn gather_signatures(
    client: &ServerClient,
    path: &RepoPath,
    is_revoked: bool,
) -> Result<SignatureSet, CliError> {
    let complete = client.parsed(&layout::signatures_of(path), SignatureSet::parse).await?;
    if let Some(signatures) = complete {
        return Ok(signatures);
    }
    let revoked = client.parsed(&layout::revoked_signatures_of(path), SignatureSet::parse).await?;
    match revoked {
        Some(signatures) if is_revoked => return Ok(signatures),
        Some(_) => {
            return Err(CliError::unverified(
                format!("the server shows {path} as revoked, but not who revoked it and why"),
                "do not use the file; ask the project",
            ));
        }
        None => {}
    }
    let pending = client.parsed(&layout::pending_signatures_of(path), SignatureSet::parse).await?;
    let collected = pending.map(|signatures| signatures.signers()).unwrap_or_default();
    let signers = client.parsed(&layout::signers_copy_of(path), SignersFile::parse).await?;
    let so_far = match &signers {
        Some(signers) => Tally::of(signers.artifact_groups(), &collected).to_string(),
        None => format!("{} signature{} so far", collected.len(), plural(collected.len())),
    };
    Err(CliError::unverified(
        format!("{path} is not signed by enough people yet: {so_far}"),
        "wait until the project has signed it; `countersign status NAME` shows who is missing",
    ))
}

async fn gather_revocation(
    client: &ServerClient,
    path: &RepoPath,
) -> Result<Option<RevocationEvidence>, CliError> {
    let revocation = layout::revocation_of(path);
    let Some(document) = client.document(&revocation).await? else { return Ok(None) };
    let signatures = client.parsed(&layout::signatures_of(&revocation), SignatureSet::parse).await?;
    let signers = client.document(&layout::signers_copy_of(&revocation)).await?;
    let request = client.parsed(&layout::request_of(&revocation), SignedRequest::parse).await?;
    Ok(Some(RevocationEvidence {
        document,
        signatures: signatures.unwrap_or_default(),
        governed_by: Sha512::of(signers.unwrap_or_default().as_bytes()),
        request,
    }))
}

/// The name of a file as it may be shown.
pub(crate) fn shown_name(name: &AssetName) -> String {
    marked_name(name.as_str())
}
