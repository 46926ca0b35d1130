//! `countersign chain`

use countersign_core::{
    documents::{layout, signers::SignersFile},
    rules::chain::{self, VerifiedChain},
    values::{
        path::RepoPath,
        shown::{marked_name, shown_text},
    },
};
use countersign_explain::difference::list_changes;
use serde_json::json;

use crate::{
    args::ChainArgs,
    error::CliError,
    proof::{self, Network},
    release_names::ReleaseName,
    session::{Reader, Session},
    targets::{Found, Place},
    trust::TrustFile,
};

pub(crate) async fn run(session: &Session, args: &ChainArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_one(&args.names)?;
    let Place { client, path: place } = match name.tag {
        Some(_) => Found::Shown(Box::new(session.find_signable(&name, Reader::Signer).await?)),
        None => session.find_place(&name, Reader::Signer).await?,
    }
    .into_place();
    let path = match layout::signable(&place) {
        Some(_) => place,
        None if layout::project_of_active_signers(&place).is_some() => place,
        None if client.document(&layout::index_in(&place)).await?.is_some() => layout::index_in(&place),
        None => layout::active_signers(&place),
    };
    let history = client.chain(&path).await?;
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
        "project_id": project.as_str(),
        "verified": true,
        "root_trusted": pin.is_some(),
        "entries": chain.links.iter().map(|link| json!({
            "signers_digest": link.digest.to_prefixed(),
            "activated_at": link.activated_at.to_string(),
            "origin_url": link.metadata.origin.url,
            "signers": link.signers.keys().len(),
        })).collect::<Vec<_>>(),
    });
    session.output.answer(&format!("{}\n{trust}", describe(&chain)), &value)
}

fn find_project(history: &countersign_core::documents::history::History) -> Result<RepoPath, CliError> {
    let first = history.entries.first();
    let metadata =
        first.map(|entry| countersign_core::documents::metadata::Metadata::parse(entry.metadata.as_bytes()));
    match metadata {
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
        let changes = list_changes(before, &link.signers);
        if changes.is_empty() {
            lines.push("   - nothing changes but the time".to_owned());
        }
        lines.extend(changes.iter().map(|change| format!("   - {change}")));
        before = Some(&link.signers);
    }
    lines.join("\n")
}
