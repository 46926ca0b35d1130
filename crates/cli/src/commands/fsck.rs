//! `countersign fsck`

use std::{io, path::Path};

use countersign_core::values::shown::{plural, shown_text};
use countersign_forge::forges::speaks_for;
use countersign_store::audit::{AuditEvent, CheckError, Checked, Finding};
use countersign_store::journal::copy::{CheckBegin, Copied, JournalCopy};
use countersign_store::{ObjectId, OpenError, StoreError, audit, journal::follow::FollowError};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::args::FsckArgs;
use crate::client::{ServerClient, log::Commits, log::NoCommit, session::client_runtime};
use crate::words::{error::CliError, error::shown_path, output::Output};

/// What a journal says after such a commit leads nowhere, and can be endless.
const NOT_READ: &str = "the journal was read up to the first commit that breaks the rules, and not further";
/// Drawing costs more than checking a commit.
const COMMITS_PER_DRAW: usize = 64;

pub(crate) fn run(args: FsckArgs, output: Output) -> Result<(), CliError> {
    let FsckArgs { target, keep, since } = args;
    let is_url = |target: &&str| target.starts_with("http://") || target.starts_with("https://");
    let Some(url) = target.to_str().filter(is_url) else {
        if keep.is_some() {
            let hint = "name the URL of a running server, or leave out --keep";
            return Err(CliError::usage("--keep goes only with the URL of a server", hint));
        }
        return report(&check(&target, since, output)?, output);
    };
    let client = ServerClient::new(url, output)?;
    let (dir, temporary) = match keep {
        Some(dir) => (dir, None),
        None => {
            let dir = tempfile::tempdir().map_err(no_temporary_dir)?;
            (dir.path().join("journal.git"), Some(dir))
        }
    };
    let checked = check_server(&client, &dir, since, output);
    drop(temporary);
    // The copy of a server is a means, and often gone when the user reads this.
    report(&Checked { repository: client.address().into(), ..checked? }, output)
}

/// Checks what the copy at `dir` has, and then each commit that the server sends, before it is stored.
fn check_server(
    client: &ServerClient,
    dir: &Path,
    since: Option<ObjectId>,
    output: Output,
) -> Result<Checked, CliError> {
    let mut copy = JournalCopy::open(dir, speaks_for).map_err(|error| unusable_copy(dir, error))?;
    let mut checked = Checked::new(dir);
    match (copy.newest(), since) {
        (Some(_), _) => match check(dir, since, output) {
            Ok(kept) => checked = kept,
            // It is among those that the server sends, or nowhere.
            Err(CheckError::NotInHistory { since, .. }) => copy.begin_check(CheckBegin::After(since)),
            Err(error) => return Err(error.into()),
        },
        (None, Some(since)) => copy.begin_check(CheckBegin::After(since)),
        (None, None) => {}
    }
    if checked.found > 0 {
        return Ok(checked);
    }
    let bar = new_bar("checking commits {pos} {per_sec}", output);
    let last = client_runtime()?.block_on(fetch(client, dir, &mut copy, &bar));
    bar.finish_and_clear();
    checked.commits += copy.checked();
    checked.notes.extend(copy.note());
    checked.head = copy.newest().unwrap_or(checked.head);
    if let Copied::Illegal { commit, violations } = last? {
        checked.head = commit;
        checked.notes.push(NOT_READ.to_owned());
        for violation in violations {
            if let Some(finding) = checked.add(violation.found_in(commit)) {
                print_finding(finding, &bar, output);
            }
        }
    }
    match copy.begin() {
        CheckBegin::After(since) if checked.found == 0 => {
            Err(CheckError::NotInHistory { since, head: checked.head }.into())
        }
        CheckBegin::After(_) | CheckBegin::Now => Ok(checked),
    }
}

/// Copies what the copy at `dir` does not have yet, up to the first commit that the rules do not give. Nothing that the
/// server says is believed: every commit is made again, and must get the id that the server gave it. Returns what
/// became of the last one.
async fn fetch(
    client: &ServerClient,
    dir: &Path,
    copy: &mut JournalCopy,
    bar: &ProgressBar,
) -> Result<Copied, CliError> {
    let mut commits = Commits::after(client, copy.newest());
    let last = loop {
        let entry = match commits.next().await {
            Ok(Some(entry)) => entry,
            Ok(None) => break Ok(Copied::Added),
            Err(error) => break Err(unreadable(client, dir, copy.newest(), error)),
        };
        match copy.add(&entry) {
            Ok(Copied::Added) => bar.inc(1),
            Ok(illegal @ Copied::Illegal { .. }) => break Ok(illegal),
            Err(error) => break Err(untrue(client, error)),
        }
    };
    // Also what came before an error: the next run goes on from there.
    copy.publish().map_err(|error| {
        CliError::other(format!("{} cannot be written", shown_path(dir)), "check the disk").because(error)
    })?;
    last
}

fn no_temporary_dir(error: io::Error) -> CliError {
    let hint = "set TMPDIR to a directory with room, or name one with --keep";
    CliError::other("no temporary directory can be made", hint).because(error)
}

fn check(dir: &Path, since: Option<ObjectId>, output: Output) -> Result<Checked, CheckError> {
    let bar = new_bar("checking commits {wide_bar} {pos}/{len} {eta}", output);
    let checked = audit::walk::check(dir, since, speaks_for, &mut |event| match event {
        AuditEvent::Progress { done, total } if done.is_multiple_of(COMMITS_PER_DRAW) => {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        }
        AuditEvent::Progress { .. } => {}
        AuditEvent::Found(finding) => print_finding(finding, &bar, output),
    });
    bar.finish_and_clear();
    checked
}

fn report(checked: &Checked, output: Output) -> Result<(), CliError> {
    if !output.is_json() {
        // Also with --quiet: a user must not take what Git shows for what was checked.
        checked.warnings.iter().for_each(|warning| output.show(&format!("warning: {}", shown_text(warning))));
    }
    let repository = shown_path(&checked.repository);
    for note in &checked.notes {
        output.note(&format!("note: {}", shown_text(note)));
    }
    if checked.found == 0 {
        let text = format!(
            "Each of {} is a legal change: {repository}\nTo check only what comes later, pass --since with this \
             commit:\n{}",
            count(checked.commits, "commit"),
            checked.head
        );
        return output.answer(&text, &to_json(checked));
    }
    if !output.is_json() && checked.found > checked.findings.len() {
        output.answer(&format!("and {} more", checked.found - checked.findings.len()), &Value::Null)?;
    }
    let message = format!("the history in {repository} is not legal: {}", count(checked.found, "finding"));
    let hint = "do not rely on this repository before each is explained; a copy from before the first commit that is \
                named can tell what was changed";
    Err(CliError::unverified(message, hint).with_details(to_json(checked)))
}

/// A bar that is not drawn where none is wanted.
fn new_bar(template: &str, output: Output) -> ProgressBar {
    let bar = if output.shows_progress() { ProgressBar::no_length() } else { ProgressBar::hidden() };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Prints a finding at once, so that a user who interrupts a long check has seen it.
fn print_finding(finding: &Finding, bar: &ProgressBar, output: Output) {
    if output.is_json() {
        return;
    }
    let Finding { commit, files, reason } = finding;
    let mut text = format!("{} {commit}: {}", output.bad("commit"), shown_text(reason));
    files.iter().for_each(|file| text.push_str(&format!("\n  {}", shown_text(file))));
    // If the reader is gone, the exit code speaks.
    bar.suspend(|| drop(output.answer(&text, &Value::Null)));
}

fn to_json(checked: &Checked) -> Value {
    let findings = checked.findings.iter().map(|Finding { commit, files, reason }| {
        json!({ "commit": commit.to_string(), "files": files, "reason": reason })
    });
    json!({
        "repository": checked.repository.display().to_string(),
        "commits": checked.commits,
        "head": checked.head.to_string(),
        "found": checked.found,
        "findings": findings.collect::<Vec<_>>(),
        "notes": checked.notes,
        "warnings": checked.warnings,
    })
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", plural(number))
}

fn untrue(client: &ServerClient, error: FollowError) -> CliError {
    match error {
        FollowError::Store(error @ (StoreError::Io(_) | StoreError::Busy | StoreError::Closed)) => {
            CliError::other("the copy of the repository cannot be written", "check the disk").because(error)
        }
        error => CliError::unverified(
            format!("the journal of {} is false", client.address()),
            "do not trust this server before that is explained",
        )
        .because(error),
    }
}

/// Why the journal goes no further. `newest` is the last commit in the copy at `dir`.
fn unreadable(client: &ServerClient, dir: &Path, newest: Option<ObjectId>, error: NoCommit) -> CliError {
    let address = client.address();
    match error {
        NoCommit::Unasked(error) => error,
        NoCommit::Unreadable(error) => CliError::unverified(
            format!("the server {address} sends a journal that no honest server sends"),
            "do not trust this server before that is explained",
        )
        .because(error),
        NoCommit::Broken(reason) => {
            let newest = newest.map_or_else(|| "anything".to_owned(), |id| format!("the commit {id}"));
            CliError::unreachable(
                format!("the journal of {address} breaks off again and again after {newest}"),
                "run it again later with --keep DIR: it then continues where it stopped",
            )
            .because(reason)
        }
        NoCommit::Rewritten => CliError::unverified(
            format!(
                "the server {address} does not have the commit {}, which is the newest in {}",
                newest.map(|id| id.to_string()).unwrap_or_default(),
                shown_path(dir)
            ),
            "it is another server, an older copy, or its history was rewritten: compare it with the copy before you \
             trust it",
        ),
    }
}

fn unusable_copy(dir: &Path, error: OpenError) -> CliError {
    CliError::other(
        format!("no copy of the server's repository can be made in {}", shown_path(dir)),
        "name a directory that does not exist yet, or the copy of an earlier check",
    )
    .because(error)
}
