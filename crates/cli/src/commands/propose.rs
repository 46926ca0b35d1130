//! `countersign register` and `countersign update`

use countersign_api::{answers::ProposedResponse, requests::ProposeBody, state::DroppedReleases};
use countersign_core::documents::{layout, signers::OriginKind};
use countersign_core::values::{bounds::SIGNERS_FILE_BYTES, digest::Sha512, key::PublicKey, path::RepoPath};
use countersign_explain::describe::proposal::{ProposalDescription, describe_proposal};
use countersign_explain::progress::{Names, asked_text};
use countersign_forge::{fetch::Fetcher, fetch::Timeouts, forges::SignersSource, forges::locate_claimed};
use serde_json::{Value, json};

use crate::client::{ServerCall, ServerClient, session::Session, state::Shown, state::dropped_text};
use crate::{args::ProposeArgs, words::error::CliError, words::table::People};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProposalKind {
    Registration,
    Update,
}

impl ProposalKind {
    fn call(self, body: &ProposeBody) -> ServerCall {
        match self {
            Self::Registration => ServerCall::register(body),
            Self::Update => ServerCall::update(body),
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Registration => "Registered",
            Self::Update => "Proposed new signers for",
        }
    }
}

/// The signers that wait for signatures at the first project that the URL can mean. `None` if nothing waits there.
async fn find_pending(client: &ServerClient, url: &str) -> Result<Option<ProposalDescription>, CliError> {
    for project in list_projects(url) {
        let shown = client.state_at(&layout::pending_signers(&project)).await?;
        let found = describe_proposal(&shown.files, &project).map_err(|error| shown.unusable(error))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Asks before signatures of others are set aside (D180). Who has signed is not believed for more than the question.
async fn confirm_replacement(
    pending: &ProposalDescription,
    session: &Session,
    url: &str,
) -> Result<(), CliError> {
    let ProposalDescription { path, digest, signatures, names, .. } = pending;
    let published = fetch_published(url).await.map(|bytes| Sha512::of(&bytes));
    if signatures.entries.is_empty() || published == Some(*digest) {
        return Ok(());
    }
    let what = match published {
        Some(_) => "The file that you propose is another one. It replaces the pending one, and",
        None => "If the file that you propose is another one, it replaces the pending one, and",
    };
    let you = session.own_key();
    let signed = People { names, you }.list(signatures.signers());
    session.confirm(
        &format!(
            "{path} is collecting signatures. {what} these signatures are set aside: {signed}. {SET_ASIDE}"
        ),
        "Propose it?",
    )
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

pub(crate) async fn run(session: &Session, args: &ProposeArgs, kind: ProposalKind) -> Result<(), CliError> {
    let project = find_project(&args.url);
    let client = session.client_of(project.as_ref())?;
    let pending = match kind {
        // The server refuses another registration.
        ProposalKind::Registration => None,
        ProposalKind::Update => find_pending(&client, &args.url).await?,
    };
    if let Some(pending) = &pending {
        confirm_replacement(pending, session, &args.url).await?;
    }
    let key = session.key(project.as_ref(), &[])?;
    let body = ProposeBody { signers_file_url: args.url.clone(), public_key: key.public_key() };
    let answer = client.ask(&key, kind.call(&body), ProposedResponse::parse).await?;
    check_project(&args.url, &answer.project_id)?;
    session.remember(&answer.project_id, &client);
    let made = MadeProposal::find(&client, answer, pending).await;
    let name = session.name_of(&made.path, Some(&made.project));
    session.output.result(&made.text(kind, &name, key.public_key()), &made.json())
}

/// A proposal that the server has accepted, and what comes of it.
struct MadeProposal {
    project: RepoPath,
    path: RepoPath,
    required: Vec<PublicKey>,
    /// Who still has to sign, in words.
    asked: String,
    replaced: Option<ProposalDescription>,
    drops: DroppedReleases,
}

impl MadeProposal {
    /// `pending`: what waited there before.
    async fn find(
        client: &ServerClient,
        answer: ProposedResponse,
        pending: Option<ProposalDescription>,
    ) -> Self {
        let ProposedResponse { project_id: project, required_signers: required, .. } = answer;
        let path = layout::pending_signers(&project);
        let shown = client.state_at(&path).await.unwrap_or_else(|_| Shown::nothing(client, &path));
        let active = shown.signers().ok().flatten();
        let drops = active.as_ref().map(|_| shown.drops()).unwrap_or_default();
        let now = describe_proposal(&shown.files, &project).ok().flatten();
        let is_other = |pending: &ProposalDescription| {
            pending.path == path && now.as_ref().is_some_and(|now| now.digest != pending.digest)
        };
        let replaced = pending.filter(is_other);
        let asked = match &now {
            Some(now) => asked_text(&now.conditions),
            None => People { names: &Names::of(&active), you: None }.list(required.clone()),
        };
        Self { project, path, required, asked, replaced, drops }
    }

    /// `name`: what can be typed for the proposal.
    fn text(&self, kind: ProposalKind, name: &str, you: PublicKey) -> String {
        let (done, project) = (kind.done(), &self.project);
        // A proposal that comes back has its signatures (D15).
        let mut text = match self.asked.as_str() {
            "" => format!(
                "{done} {project}\nIt has all signatures. `countersign status {name}` shows when it takes effect"
            ),
            asked => format!(
                "{done} {project}\nSignatures are needed from {asked}, each with `countersign sign {name}`"
            ),
        };
        if let Some(ProposalDescription { signatures, names, .. }) = &self.replaced {
            let people = People { names, you: Some(you) };
            text.push_str("\nIt replaces one that was pending. ");
            text.push_str(&match people.list(signatures.signers()).as_str() {
                "" => "No one had signed that one.".to_owned(),
                signed => format!("These signatures are set aside: {signed}. {SET_ASIDE}"),
            });
        }
        if let Some(dropped) = dropped_text(&self.drops) {
            text.push_str(&format!("\nOnce it is in force, these need their signatures again: {dropped}"));
        }
        text
    }

    fn json(&self) -> Value {
        let replaced = self.replaced.as_ref();
        json!({
            "project_id": self.project.as_str(),
            "file_path": self.path.as_str(),
            "required_signers": self.required,
            "replaced": replaced.map(|replaced| json!({"signatures": replaced.signatures.signers()})),
        })
    }
}

fn list_sources(url: &str) -> Vec<SignersSource> {
    OriginKind::ALL.into_iter().filter_map(|kind| locate_claimed(url, kind).ok()).collect()
}

fn list_projects(url: &str) -> Vec<RepoPath> {
    list_sources(url).into_iter().map(|source| source.project).collect()
}

/// The first project that the URL can mean. Settings are looked up for it.
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
