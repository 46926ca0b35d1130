//! `countersign pending`

use countersign_api::catalogue::{KeyPendingResponse, WaitingFile, WaitingKind};
use countersign_core::{
    documents::signers::Role,
    values::{key::PublicKey, path::RepoPath, shown::shown_text, time::Timestamp},
};
use serde_json::{Value, json};

use crate::{
    args::PendingArgs,
    client::{ServerClient, now},
    error::CliError,
    people::when_text,
    session::{Reader, Session},
    table::{Table, age_text},
};

pub(crate) async fn run(session: &Session, args: &PendingArgs) -> Result<(), CliError> {
    let key = match &args.key_of {
        Some(key) => crate::keys::parse_key(key)?,
        None => session.public_key()?,
    };
    let mut found: Vec<Waiting> = Vec::new();
    for client in session.clients(Reader::Signer)? {
        let KeyPendingResponse { pending, .. } = list(session, &client, &key).await?;
        let server = client.address();
        found.extend(pending.into_iter().map(|file| Waiting { file, server: server.clone() }));
    }
    found.retain(|waiting| args.admits(&waiting.file));
    // A revocation is the most urgent.
    found.sort_by_key(|waiting| (waiting.file.kind, waiting.file.since));
    let value = json!({
        "public_key": key.to_string(),
        "file_paths": found.iter().map(|waiting| waiting.file.file_path.as_str()).collect::<Vec<_>>(),
        "pending": found.iter().map(Waiting::json).collect::<Vec<_>>(),
    });
    if found.is_empty() {
        return session.output.result(&say_nothing(&key), &value);
    }
    let text = if session.output.is_terse() {
        found.iter().map(|waiting| format!("{}\n", waiting.file.file_path)).collect()
    } else {
        to_table(session, &found, now()?)
    };
    session.output.answer(&text, &value)
}

/// Something that waits, and where.
struct Waiting {
    file: WaitingFile,
    server: String,
}

impl Waiting {
    fn json(&self) -> Value {
        let WaitingFile {
            kind,
            file_path,
            project_id,
            tag,
            collected,
            needed,
            roles,
            since,
            by,
            reason,
            objections,
            waits_until,
            completes,
        } = &self.file;
        json!({
            "kind": kind.name(),
            "file_path": file_path.as_str(),
            "project_id": project_id.as_str(),
            "tag": tag,
            "collected": collected,
            "needed": needed,
            "roles": roles.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "since": since.to_string(),
            "by": by.map(|key| key.to_string()),
            "reason": reason,
            "objections": objections,
            "waits_until": waits_until.map(|until| until.to_string()),
            "completes": completes,
            "server": self.server,
        })
    }
}

fn to_table(session: &Session, found: &[Waiting], now: Timestamp) -> String {
    let servers: std::collections::BTreeSet<&str> =
        found.iter().map(|waiting| waiting.server.as_str()).collect();
    let mut headings = vec!["NAME", "ASKED", "SIGNATURES", "AGE", "BY"];
    if servers.len() > 1 {
        headings.push("SERVER");
    }
    let mut table = Table::new(headings);
    for Waiting { file, server } in found {
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
            file.by.map(|key| key.to_string()).unwrap_or_default(),
        ];
        if servers.len() > 1 {
            row.push(server.clone());
        }
        table.push(row);
    }
    table.to_string()
}

/// Of signers that have all signatures. Masters decide whether they take effect at once, later or never.
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
    fn admits(&self, file: &WaitingFile) -> bool {
        let is_below = |path: &RepoPath| file.project_id == *path || file.file_path.is_inside(path);
        (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == file.kind.name()))
            && self.project.as_ref().is_none_or(is_below)
    }
}
