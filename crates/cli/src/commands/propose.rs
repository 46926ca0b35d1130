//! `countersign register` and `countersign update`

use countersign_api::{answers::ProposedResponse, requests::ProposeBody};
use countersign_core::{
    documents::{layout, metadata::OriginKind, signatures::SignatureSet, signers::SignersFile},
    values::{bounds::SIGNERS_FILE_BYTES, key::PublicKey, path::RepoPath},
};
use countersign_explain::progress::Names;
use countersign_forge::{
    fetch::{Fetcher, Timeouts},
    forges::{SignersSource, locate_claimed},
};
use serde_json::json;

use crate::{
    args::ProposeArgs,
    client::{ServerCall, ServerClient},
    error::CliError,
    people::People,
    prompt,
    session::Session,
    waiting::DroppedSignatures,
};

pub(crate) async fn register(session: &Session, args: &ProposeArgs) -> Result<(), CliError> {
    propose(session, args, ProposalKind::Registration).await
}

pub(crate) async fn update(session: &Session, args: &ProposeArgs) -> Result<(), CliError> {
    propose(session, args, ProposalKind::Update).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProposalKind {
    Registration,
    Update,
}

impl ProposalKind {
    fn call(self, body: &ProposeBody) -> ServerCall<'_> {
        match self {
            Self::Registration => ServerCall::Register(body),
            Self::Update => ServerCall::Update(body),
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Registration => "Registered",
            Self::Update => "Proposed new signers for",
        }
    }
}

/// Signers that wait for signatures where others are proposed.
struct PendingProposal {
    path: RepoPath,
    text: String,
    signed: Vec<PublicKey>,
    /// What those in force and those proposed are called.
    names: Names,
}

impl PendingProposal {
    /// At the first project that the URL can mean. `None` if nothing waits there.
    async fn find(client: &ServerClient, url: &str) -> Result<Option<Self>, CliError> {
        for project in list_projects(url) {
            let path = layout::pending_signers(&project);
            let Some(text) = client.document(&path).await? else { continue };
            let set = client.parsed(&layout::pending_signatures_of(&path), SignatureSet::parse).await?;
            let signed = set.unwrap_or_default().verifying_signers(text.as_bytes()).into_iter().collect();
            let current = client.parsed(&layout::active_signers(&project), SignersFile::parse).await?;
            let proposed = SignersFile::parse(text.as_bytes()).ok();
            let names = Names::of(current.iter().chain(&proposed));
            return Ok(Some(Self { path, text, signed, names }));
        }
        Ok(None)
    }

    /// Asks before signatures of others are set aside (D180). Who has signed is not believed for more than the question.
    async fn confirm_replacement(&self, session: &Session, url: &str) -> Result<(), CliError> {
        let published = fetch_published(url).await;
        if self.signed.is_empty() || published.as_deref() == Some(self.text.as_bytes()) {
            return Ok(());
        }
        let what = match published {
            Some(_) => "The file that you propose is another one. It replaces the pending one, and",
            None => "If the file that you propose is another one, it replaces the pending one, and",
        };
        let you = if session.has_key() { session.public_key().ok() } else { None };
        let people = People { names: &self.names, you };
        let (path, signed) = (&self.path, people.list(self.signed.iter().copied()));
        session.output.show_question(
            &format!(
                "{path} is collecting signatures. {what} these signatures are set aside: {signed}. {SET_ASIDE}"
            ),
            session.confirmation(),
        );
        prompt::confirm(session.confirmation(), "Propose it?")
    }
}

/// A proposal that comes back has its signatures (D15).
const SET_ASIDE: &str = "They count again if the same file is proposed again";

/// What is published there, as far as this computer can read it.
async fn fetch_published(url: &str) -> Option<Vec<u8>> {
    let fetcher = Fetcher::for_user(Timeouts::default()).ok()?;
    for source in list_sources(url) {
        if let Ok(fetched) = fetcher.fetch_signers(&source, SIGNERS_FILE_BYTES as u64).await {
            return Some(fetched.bytes);
        }
    }
    None
}

async fn propose(session: &Session, args: &ProposeArgs, kind: ProposalKind) -> Result<(), CliError> {
    let done = kind.done();
    let place = find_project(&args.url);
    let client = match &place {
        Some(project) => session.client_for(project)?,
        None => session.client()?,
    };
    let pending = match kind {
        // The server refuses another registration.
        ProposalKind::Registration => None,
        ProposalKind::Update => PendingProposal::find(&client, &args.url).await?,
    };
    if let Some(pending) = &pending {
        pending.confirm_replacement(session, &args.url).await?;
    }
    let key = session.key(place.as_ref(), &[])?;
    let body = ProposeBody { signers_file_url: args.url.clone(), public_key: key.public_key() };
    let ProposedResponse { project_id, required_signers, .. } =
        client.ask(&key, kind.call(&body), ProposedResponse::parse).await?;
    check_project(&args.url, &project_id)?;
    session.remember(&project_id, &client);
    let path = layout::pending_signers(&project_id);
    let keys: Vec<String> = required_signers.iter().map(PublicKey::to_string).collect();
    // The file in force names those who leave, and the one that the server fetched those who join.
    let mut files = Vec::new();
    let (mut replaced, mut drops) = (None, DroppedSignatures::default());
    files
        .extend(client.parsed(&layout::active_signers(&project_id), SignersFile::parse).await.ok().flatten());
    if !files.is_empty() {
        drops = DroppedSignatures::find(&client, &project_id).await;
    }
    if let Some(text) = client.document(&path).await.ok().flatten() {
        files.extend(SignersFile::parse(text.as_bytes()).ok());
        replaced = pending.filter(|pending| pending.path == path && pending.text != text);
    }
    let names = Names::of(&files);
    let people = People { names: &names, you: Some(key.public_key()) };
    let asked = names.in_order(required_signers).into_iter().map(|signer| people.name(signer.key));
    let asked = asked.collect::<Vec<_>>().join("\n  ");
    let name = session.name_of(&path, Some(&project_id));
    // A proposal that comes back has its signatures (D15).
    let mut text = match asked.as_str() {
        "" => format!(
            "{done} {project_id}\nIt has all signatures. `countersign status {name}` shows when it takes effect"
        ),
        asked => format!(
            "{done} {project_id}\nThese signers still sign it, each with `countersign sign {name}`:\n  {asked}"
        ),
    };
    if let Some(PendingProposal { signed, names, .. }) = &replaced {
        let people = People { names, you: Some(key.public_key()) };
        text.push_str("\nIt replaces one that was pending. ");
        text.push_str(&match signed.as_slice() {
            [] => "No one had signed that one.".to_owned(),
            signed => {
                format!(
                    "These signatures are set aside: {}. {SET_ASIDE}",
                    people.list(signed.iter().copied())
                )
            }
        });
    }
    if let Some(dropped) = drops.text() {
        text.push_str(&format!("\nOnce it is in force, these need their signatures again: {dropped}"));
    }
    let set_aside = replaced.map(|replaced| {
        json!({"signatures": replaced.signed.iter().map(PublicKey::to_string).collect::<Vec<_>>()})
    });
    let value = json!({
        "project_id": project_id.as_str(),
        "file_path": path.as_str(),
        "required_signers": keys,
        "replaced": set_aside,
    });
    session.output.result(&text, &value)
}

fn list_sources(url: &str) -> Vec<SignersSource> {
    let kinds = [OriginKind::Github, OriginKind::Gitlab, OriginKind::Forgejo, OriginKind::FileServer];
    kinds.into_iter().filter_map(|kind| locate_claimed(url, kind).ok()).collect()
}

fn list_projects(url: &str) -> Vec<RepoPath> {
    list_sources(url).into_iter().map(|source| source.project).collect()
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
