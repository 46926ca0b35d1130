//! `countersign status --wait`: events say when to look again, and what is shown to everyone says how it stands.

use std::time::Duration;

use countersign_api::event::EventFilter;
use countersign_core::rules::{stored, stored::ReleaseState};
use countersign_core::values::{digest::Sha512, path::RepoPath, shown::quoted};
use countersign_core::{documents::layout, documents::layout::Signable};
use countersign_explain::{
    describe::Description,
    reproduction::{is_reproducible, lack_text, reproduction_text},
};
use serde_json::json;

use crate::args::StatusArgs;
use crate::client::events::{EventFeed, Gaps, Next};
use crate::client::{
    ListenQuery, ServerClient, session::Session, state::Shown, state::find_vetoed, targets::Target,
};
use crate::commands::status::standing::{Status, not_found, not_pending};
use crate::evidence::release::{release_again, say_withdrawn};
use crate::words::{error::CliError, error::ErrorKind, table::People};

/// The pause after a look at a server that could not be reached.
const PAUSE: Duration = Duration::from_secs(2);

pub(super) async fn run(
    session: &Session,
    target: &Target,
    subject: &Signable,
    args: &StatusArgs,
) -> Result<(), CliError> {
    let path = &target.path;
    let name = session.name_of(path, None);
    let mut is_complete = false;
    let waiting = async {
        wait(session, target, subject, args.reproduced, &mut is_complete).await.map_err(|error| {
            match error.is_refusal() {
                true => error.with_kind(ErrorKind::Refused),
                false => error,
            }
        })
    };
    let status = match args.timeout {
        Some(timeout) => match tokio::time::timeout(timeout, waiting).await {
            Ok(waited) => waited?,
            Err(_) => return Err(too_late(&name, is_complete)),
        },
        None => waiting.await?,
    };
    let (done, text) = match status {
        Some(status) => ("complete", status.state_text(session.output)),
        None => ("in force", session.output.good("in force")),
    };
    session
        .output
        .answer(&format!("{name}: {text}"), &json!({"file_path": path, "is_complete": true, "state": done}))
}

/// Returns how a complete release stands, and nothing of signers that are in force.
async fn wait(
    session: &Session,
    target: &Target,
    subject: &Signable,
    wants_rebuilds: bool,
    is_complete: &mut bool,
) -> Result<Option<Status>, CliError> {
    let Target { client, path, .. } = target;
    // A project's signers take effect under another path than the one where they were pending.
    let (prefix, other) = match subject {
        Signable::Index => (path, None),
        Signable::PendingSigners { project } => (project, Some(layout::active_signers(project))),
    };
    let filter = EventFilter { prefix: Some(prefix.clone()), ..EventFilter::default() };
    let query = ListenQuery { filter, after: None };
    // First of all, so that nothing happens between a look and the next event.
    let mut events = EventFeed::open(client, query, Gaps::Left).await?;
    let (mut digest, mut told) = (None, None);
    loop {
        match look(client, path, subject, digest, wants_rebuilds).await {
            Ok(Look::Done(status)) => return Ok(status),
            Ok(Look::Waits(description)) => {
                digest = Some(description.digest());
                *is_complete = description.state() == ReleaseState::Complete;
                show_progress(session, path, &description, &mut told);
            }
            Err(error) if error.kind() == ErrorKind::Unreachable => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(error) => return Err(error),
        }
        loop {
            match events.next().await? {
                Next::Again => break,
                Next::Event(told) if told.path == *path || Some(&told.path) == other.as_ref() => break,
                Next::Event(_) => {}
            }
        }
    }
}

/// How a file stands that is waited for.
enum Look {
    Waits(Description),
    /// A release is complete, or signers are in force.
    Done(Option<Status>),
}

/// `digest` is that of the file when it was first
/// seen: signatures on another one are none on it.
async fn look(
    client: &ServerClient,
    path: &RepoPath,
    subject: &Signable,
    digest: Option<Sha512>,
    wants_rebuilds: bool,
) -> Result<Look, CliError> {
    let shown = client.state_at(path).await?;
    let Some(status) = Status::find(&shown, path)? else {
        return match subject {
            Signable::Index => Err(gone_release(&shown, path)?),
            Signable::PendingSigners { project } => {
                gone_signers(&shown, path, project, digest).map(|()| Look::Done(None))
            }
        };
    };
    let description = &status.description;
    if digest.is_some_and(|digest| digest != description.digest()) {
        return Err(CliError::new(
            ErrorKind::Replaced,
            format!("another file replaced {path} during the wait"),
            "look at the new one with `countersign status NAME`, and wait again if it is right",
        ));
    }
    let lacks_rebuilds = || lacks_rebuilds(path, description, wants_rebuilds);
    match description.state() {
        // What builders can never reproduce is not waited for, even before all have signed.
        ReleaseState::Collecting => lacks_rebuilds().map(|_| Look::Waits(status.description)),
        ReleaseState::Complete => lacks_rebuilds().map(|lacks| match lacks {
            true => Look::Waits(status.description),
            false => Look::Done(Some(status)),
        }),
        ReleaseState::Revoked => Err(CliError::new(
            ErrorKind::Revoked,
            format!("{path} was revoked"),
            "do not publish it; `countersign status NAME` shows the reason",
        )),
    }
}

/// Whether builders are waited for, because the user or the project wants it. Refuses to wait where none can help.
fn lacks_rebuilds(path: &RepoPath, description: &Description, is_wanted: bool) -> Result<bool, CliError> {
    let Description::Release(release) = description else { return Ok(false) };
    match &release.reproduction {
        Some(reproduction) if !(is_wanted || reproduction.is_required) || reproduction.is_reproduced() => {
            Ok(false)
        }
        Some(reproduction) if is_reproducible(reproduction, release.state) => Ok(true),
        Some(reproduction) => Err(CliError::new(
            ErrorKind::Refused,
            format!("builders cannot reproduce {path}: {}", lack_text(reproduction)),
            "`countersign status NAME` shows what builders stated; another release needs a tag or directory of its own",
        )),
        None if is_wanted => Err(CliError::usage(
            format!("no builder is asked to reproduce {path}: its signers file names none"),
            "leave out --reproduced",
        )),
        None => Ok(false),
    }
}

fn gone_release(shown: &Shown, path: &RepoPath) -> Result<CliError, CliError> {
    let Some(withdrawal) = shown.read(|files| stored::withdrawal(files, path))? else {
        return Ok(not_found(path));
    };
    Ok(CliError::new(
        ErrorKind::Refused,
        format!("{path} was withdrawn {}", say_withdrawn(shown, &withdrawal)),
        release_again(shown.project(), path),
    ))
}

/// What is no longer pending is in force, or was dropped.
fn gone_signers(
    shown: &Shown,
    path: &RepoPath,
    project: &RepoPath,
    digest: Option<Sha512>,
) -> Result<(), CliError> {
    let history = shown.history();
    // They can have come into force before the wait began (D181).
    let Some(digest) = digest else {
        return match find_vetoed(shown)? {
            Some(vetoed) => Err(refused_by_masters(project, &vetoed.reason)),
            None if history.entries.is_empty() => Err(not_pending(path)),
            None => Ok(()),
        };
    };
    let is_in_force =
        history.entries.iter().any(|entry| Sha512::of(entry.signers_config.as_bytes()) == digest);
    if is_in_force {
        return Ok(());
    }
    if let Some(vetoed) = find_vetoed(shown)?.filter(|vetoed| vetoed.digest == digest) {
        return Err(refused_by_masters(project, &vetoed.reason));
    }
    Err(CliError::new(
        ErrorKind::Refused,
        format!("{path} was dropped during the wait"),
        "ask the server's operator, or propose it again",
    ))
}

fn refused_by_masters(project: &RepoPath, reason: &str) -> CliError {
    CliError::new(
        ErrorKind::Refused,
        format!("the masters of {project} vetoed it: {}", quoted(reason)),
        "ask them; the same file is refused until the next rotation",
    )
}

/// Shows who has signed, if that has changed since it was last shown.
fn show_progress(session: &Session, path: &RepoPath, description: &Description, told: &mut Option<String>) {
    let keys = description.signed();
    let people = People { names: description.names(), you: None };
    let signed = session.output.list(&people.list_or(keys.iter().copied(), "no one yet"));
    let name = session.name_of(path, None);
    let mut text = format!("{name}: signed by {signed}; {}", description.progress());
    if let Description::Release(release) = description
        && let Some(reproduction) = &release.reproduction
    {
        text += &format!("; {}", reproduction_text(reproduction, &release.names));
    }
    if told.as_ref() != Some(&text) {
        session.output.note(&text);
    }
    *told = Some(text);
}

/// `is_complete`: whether only builders are waited for.
fn too_late(name: &str, is_complete: bool) -> CliError {
    let lack = if is_complete { "complete, but not reproduced" } else { "not complete" };
    CliError::new(
        ErrorKind::TimedOut,
        format!("{name} is {lack}, and the time is over"),
        format!("`countersign status {name}` shows who is missing; --timeout sets the time"),
    )
}
