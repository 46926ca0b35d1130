//! `countersign register` and `countersign update`

use countersign_api::{answers::ProposedResponse, requests::ProposeBody, state::DroppedReleases};
use countersign_core::documents::{layout, signers::Metadata, signers::SignersFile, signers::SourceKind};
use countersign_core::values::shown::shown_text;
use countersign_core::values::{bounds::SIGNERS_FILE_BYTES, digest::Sha512, key::PublicKey, path::RepoPath};
use countersign_explain::describe::proposal::{ProposalDescription, describe_proposal};
use countersign_explain::progress::{Names, asked_text};
use countersign_forge::{fetch::Fetcher, fetch::Timeouts, forges::SignersSource, forges::locate_claimed};
use countersign_forge::{pages::ProjectPages, url::parse_http_url};
use serde_json::{Value, json};

use crate::args::ProposeArgs;
use crate::client::{ServerCall, ServerClient, session::Session, state::Shown, state::dropped_text};
use crate::words::{error::CliError, output::quote, table::People};

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
        let found = shown.read(|files| describe_proposal(files, &project))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Asks before signatures of others are set aside (D180). Who has signed is not believed for more than the question.
fn confirm_replacement(
    pending: &ProposalDescription,
    session: &Session,
    published: Option<&[u8]>,
) -> Result<(), CliError> {
    let ProposalDescription { path, digest, signatures, names, .. } = pending;
    let published = published.map(Sha512::of);
    if signatures.entries.is_empty() || published == Some(*digest) {
        return Ok(());
    }
    let what = match published {
        Some(_) => "The file that you propose is another one. It replaces the pending one, and",
        None => "If the file that you propose is another one, it replaces the pending one, and",
    };
    let you = session.own_key();
    let signed = session.output.list(&People { names, you }.list(signatures.signers()));
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
    check_url(&args.url)?;
    let client = match kind {
        ProposalKind::Registration => choose_server(session, &args.url, project.as_ref()).await?,
        ProposalKind::Update => session.client_of(project.as_ref())?,
    };
    let pending = match kind {
        // The server refuses another registration.
        ProposalKind::Registration => client.check_reachable().await.map(|()| None)?,
        ProposalKind::Update => {
            let published = fetch_published(&args.url).await;
            if let Some(project) = look_at_place(session, &client, &args.url, published.as_deref()).await? {
                return say_in_force(session, &client, &project);
            }
            let pending = find_pending(&client, &args.url).await?;
            if let Some(pending) = &pending {
                confirm_replacement(pending, session, published.as_deref())?;
            }
            pending
        }
    };
    let key = match kind {
        ProposalKind::Registration => session.key_before_first(project.as_ref(), &[])?,
        ProposalKind::Update => session.key(project.as_ref(), &[])?,
    };
    let body = ProposeBody { signers_file_url: args.url.clone(), public_key: key.public_key() };
    let answer = client.ask(&key, kind.call(&body), ProposedResponse::parse).await.map_err(|error| {
        let name = project.as_ref().map(|project| session.name_of(project, Some(project)));
        let error = error.naming("SIGNERS_URL", &quote(&args.url));
        name.iter().fold(error, |error, name| error.naming("PROJECT", name))
    })?;
    check_project(&args.url, &answer.project_id)?;
    match kind {
        ProposalKind::Registration => session.remember_registered(&answer.project_id, &client),
        ProposalKind::Update => session.remember(&answer.project_id, &client),
    }
    let made = MadeProposal::find(&client, answer, pending).await;
    let name = session.name_of(&made.path, Some(&made.project));
    let text = session.output.list(&made.text(kind, &name, key.public_key()));
    session.output.result(&text, &made.json())
}

/// The server for a new project (D245): the one that the user named or set for it, else one that its signers file names,
/// else the one that is set for its host or for all.
async fn choose_server(
    session: &Session,
    url: &str,
    place: Option<&RepoPath>,
) -> Result<ServerClient, CliError> {
    let Some(project) = place.filter(|project| !session.names_server(project)) else {
        return session.client_of(place);
    };
    let published = fetch_published(url).await.and_then(|bytes| SignersFile::parse(&bytes).ok());
    let servers = published.as_ref().map(SignersFile::servers).unwrap_or_default();
    let set = session.chosen_server(place).filter(|set| servers.iter().any(|named| set.is_at(named)));
    if set.is_some() {
        return session.client_of(place);
    }
    match session.open_named(project, servers).await? {
        Some(client) => {
            session.output.note(&format!("The signers file names the server {}.", client.address()));
            Ok(client)
        }
        None if session.chosen_server(place).is_some() => session.client_of(place),
        None => session.client_of(place).map_err(|error| match published {
            Some(_) => error.because("the signers file names no server"),
            None => error.because("the signers file cannot be read from here, so it names no server"),
        }),
    }
}

/// Where to publish the next signers file (D246): beside the place at which new users look for the signers in force, as in
/// `…/svc.signers/next.json`.
pub(crate) fn place_beside(place: &str) -> String {
    const DIR: &str = "/svc.signers";
    let parent = place.rsplit_once('/').map_or(place, |(parent, _)| parent);
    let parent = parent.strip_suffix(DIR).unwrap_or(parent);
    let beside = format!("{parent}{DIR}/next.json");
    if beside == place { format!("{parent}{DIR}/after.json") } else { beside }
}

/// Returns the project in which the published file is in force. Else warns if it is proposed from the very place at which
/// new users look for the signers in force.
async fn look_at_place(
    session: &Session,
    client: &ServerClient,
    url: &str,
    published: Option<&[u8]>,
) -> Result<Option<RepoPath>, CliError> {
    for SignersSource { project, url: given, .. } in list_sources(url) {
        let shown = client.state_at(&layout::pending_signers(&project)).await?;
        let entries = &shown.history().entries;
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { continue };
        if published == Some(last.signers_config.as_bytes()) {
            return Ok(Some(project));
        }
        let Ok(metadata) = Metadata::parse(first.metadata.as_bytes()) else { continue };
        let origin = metadata.origin;
        let place = locate_claimed(&origin.url, origin.kind);
        if place.is_ok_and(|place| place.url == given) {
            session.output.warn(&format!(
                "warning: new users look at {} for the signers in force, and refuse the project while another file is there. \
                 Put the old file back until the new one is in force, and propose the new one from a place beside it: {}",
                shown_text(&origin.url),
                place_beside(&origin.url)
            ));
            return Ok(None);
        }
    }
    Ok(None)
}

fn say_in_force(session: &Session, client: &ServerClient, project: &RepoPath) -> Result<(), CliError> {
    let (name, server) = (session.name_of(project, Some(project)), client.address());
    let text = format!(
        "This signers file is in force already on {server}: nothing is left to do. `countersign signers edit {name}` \
         makes the next one"
    );
    let path = layout::pending_signers(project);
    let value = json!({
        "project_id": project.as_str(), "server": server, "file_path": path.as_str(), "was_done": true,
        "required_signers": [], "replaced": null,
    });
    session.output.result(&text, &value)
}

/// Refuses what is no address before a key is asked for.
fn check_url(url: &str) -> Result<(), CliError> {
    let malformed = || {
        CliError::usage(
            format!("`{}` is not the address of a signers file", shown_text(url)),
            "publish the file first, and give the address of its page on the forge or of the file itself: \
             https://github.com/acme/app/blob/main/svc.signers.json",
        )
    };
    parse_http_url(url).map_err(|error| malformed().because(error))?;
    match ProjectPages::known_forge(url) {
        Some(kind) if locate_claimed(url, kind).is_err() => Err(malformed()),
        Some(_) | None => Ok(()),
    }
}

/// A proposal that the server has accepted, and what comes of it.
struct MadeProposal {
    server: String,
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
        let server = client.address();
        Self { server, project, path, required, asked, replaced, drops }
    }

    /// `name`: what can be typed for the proposal.
    fn text(&self, kind: ProposalKind, name: &str, you: PublicKey) -> String {
        let (done, project, server) = (kind.done(), &self.project, &self.server);
        // A proposal that comes back has its signatures (D15).
        let mut text = match self.asked.as_str() {
            "" => format!(
                "{done} {project} on {server}\nIt has all signatures. `countersign status {name}` shows when it takes effect"
            ),
            asked => format!(
                "{done} {project} on {server}\nSignatures are needed from {asked}, each with `countersign sign {name}`"
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
            "server": self.server,
            "file_path": self.path.as_str(),
            "required_signers": self.required,
            "replaced": replaced.map(|replaced| json!({"signatures": replaced.signatures.signers()})),
        })
    }
}

fn list_sources(url: &str) -> Vec<SignersSource> {
    SourceKind::ALL.into_iter().filter_map(|kind| locate_claimed(url, kind).ok()).collect()
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
