//! Where a signers file comes from: a file that is here, a project on a server, or one in a repository.

use std::path::Path;

use countersign_core::documents::{history::History, layout, signers::SignersFile};
use countersign_core::{rules::chain, rules::chain::VerifiedChain, rules::stored, values::path::RepoPath};

use crate::client::session::{Reader, Session};
use crate::client::{ServerClient, targets::ReleaseName, targets::ServerPath};
use crate::evidence::{proof, proof::Network, repository_copy::RepositoryView};
use crate::{commands::signers::read, settings::trust::TrustFile, words::error::CliError};

/// A file that is here, or the file in force of a project, verified from the first one on.
pub(crate) async fn find_signers(
    session: &Session,
    source: &str,
    repository: Option<&Path>,
) -> Result<SignersFile, CliError> {
    if let Some(dir) = repository {
        let view = RepositoryView::open(dir, session.output)?;
        return Ok(find_in_repository(&view, source)?.last().signers.clone());
    }
    let path = Path::new(source);
    if path.is_file() {
        return Ok(read(path)?.0);
    }
    Ok(find_on_server(session, source).await?.1.last().signers.clone())
}

pub(crate) fn find_in_repository(view: &RepositoryView, name: &str) -> Result<VerifiedChain, CliError> {
    let project = view.find_project(name)?;
    let entries = 1..=stored::history_len(&view.head, &project);
    let history = stored::history(&view.head, &project, entries).map_err(|error| {
        CliError::other(
            format!("the history of {project} cannot be read"),
            "`countersign fsck` says what is damaged",
        )
        .because(error)
    })?;
    verify(&history, &project, "the repository")
}

/// The server as well, for what else there is to ask.
pub(crate) async fn find_on_server(
    session: &Session,
    source: &str,
) -> Result<(ServerClient, VerifiedChain), CliError> {
    let name = ReleaseName::parse_one(&[source.to_owned()])?;
    let ServerPath { client, path, .. } = session.find_place(&name, Reader::Signer).await?;
    let shown = client.state_at(&layout::active_signers(&path)).await?;
    let chain = verify(shown.history(), &path, &format!("the server {}", client.address()))?;
    Ok((client, chain))
}

fn verify(history: &History, path: &RepoPath, whose: &str) -> Result<VerifiedChain, CliError> {
    if history.entries.is_empty() {
        return Err(CliError::other(
            format!("{whose} has no signers in force at {path}"),
            "name a project whose signers are in force, or a signers file that is here",
        ));
    }
    let chain = chain::verify(history, path).map_err(|error| {
        CliError::unverified(
            format!("the history that {whose} shows for {path} is not valid"),
            "do not build on it: the server lies or is broken",
        )
        .because(error)
    })?;
    proof::check_pin(&TrustFile::locate()?.read()?, &chain, Network::Online)?;
    Ok(chain)
}
