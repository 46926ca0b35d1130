//! `countersign register` and `countersign update`

use countersign_api::{answers::ProposedResponse, requests::ProposeBody};
use countersign_core::{
    documents::{layout, metadata::OriginKind, signers::SignersFile},
    values::{key::PublicKey, path::RepoPath},
};
use countersign_explain::progress::Names;
use countersign_forge::forges::locate_claimed;
use serde_json::json;

use crate::{args::ProposeArgs, client::ServerCall, error::CliError, people::People, session::Session};

pub(crate) async fn register(session: &Session, args: &ProposeArgs) -> Result<(), CliError> {
    propose(session, args, |body| ServerCall::Register(body), "Registered").await
}

pub(crate) async fn update(session: &Session, args: &ProposeArgs) -> Result<(), CliError> {
    propose(session, args, |body| ServerCall::Update(body), "Proposed new signers for").await
}

async fn propose(
    session: &Session,
    args: &ProposeArgs,
    route: impl Fn(&ProposeBody) -> ServerCall<'_>,
    done: &str,
) -> Result<(), CliError> {
    let place = find_project(&args.url);
    let client = match &place {
        Some(project) => session.client_for(project)?,
        None => session.client()?,
    };
    let key = session.key(place.as_ref(), &[])?;
    let body = ProposeBody { signers_file_url: args.url.clone(), public_key: key.public_key() };
    let ProposedResponse { project_id, required_signers, .. } =
        client.ask(&key, route(&body), ProposedResponse::parse).await?;
    check_project(&args.url, &project_id)?;
    session.remember(&project_id, &client);
    let path = layout::pending_signers(&project_id);
    let keys: Vec<String> = required_signers.iter().map(PublicKey::to_string).collect();
    // The file in force names those who leave, and the one that the server fetched those who join.
    let mut files = Vec::new();
    for path in [&layout::active_signers(&project_id), &path] {
        files.extend(client.parsed(path, SignersFile::parse).await.ok().flatten());
    }
    let names = Names::of(&files);
    let people = People { names: &names, you: Some(key.public_key()) };
    let asked = names.in_order(required_signers).into_iter().map(|signer| people.name(signer.key));
    let asked = asked.collect::<Vec<_>>().join("\n  ");
    let name = session.name_of(&path, Some(&project_id));
    // A proposal that comes back has its signatures (D15).
    let text = match asked.as_str() {
        "" => format!(
            "{done} {project_id}\nIt has all signatures. `countersign status {name}` shows when it takes effect"
        ),
        asked => format!(
            "{done} {project_id}\nThese signers still sign it, each with `countersign sign {name}`:\n  {asked}"
        ),
    };
    let value = json!({
        "project_id": project_id.as_str(),
        "file_path": path.as_str(),
        "required_signers": keys,
    });
    session.output.result(&text, &value)
}

fn list_projects(url: &str) -> Vec<RepoPath> {
    let kinds = [OriginKind::Github, OriginKind::Gitlab, OriginKind::Forgejo, OriginKind::FileServer];
    let meant = kinds.into_iter().filter_map(|kind| locate_claimed(url, kind).ok());
    meant.map(|source| source.project).collect()
}

/// For which settings are looked up.
fn find_project(url: &str) -> Option<RepoPath> {
    list_projects(url).into_iter().next()
}

/// The project that a server answers with must be one that the URL can mean: what is printed will be signed.
fn check_project(url: &str, answered: &RepoPath) -> Result<(), CliError> {
    let meant = list_projects(url);
    // A forge may serve its raw files from a host that only its server's operator knows.
    if (meant.is_empty() && answered.check_storable_dir().is_ok()) || meant.contains(answered) {
        return Ok(());
    }
    Err(CliError::unverified(
        format!("the server answers about another project, {answered}"),
        "check the URL and --server; sign nothing that it shows",
    ))
}
