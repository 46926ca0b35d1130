//! `countersign incident`: what stolen or lost keys touched, what they could still do, and what to do about it (D142).

mod fetched;
mod prepared;
mod words;

use std::path::Path;

use countersign_core::values::{path::RepoPath, shown::shown_text, time::Timestamp};
use countersign_core::{documents::signers::SignersFile, rules::snapshot::Snapshot, rules::stored};
use countersign_explain::incident::IncidentQuestion;
use serde_json::{Value, json};

use crate::args::{IncidentArgs, Since};
use crate::client::{now, session::Session};
use crate::commands::incident::fetched::{Fetched, Findings, unreadable};
use crate::commands::incident::prepared::Preparation;
use crate::{evidence::repository_copy::RepositoryView, keys::resolve_keys, words::error::CliError};

pub(crate) async fn run(session: &Session, args: &IncidentArgs) -> Result<(), CliError> {
    let since = match args.since {
        None => None,
        Some(Since::At(at)) => Some(at),
        Some(Since::Ago(ago)) => Some(before(now()?, ago)?),
    };
    if let Some(dir) = &args.output {
        prepared::check_directory(dir)?;
    }
    if let Some(reason) = &args.reason {
        prepared::check_reason(reason)?;
    }
    match &args.repository {
        Some(dir) => in_repository(session, args, since, dir),
        None => {
            let (scratch, findings) = Fetched::examine(session, args, since).await?;
            tell(session, args, &scratch, findings)
        }
    }
}

fn before(now: Timestamp, ago: std::time::Duration) -> Result<Timestamp, CliError> {
    let seconds = i64::try_from(ago.as_secs()).ok().map(|ago| now.unix_seconds() - ago);
    seconds
        .and_then(|seconds| Timestamp::from_unix_seconds(seconds).ok())
        .ok_or_else(|| CliError::usage("--since is too long ago", "give a date, as in 2026-11-01"))
}

fn in_repository(
    session: &Session,
    args: &IncidentArgs,
    since: Option<Timestamp>,
    dir: &Path,
) -> Result<(), CliError> {
    let view = RepositoryView::open(dir, session.output)?;
    let (mut known, mut files) = (session.known_projects(), Vec::new());
    let projects = match args.projects.as_slice() {
        [] => view.projects(),
        named => {
            let projects = named.iter().map(|name| view.find_project(name)).collect::<Result<Vec<_>, _>>()?;
            files = list_files(&view.head, &projects)?;
            known.extend(projects.iter().cloned());
            projects
        }
    };
    let question = IncidentQuestion { keys: resolve_keys(&args.keys.all(), &files)?, since };
    let mut findings = Findings::new(question, known);
    findings.examine(&view.head, &projects, |project| view.releases(project));
    tell(session, args, &view.head, findings)
}

/// Every signers file of these projects that is or was in force, the newest of each project first.
fn list_files(snapshot: &impl Snapshot, projects: &[RepoPath]) -> Result<Vec<SignersFile>, CliError> {
    let mut files = Vec::new();
    for project in projects {
        let entries = 1..=stored::history_len(snapshot, project);
        files.extend(fetched::list_files(&stored::history(snapshot, project, entries).map_err(unreadable)?));
    }
    Ok(files)
}

/// Strangers can make many reasons, so not all of them are told to people. Programs get all.
const MOST_REASONS: usize = 20;

fn tell(
    session: &Session,
    args: &IncidentArgs,
    snapshot: &impl Snapshot,
    findings: Findings,
) -> Result<(), CliError> {
    let preparation = Preparation::plan(snapshot, &findings, args, session.named_server());
    let mut value = words::to_json(&findings);
    value["steps"] =
        preparation.projects.iter().map(|one| (one.project.to_string(), json!(one.steps))).collect();
    value["unprepared"] = json!(preparation.faults);
    let mut lines = words::describe(&findings, session.output);
    if let Some(dir) = &args.output {
        preparation.write(dir)?;
        value["prepared"] = json!(dir.display().to_string());
    }
    let mut reasons = findings.unread.clone();
    reasons.extend(findings.faults.iter().map(ToString::to_string));
    reasons.extend(preparation.faults.iter().cloned());
    reasons.extend(findings.projects.iter().flat_map(|project| project.unreadable.clone()));
    // Where not everything was read, "nothing to do" would be a guess.
    if reasons.is_empty() || !preparation.projects.is_empty() {
        lines.extend(preparation.describe(session.output));
    }
    if reasons.is_empty() {
        return session.output.answer(&session.output.list(&lines.join("\n")), &value);
    }
    if !session.output.is_json() {
        session.output.answer(&session.output.list(&lines.join("\n")), &Value::Null)?;
    }
    Err(CliError::unverified(
        "not everything could be read, so there may be more than is shown here",
        "do not rely on this server or repository before that is explained; `countersign fsck` says more",
    )
    .because(words::first_of(reasons.iter().map(|reason| shown_text(reason)), MOST_REASONS).join("; "))
    .with_details(value))
}
