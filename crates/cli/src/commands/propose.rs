//! `countersign register` and `countersign update`

use countersign_api::{answers::ProposedResponse, requests::ProposeBody};
use countersign_core::documents::{layout, signers::Metadata, signers::SignersFile, signers::SourceKind};
use countersign_core::values::shown::shown_text;
use countersign_core::values::{bounds::SIGNERS_FILE_BYTES, digest::Sha512, key::PublicKey, path::RepoPath};
use countersign_explain::describe::proposal::{ProposalDescription, describe_proposal};
use countersign_explain::progress::{Names, asked_text};
use countersign_forge::{fetch::Fetcher, fetch::Timeouts, forges::SignersSource, forges::locate_claimed};
use countersign_forge::{pages::ProjectPages, url::parse_http_url};
use serde_json::json;

use crate::client::{ServerCall, ServerClient, session::Session, state::Shown, state::dropped_text};
use crate::words::{error::CliError, output::quote, table::People};
use crate::{args::ProposeArgs, keys::SigningKey};

/// A project that the URL can mean, and what the server shows of it.
type MeantProject = (SignersSource, Shown);

async fn list_meant(client: &ServerClient, url: &str) -> Result<Vec<MeantProject>, CliError> {
    let mut meant = Vec::new();
    for source in list_sources(url) {
        let shown = client.state_at(&layout::pending_signers(&source.project)).await?;
        meant.push((source, shown));
    }
    Ok(meant)
}

/// The signers that wait for signatures at the first of these projects. `None` if nothing waits there.
fn find_pending(meant: &[MeantProject]) -> Result<Option<ProposalDescription>, CliError> {
    let describe = |(source, shown): &MeantProject| {
        shown.read(|files| describe_proposal(files, &source.project)).transpose()
    };
    meant.iter().find_map(describe).transpose()
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

pub(crate) async fn register(session: &Session, args: &ProposeArgs) -> Result<(), CliError> {
    let project = find_project(&args.url);
    check_url(&args.url)?;
    let client = choose_server(session, &args.url, project.as_ref()).await?;
    // The server refuses another registration.
    client.check_reachable().await?;
    let key = session.key_before_first(project.as_ref(), &[])?;
    let answer = propose(session, args, &client, &key, ServerCall::register).await?;
    session.remember_registered(&answer.project_id, &client);
    report(session, &client, "Registered", answer, None, key.public_key()).await
}

pub(crate) async fn update(session: &Session, args: &ProposeArgs) -> Result<(), CliError> {
    let project = find_project(&args.url);
    check_url(&args.url)?;
    let client = session.client_of(project.as_ref())?;
    let published = fetch_published(&args.url).await;
    let meant = list_meant(&client, &args.url).await?;
    if let Some(project) = look_at_place(session, &meant, published.as_deref()) {
        return say_in_force(session, &client, project);
    }
    let pending = find_pending(&meant)?;
    if let Some(pending) = &pending {
        confirm_replacement(pending, session, published.as_deref())?;
    }
    let key = session.key(project.as_ref(), &[])?;
    let answer = propose(session, args, &client, &key, ServerCall::update).await?;
    session.remember(&answer.project_id, &client);
    report(session, &client, "Proposed new signers for", answer, pending, key.public_key()).await
}

async fn propose(
    session: &Session,
    args: &ProposeArgs,
    client: &ServerClient,
    key: &SigningKey,
    call: fn(&ProposeBody) -> ServerCall,
) -> Result<ProposedResponse, CliError> {
    let body = ProposeBody { signers_file_url: args.url.clone(), public_key: key.public_key() };
    let answer = client.ask(key, call(&body), ProposedResponse::parse).await.map_err(|error| {
        let error = error.naming("SIGNERS_URL", &quote(&args.url));
        match find_project(&args.url) {
            Some(project) => error.naming("PROJECT", &session.name_of(&project, Some(&project))),
            None => error,
        }
    })?;
    check_project(&args.url, &answer.project_id)?;
    Ok(answer)
}

/// The server for a new project (D245): the one that the user named or set for it, else one that its signers file
/// names, else the one that is set for its host or for all.
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

/// Where to publish the next signers file (D246): beside the place at which new users look for the signers in force, as
/// in `…/svc.signers/next.json`.
pub(crate) fn place_beside(place: &str) -> String {
    const DIR: &str = "/svc.signers";
    let parent = place.rsplit_once('/').map_or(place, |(parent, _)| parent);
    let parent = parent.strip_suffix(DIR).unwrap_or(parent);
    let beside = format!("{parent}{DIR}/next.json");
    if beside == place { format!("{parent}{DIR}/after.json") } else { beside }
}

/// Returns the project in which the published file is in force. Else warns if it is proposed from the very place at
/// which new users look for the signers in force.
fn look_at_place<'a>(
    session: &Session,
    meant: &'a [MeantProject],
    published: Option<&[u8]>,
) -> Option<&'a RepoPath> {
    for (SignersSource { project, url: given, .. }, shown) in meant {
        let entries = &shown.history().entries;
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { continue };
        if published == Some(last.signers_config.as_bytes()) {
            return Some(project);
        }
        let Ok(Metadata { origin, .. }) = Metadata::parse(first.metadata.as_bytes()) else { continue };
        let place = locate_claimed(&origin.url, origin.kind);
        if place.is_ok_and(|place| place.url == *given) {
            session.output.warn(&format!(
                "warning: new users look at {} for the signers in force, and refuse the project while another file is there. \
                 Put the old file back until the new one is in force, and propose the new one from a place beside it: {}",
                shown_text(&origin.url),
                place_beside(&origin.url)
            ));
            return None;
        }
    }
    None
}

fn say_in_force(session: &Session, client: &ServerClient, project: &RepoPath) -> Result<(), CliError> {
    let (name, server) = (session.name_of(project, Some(project)), client.address());
    let text = format!(
        "This signers file is in force already on {server}: nothing is left to do. `countersign signers edit {name}` \
         makes the next one"
    );
    let value = json!({
        "project_id": project, "server": server, "file_path": layout::pending_signers(project), "was_done": true,
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

/// Says what the server has accepted, and what comes of it. `pending`: what waited there before.
async fn report(
    session: &Session,
    client: &ServerClient,
    done: &str,
    answer: ProposedResponse,
    pending: Option<ProposalDescription>,
    you: PublicKey,
) -> Result<(), CliError> {
    let ProposedResponse { project_id: project, required_signers: required, .. } = answer;
    let (path, server) = (layout::pending_signers(&project), client.address());
    let name = session.name_of(&path, Some(&project));
    let shown = client.state_at(&path).await.unwrap_or_else(|_| Shown::nothing(client, &path));
    let active = shown.signers().ok().flatten();
    let now = describe_proposal(&shown.files, &project).ok().flatten();
    let asked = match &now {
        Some(now) => asked_text(&now.conditions),
        None => People { names: &Names::of(&active), you: None }.list(required.iter().copied()),
    };
    let mut text = format!("{done} {project} on {server}\n");
    text.push_str(&match asked.as_str() {
        // A proposal that comes back has its signatures (D15).
        "" => format!("It has all signatures. `countersign status {name}` shows when it takes effect"),
        asked => format!("Signatures are needed from {asked}, each with `countersign sign {name}`"),
    });
    let is_other = |pending: &ProposalDescription| {
        pending.path == path && now.as_ref().is_some_and(|now| now.digest != pending.digest)
    };
    let replaced = pending.filter(is_other);
    if let Some(ProposalDescription { signatures, names, .. }) = &replaced {
        let people = People { names, you: Some(you) };
        text.push_str("\nIt replaces one that was pending. ");
        text.push_str(&match people.list(signatures.signers()).as_str() {
            "" => "No one had signed that one.".to_owned(),
            signed => format!("These signatures are set aside: {signed}. {SET_ASIDE}"),
        });
    }
    if let Some(dropped) = active.and_then(|_| dropped_text(&shown.drops())) {
        text.push_str(&format!("\nOnce it is in force, these need their signatures again: {dropped}"));
    }
    let value = json!({
        "project_id": project,
        "server": server,
        "file_path": path,
        "required_signers": required,
        "replaced": replaced.map(|replaced| json!({"signatures": replaced.signatures.signers()})),
    });
    session.output.result(&session.output.list(&text), &value)
}

fn list_sources(url: &str) -> Vec<SignersSource> {
    SourceKind::ALL.into_iter().filter_map(|kind| locate_claimed(url, kind).ok()).collect()
}

/// The first project that the URL can mean. Settings are looked up for it.
fn find_project(url: &str) -> Option<RepoPath> {
    list_sources(url).into_iter().next().map(|source| source.project)
}

/// The project that a server answers with must be one that the URL can mean: what is printed will be signed.
fn check_project(url: &str, answered: &RepoPath) -> Result<(), CliError> {
    let meant = list_sources(url);
    // A forge may serve its raw files from a host that only its server's operator knows.
    let is_meant = meant.iter().any(|source| source.project == *answered);
    if is_meant || (meant.is_empty() && answered.check_storable_dir().is_ok()) {
        return Ok(());
    }
    Err(CliError::unverified(
        format!("the server answers about another project, {answered}"),
        "check the URL and --server; sign nothing that it shows",
    ))
}
