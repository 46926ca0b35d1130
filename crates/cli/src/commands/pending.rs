//! `countersign pending`

use std::collections::{BTreeMap, BTreeSet};

use countersign_api::catalogue::{KeyPendingResponse, WaitingFile, WaitingKind};
use countersign_core::documents::{layout, signers::Role, signers::SignersFile};
use countersign_core::values::{key::PublicKey, path::RepoPath, shown::shown_text, time::Timestamp};
use countersign_explain::{progress::Names, words::shown_signer_name};
use serde_json::{Value, json};

use crate::args::PendingArgs;
use crate::client::targets::{FORMS, ReleaseName, find_project};
use crate::client::{ServerClient, now, session::Reader, session::Session, state::StateQuestion};
use crate::words::table::{Table, age_text, when_text};
use crate::words::{error::CliError, error::ErrorKind, output::Several};

/// The most projects in which the names of signers are looked up.
const MOST_ASKED: usize = 20;

pub(crate) async fn run(session: &Session, args: &PendingArgs) -> Result<(), CliError> {
    let key = match &args.key_of {
        Some(key) => crate::keys::parse_key(key)?,
        None => session.public_key()?,
    };
    let mut found: Vec<WaitingOnServer> = Vec::new();
    let mut several = Several::new(session.output);
    for client in session.clients(Reader::Signer)? {
        let server = client.address();
        let listed = several.keep(&server, list(session, &client, &key).await);
        let Some(KeyPendingResponse { pending, .. }) = listed else { continue };
        found.extend(pending.into_iter().map(|file| WaitingOnServer { file, server: server.clone() }));
    }
    let project = match &args.project {
        Some(name) => Some(resolve_project(session, name, &found).await?),
        None => None,
    };
    found.retain(|waiting| args.admits(&waiting.file, project.as_ref()));
    // A revocation is the most urgent.
    found.sort_by_key(|waiting| (waiting.file.kind, waiting.file.since));
    let value = json!({
        "public_key": key.to_string(),
        "file_paths": found.iter().map(|waiting| waiting.file.file_path.as_str()).collect::<Vec<_>>(),
        "pending": found.iter().map(WaitingOnServer::json).collect::<Vec<_>>(),
    });
    if found.is_empty() && several.has_failed() {
        return several.finish("", value);
    }
    if found.is_empty() {
        return session.output.result(&say_nothing(&key), &value);
    }
    let text = if session.output.is_terse() {
        found.iter().map(|waiting| format!("{}\n", waiting.file.file_path)).collect()
    } else {
        to_table(session, &found, &find_names(session, &found).await?, now()?)
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
    found: &[WaitingOnServer],
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
        for client in session.clients(Reader::Signer)? {
            if client.state(&path, StateQuestion::Path).await?.is_some() {
                return Ok(path);
            }
        }
        return Err(CliError::usage(format!("no server here knows the project {path}"), FORMS));
    }
    let target = session.find_path(&ReleaseName::parse_one(&[name.to_owned()])?, Reader::Signer).await;
    target.map(|found| found.path).map_err(|error| match error.kind() {
        ErrorKind::Other => error.with_kind(ErrorKind::Usage),
        _ => error,
    })
}

/// Something that waits, and where.
struct WaitingOnServer {
    file: WaitingFile,
    server: String,
}

impl WaitingOnServer {
    /// What the server says, with every field.
    fn json(&self) -> Value {
        let mut value = json!({
            "tag": null, "by": null, "reason": null, "objections": [], "waits_until": null, "completes": false,
        });
        if let (Value::Object(value), Value::Object(said)) = (&mut value, json!(self.file)) {
            value.extend(said);
        }
        value["roles"] = self.file.roles.iter().map(|role| json!(role.to_string())).collect();
        value["server"] = json!(self.server);
        value
    }
}

/// What those are called who registered or proposed something. Each project names its own keys.
async fn find_names(
    session: &Session,
    found: &[WaitingOnServer],
) -> Result<BTreeMap<RepoPath, Names>, CliError> {
    let mut names = BTreeMap::new();
    for client in session.clients(Reader::Signer)? {
        let address = client.address();
        let here = found.iter().filter(|waiting| waiting.server == address && waiting.file.by.is_some());
        let projects: BTreeSet<&RepoPath> = here.map(|waiting| &waiting.file.project_id).collect();
        for project in projects.into_iter().take(MOST_ASKED) {
            let Ok(shown) = client.state_at(&layout::active_signers(project)).await else { continue };
            let proposed = shown.parsed(&layout::pending_signers(project), SignersFile::parse)?;
            names.insert(project.clone(), Names::of(shown.signers()?.iter().chain(&proposed)));
        }
    }
    Ok(names)
}

/// The shortest text that tells a signer apart, as in `alice svc-pub:BqCq9x…Zll7hg`. A name never stands without its key
/// (D39).
fn short_signer(key: PublicKey, names: Option<&Names>) -> String {
    let short = key.short();
    match names.and_then(|names| shown_signer_name(&names.signer(key))) {
        Some(name) => format!("{name} {short}"),
        None => short,
    }
}

fn to_table(
    session: &Session,
    found: &[WaitingOnServer],
    names: &BTreeMap<RepoPath, Names>,
    now: Timestamp,
) -> String {
    let servers: BTreeSet<&str> = found.iter().map(|waiting| waiting.server.as_str()).collect();
    let mut headings = vec!["NAME", "ASKED", "SIGNATURES", "AGE", "BY"];
    if servers.len() > 1 {
        headings.push("SERVER");
    }
    let mut table = Table::new(headings);
    for WaitingOnServer { file, server } in found {
        let asked = match file.kind {
            WaitingKind::Revocation => {
                let reason = file.reason.as_deref().map(shown_text).unwrap_or_default();
                session.output.bad(&format!("revoke: {reason}"))
            }
            WaitingKind::Signers => match file.waits_until {
                Some(until) => session.output.bad(&ask_waiting(file, until)),
                None => "sign the signers file".to_owned(),
            },
            WaitingKind::Release => match file.objections.as_slice() {
                [] => "sign the release".to_owned(),
                [one] => session.output.bad(&format!("OBJECTION: {}", shown_text(&one.objection))),
                [first, others @ ..] => {
                    let (text, more) = (shown_text(&first.objection), others.len());
                    session.output.bad(&format!("OBJECTION: {text} (and {more} more)"))
                }
            },
        };
        let mut row = vec![
            session.name_of(&file.file_path, Some(&file.project_id)),
            asked,
            format!("{} of {}", file.collected, file.needed),
            age_text(file.since, now),
            file.by.map(|key| short_signer(key, names.get(&file.project_id))).unwrap_or_default(),
        ];
        if servers.len() > 1 {
            row.push(server.clone());
        }
        table.push(row);
    }
    table.to_string()
}

/// The request about signers that have all signatures. Masters decide whether they take effect at once, later or never.
fn ask_waiting(file: &WaitingFile, until: Timestamp) -> String {
    let until = when_text(until);
    match file.roles.contains(&Role::Master) {
        true => format!("signers in force on {until}: veto, or sign to let them in at once"),
        false => format!("signers in force on {until}; all signatures are there"),
    }
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
