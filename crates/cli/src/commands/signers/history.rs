//! `countersign signers history`

use countersign_core::documents::history::{History, HistoryEntry};
use countersign_core::documents::{layout, layout::Signable, signers::Metadata, signers::SignersFile};
use countersign_core::values::{digest::Sha512, path::RepoPath, shown::marked_name, shown::shown_text};
use countersign_core::{proof::state::StateSubject, rules::chain, rules::chain::VerifiedChain};
use countersign_explain::difference::list_changes;
use serde_json::json;

use crate::client::targets::{ReleaseName, ServerPath};
use crate::client::{ServerClient, session::Reader, session::Session, state::Shown};
use crate::evidence::{proof, proof::Network, review::change_lines};
use crate::words::{error::CliError, output::Output};
use crate::{args::SignersHistoryArgs, settings::trust::TrustFile};

pub(crate) async fn run(session: &Session, args: &SignersHistoryArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_one(&args.names)?;
    let ServerPath { client, path: asked, shown } = session.find_path(&name, Reader::Signer).await?;
    let shown = match shown {
        Some(shown) => shown,
        None => find_state(&client, &asked).await?,
    };
    let Some((path, history)) = find_history(&asked, &shown) else {
        return Err(CliError::other(
            format!(
                "the server {} has no complete release and no signers in force at {asked}",
                client.address()
            ),
            "check the name: `countersign status NAME` shows what is there",
        ));
    };
    let project = find_project(&history)?;
    if !path.is_inside(&project) {
        return Err(CliError::unverified(
            format!("the server shows the history of {project} for {path}"),
            "check --server: it lies or is broken",
        ));
    }
    let chain = chain::verify(&history, &project).map_err(|error| {
        CliError::unverified(
            format!("the signers history of {project} is not valid"),
            "do not trust this server",
        )
        .because(error)
    })?;
    let store = TrustFile::locate()?.read()?;
    // The chain of an index ends where the index was signed, which may be before what was seen since.
    let network = match layout::signable(&path) {
        Some(_) => Network::Offline,
        None => Network::Online,
    };
    let pin = proof::check_pin(&store, &chain, network)?;
    let trust = match pin {
        Some(pin) => format!("This computer trusts the project since {}.", pin.accepted_at),
        None => {
            "This computer has not accepted the project: that the first entry is the right one is not proven."
                .to_owned()
        }
    };
    let value = json!({
        "project_id": project,
        "verified": true,
        "root_trusted": pin.is_some(),
        "entries": chain.links.iter().map(|link| json!({
            "signers_digest": link.digest,
            "activated_at": link.activated_at,
            "origin_url": link.metadata.origin.url,
            "signers": link.signers.signers().len(),
        })).collect::<Vec<_>>(),
    });
    session.output.answer(&format!("{}\n{trust}", describe(&chain)), &value)
}

/// The state of the release or the project at a path. A release that was withdrawn from the directory of a project does
/// not hide the project.
async fn find_state(client: &ServerClient, path: &RepoPath) -> Result<Shown, CliError> {
    let shown = client.state_at(path).await?;
    match shown.subject() {
        StateSubject::Release(index) if index != path && !shown.contains(index) => {
            client.state_at(&layout::active_signers(path)).await
        }
        StateSubject::Release(_) | StateSubject::Project(_) => Ok(shown),
    }
}

/// A complete index with the history up to the signers file that governs it, or the signers file in force with the
/// whole history. `None` if there is neither.
fn find_history(asked: &RepoPath, shown: &Shown) -> Option<(RepoPath, History)> {
    let is_proposal = matches!(layout::signable(asked), Some(Signable::PendingSigners { .. }));
    let mut history = shown.history().clone();
    let path = match (shown.subject(), &shown.answer.state.evidence) {
        (StateSubject::Release(index), Some(evidence)) => {
            let governs =
                |entry: &HistoryEntry| Sha512::of(entry.signers_config.as_bytes()) == evidence.governed_by;
            let last = history.entries.iter().position(governs);
            history.entries.truncate(last.map_or(0, |last| last + 1));
            index.clone()
        }
        (StateSubject::Project(project), _) if !is_proposal && !history.entries.is_empty() => {
            layout::active_signers(project)
        }
        (StateSubject::Release(_) | StateSubject::Project(_), _) => return None,
    };
    Some((path, history))
}

fn find_project(history: &History) -> Result<RepoPath, CliError> {
    match history.entries.first().map(|entry| Metadata::parse(entry.metadata.as_bytes())) {
        Some(Ok(metadata)) => Ok(metadata.project_id),
        Some(Err(error)) => {
            Err(CliError::unverified("the server shows a history without project", "check --server")
                .because(error))
        }
        None => Err(CliError::unverified("the server shows an empty history", "check the path and --server")),
    }
}

fn describe(chain: &VerifiedChain) -> String {
    let mut lines = vec![format!(
        "Signers of {}, each agreed to by those before it:",
        marked_name(chain.project.as_str())
    )];
    let mut before: Option<&SignersFile> = None;
    for (number, link) in chain.links.iter().enumerate() {
        let time = link.signers.timestamp();
        lines.push(format!("{}. of {time}, {}", number + 1, link.digest.to_prefixed()));
        lines.push(format!("   in force since {}, as the server says", link.activated_at));
        lines.push(format!("   from {}", shown_text(&link.metadata.origin.url)));
        let changes = change_lines(&list_changes(before, &link.signers), Output::silent());
        lines.extend(changes.iter().map(|change| format!(" {change}")));
        before = Some(&link.signers);
    }
    lines.join("\n")
}
