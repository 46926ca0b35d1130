//! `countersign pending`

use std::collections::{BTreeMap, BTreeSet};

use countersign_api::catalogue::{KeyPendingResponse, WaitingFile, WaitingKind};
use countersign_core::documents::{layout, signers::Role};
use countersign_core::rules::quorum::Tally;
use countersign_core::values::shown::{quoted, shown_text};
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_explain::describe::{Description, describe};
use countersign_explain::{progress::groups_text, reproduction::count_different};
use serde_json::{Value, json};

use crate::args::PendingArgs;
use crate::client::state::{Shown, StateQuestion};
use crate::client::targets::{ReleaseName, SEARCH, find_project};
use crate::client::{ServerClient, now, session::Reader, session::Session};
use crate::words::table::{People, age_text, when_text};
use crate::words::{error::CliError, output::Output, output::Several};

/// The most states of projects that are asked for.
const MOST_ASKED: usize = 40;

pub(crate) async fn run(session: &Session, args: &PendingArgs) -> Result<(), CliError> {
    // Without a server there is nothing to have a key for.
    let clients = session.each_client(Reader::Signer)?;
    let key = match &args.key_of {
        Some(key) => crate::keys::parse_key(key)?,
        None => session.public_key()?,
    };
    let mut found: Vec<PendingFile> = Vec::new();
    let mut several = Several::reading(session.output);
    let mut answering = Vec::new();
    for (address, client) in clients {
        let Some(client) = several.keep_found(&address, client) else { continue };
        let listed = several.keep(&address, list(session, &client, &key).await);
        let Some(KeyPendingResponse { pending, .. }) = listed else { continue };
        found.extend(pending.into_iter().map(|file| PendingFile { file, client: client.clone() }));
        answering.push(client);
    }
    let project = match &args.project {
        Some(name) => Some(resolve_project(session, name, &found, &answering).await?),
        None => None,
    };
    found.retain(|waiting| args.admits(&waiting.file, project.as_ref()));
    // A revocation is the most urgent.
    found.sort_by_key(|waiting| (waiting.file.kind, waiting.file.since));
    let value = json!({
        "public_key": key,
        "file_paths": found.iter().map(|waiting| &waiting.file.file_path).collect::<Vec<_>>(),
        "pending": found.iter().map(PendingFile::json).collect::<Vec<_>>(),
    });
    if found.is_empty() && several.has_failed() {
        let answering: Vec<String> = answering.iter().map(ServerClient::address).collect();
        let text = match answering.is_empty() {
            true => String::new(),
            false => format!("Nothing waits for {key} on {}.", answering.join(" and ")),
        };
        return several.finish(&text, value);
    }
    if found.is_empty() {
        return session.output.result(&say_nothing(&key), &value);
    }
    let text = if session.output.is_terse() {
        found.iter().map(|waiting| format!("{}\n", waiting.file.file_path)).collect()
    } else {
        to_text(session, &found, &ask_projects(&found).await, now()?)
    };
    if !several.has_failed() {
        return session.output.answer(&text, &value);
    }
    if !session.output.is_json() {
        session.output.answer(&text, &value)?;
    }
    several.finish("", value)
}

/// The project that is meant, or the path above several. One that is not known anywhere is a mistake.
async fn resolve_project(
    session: &Session,
    name: &str,
    found: &[PendingFile],
    answering: &[ServerClient],
) -> Result<RepoPath, CliError> {
    let waiting = found.iter().map(|waiting| waiting.file.project_id.clone());
    let mut known: Vec<RepoPath> = waiting.chain(session.known_projects()).collect();
    known.sort();
    known.dedup();
    if let Some(path) = find_project(name, &known)? {
        let is_there =
            |project: &RepoPath| *project == path || project.is_inside(&path) || path.is_inside(project);
        if known.iter().any(is_there) {
            return Ok(path);
        }
        for client in answering {
            if client.state(&path, &StateQuestion::Path).await?.is_some() {
                return Ok(path);
            }
        }
        return Err(CliError::other(format!("no server here knows the project {path}"), SEARCH));
    }
    let name = ReleaseName::parse_one(&[name.to_owned()])?;
    session.find_path(&name, Reader::Signer).await.map(|found| found.path)
}

/// Something that waits, and where.
struct PendingFile {
    file: WaitingFile,
    client: ServerClient,
}

impl PendingFile {
    /// The server, and the project on it.
    fn key(&self) -> (String, RepoPath) {
        (self.client.address(), self.file.project_id.clone())
    }

    /// What the server says, with every field.
    fn json(&self) -> Value {
        let mut value = json!({
            "tag": null, "by": null, "reason": null, "objections": [], "rebuilds": null,
            "waits_until": null, "completes": false,
        });
        if let (Value::Object(value), Value::Object(said)) = (&mut value, json!(self.file)) {
            value.extend(said);
        }
        value["roles"] = self.file.roles.iter().map(|role| json!(role.to_string())).collect();
        value["server"] = json!(self.client.address());
        value
    }
}

/// States of projects, by the server that shows them.
type ShownProjects = BTreeMap<(String, RepoPath), Shown>;

/// Asks each server for the states of the projects whose words a line needs: what those are called who registered or
/// proposed something, and a veto that masters have begun. Each project names its own keys.
async fn ask_projects(found: &[PendingFile]) -> ShownProjects {
    let mut asked = BTreeSet::new();
    let mut projects = ShownProjects::new();
    let may_be_vetoed = found.iter().filter(|waiting| waiting.file.waits_until.is_some());
    let by_someone = found.iter().filter(|waiting| waiting.file.by.is_some());
    for waiting in may_be_vetoed.chain(by_someone) {
        let key = waiting.key();
        if asked.len() < MOST_ASKED && asked.insert(key.clone()) {
            let shown = waiting.client.state_at(&layout::active_signers(&key.1)).await;
            // A server that answers wrongly does not hide what it and others list.
            projects.extend(shown.ok().map(|shown| (key, shown)));
        }
    }
    projects
}

/// The veto that masters have begun of the signers that wait: its words, and how far it is.
fn find_veto(file: &WaitingFile, shown: Option<&Shown>) -> Option<[String; 2]> {
    let shown = shown.filter(|_| file.waits_until.is_some())?;
    let Some(Description::Proposal(proposal)) = describe(&shown.files, &file.file_path).ok()? else {
        return None;
    };
    let veto = proposal.veto.as_ref()?;
    let people = People { names: &proposal.names, you: None };
    let by = people.list(veto.signed.iter().map(|member| member.signer.key));
    let said = format!("veto begun by {by}: {}", quoted(&veto.reason));
    Some([said, format!("veto {}", groups_text(&veto.groups))])
}

/// One block for each file: its name, which can be pasted, and below it what is asked.
fn to_text(session: &Session, found: &[PendingFile], projects: &ShownProjects, now: Timestamp) -> String {
    let servers: BTreeSet<String> = found.iter().map(|waiting| waiting.client.address()).collect();
    let mut lines = Vec::new();
    for waiting in found {
        let PendingFile { file, client } = waiting;
        let shown = projects.get(&waiting.key());
        lines.push(session.output.strong(&session.name_of(&file.file_path, Some(&file.project_id))));
        lines.extend(ask(file, session.output).into_iter().map(|line| format!("  {line}")));
        let (collected, needed, age) = (file.collected, file.needed, age_text(file.since, now));
        let veto = find_veto(file, shown);
        lines.extend(veto.iter().map(|[said, _]| format!("  {}", session.output.bad(said))));
        let progress = match (file.kind, &veto) {
            (WaitingKind::Rebuild, _) => format!("reproduced by {collected} of {needed} builders"),
            (WaitingKind::Signers, Some([_, progress])) => progress.clone(),
            (WaitingKind::Release | WaitingKind::Signers | WaitingKind::Revocation, _) => {
                Tally { collected, needed }.to_string()
            }
        };
        lines.push(format!("  {progress}, since {age}"));
        let names = shown.map(Shown::names).unwrap_or_default();
        lines.extend(file.by.map(|key| format!("  by {}", People { names: &names, you: None }.name(key))));
        if servers.len() > 1 {
            lines.push(format!("  on {}", client.address()));
        }
    }
    session.output.list(&lines.join("\n"))
}

/// What is asked of the reader.
fn ask(file: &WaitingFile, output: Output) -> Vec<String> {
    match file.kind {
        WaitingKind::Revocation => {
            let reason = file.reason.as_deref().map(shown_text).unwrap_or_default();
            vec![output.bad(&format!("revoke: {reason}"))]
        }
        WaitingKind::Signers => match file.waits_until {
            Some(until) => ask_waiting(file, until).map(|line| output.bad(&line)).into(),
            None => vec!["sign the signers file".to_owned()],
        },
        WaitingKind::Release | WaitingKind::Rebuild => {
            let different = file.rebuilds.as_ref().and_then(|rebuilds| count_different(rebuilds.different));
            let mut lines: Vec<String> = different.iter().map(|different| output.bad(different)).collect();
            if let [first, others @ ..] = file.objections.as_slice() {
                let more =
                    if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
                lines.push(output.bad(&format!("OBJECTION: {}{more}", shown_text(&first.objection))));
            }
            let asked = if file.kind == WaitingKind::Rebuild { "rebuild" } else { "sign" };
            lines.push(format!("{asked} the release"));
            lines
        }
    }
}

/// The request about signers that have all signatures. Masters decide whether they take effect at once, later or never.
fn ask_waiting(file: &WaitingFile, until: Timestamp) -> [String; 2] {
    let choice = match file.roles.contains(&Role::Master) {
        true => "veto, or sign to let them in at once",
        false => "all signatures are there",
    };
    [format!("signers in force on {}", when_text(until)), choice.to_owned()]
}

/// What waits for a key. Says so where there is more than the server lists.
pub(super) async fn list(
    session: &Session,
    client: &ServerClient,
    key: &PublicKey,
) -> Result<KeyPendingResponse, CliError> {
    let waiting = client.pending_of(key).await?;
    if waiting.more {
        session.output.note(&format!(
            "More waits for this key on {} than it lists: sign what you know of by its name",
            client.address()
        ));
    }
    Ok(waiting)
}

pub(super) fn say_nothing(key: &PublicKey) -> String {
    format!("Nothing waits for {key}.")
}

impl PendingArgs {
    fn admits(&self, file: &WaitingFile, project: Option<&RepoPath>) -> bool {
        let is_below = |path: &RepoPath| file.project_id == *path || file.file_path.is_inside(path);
        (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == file.kind.name()))
            && project.is_none_or(is_below)
    }
}
