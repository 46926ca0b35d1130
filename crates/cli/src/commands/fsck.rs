//! `countersign fsck`

mod copy;

use std::{io, path::Path};

use countersign_core::values::shown::{plural, shown_text};
use countersign_forge::origin::speaks_for;
use countersign_store::{
    ObjectId,
    audit::{self, AuditEvent, Checked, Finding},
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};

use crate::{
    args::FsckArgs, client::ServerClient, error::CliError, output::Output, paths::shown_path,
    setup::client_runtime,
};

/// Drawing costs more than checking a commit.
const COMMITS_PER_DRAW: usize = 64;

pub(crate) fn run(args: FsckArgs, output: Output) -> Result<(), CliError> {
    let FsckArgs { target, keep, since } = args;
    let Some(url) = target.to_str().filter(|target| is_url(target)) else {
        if keep.is_some() {
            let hint = "name the URL of a running server, or leave out --keep";
            return Err(CliError::usage("--keep goes only with the URL of a server", hint));
        }
        return check(&target, since, None, output);
    };
    let client = ServerClient::new(url, output)?;
    let (dir, temporary) = match keep {
        Some(dir) => (dir, None),
        None => {
            let dir = tempfile::tempdir().map_err(no_temporary_dir)?;
            (dir.path().join("journal.git"), Some(dir))
        }
    };
    fetch(&client, &dir, output)?;
    let checked = check(&dir, since, Some(&client), output);
    drop(temporary);
    checked
}

fn is_url(target: &str) -> bool {
    target.starts_with("http://") || target.starts_with("https://")
}

fn no_temporary_dir(error: io::Error) -> CliError {
    let hint = "set TMPDIR to a directory with room, or name one with --keep";
    CliError::other("no temporary directory can be made", hint).because(error)
}

fn fetch(client: &ServerClient, dir: &Path, output: Output) -> Result<(), CliError> {
    let bar = output.shows_progress().then(|| new_bar("fetching commits {pos} {per_sec}"));
    let fetched = client_runtime()?.block_on(copy::fetch(client, dir, bar.as_ref()));
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    fetched
}

fn check(
    dir: &Path,
    since: Option<ObjectId>,
    server: Option<&ServerClient>,
    output: Output,
) -> Result<(), CliError> {
    let bar = output.shows_progress().then(|| new_bar("checking commits {wide_bar} {pos}/{len} {eta}"));
    let checked = audit::check(dir, since, speaks_for, &mut |event| match event {
        AuditEvent::Progress { done, total } => show(bar.as_ref(), done, total),
        AuditEvent::Found(finding) => print_finding(finding, bar.as_ref(), output),
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let checked = checked?;
    if !output.is_json() {
        // Also with --quiet: a user must not take what Git shows for what was checked.
        checked.warnings.iter().for_each(|warning| output.show(&format!("warning: {}", shown_text(warning))));
    }
    // The copy of a server is a means, and often gone when the user reads this.
    let repository = server.map_or_else(|| shown_path(&checked.repository), ServerClient::address);
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
        return output.answer(&text, &Value::Object(to_json(&checked, server)));
    }
    if !output.is_json() && checked.found > checked.findings.len() {
        output.answer(&format!("and {} more", checked.found - checked.findings.len()), &Value::Null)?;
    }
    let message = format!("the history in {repository} is not legal: {}", count(checked.found, "finding"));
    let hint = "do not rely on this repository before each is explained; a copy from before the first commit that is \
                named can tell what was changed";
    Err(CliError::unverified(message, hint).with_details(to_json(&checked, server)))
}

fn new_bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

fn show(bar: Option<&ProgressBar>, done: usize, total: usize) {
    if let Some(bar) = bar.filter(|_| done.is_multiple_of(COMMITS_PER_DRAW)) {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    }
}

/// At once, so that a user who interrupts a long check has seen what it found.
fn print_finding(finding: &Finding, bar: Option<&ProgressBar>, output: Output) {
    if output.is_json() {
        return;
    }
    let Finding { commit, files, reason } = finding;
    let mut text = format!("{} {commit}: {}", output.bad("commit"), shown_text(reason));
    files.iter().for_each(|file| text.push_str(&format!("\n  {}", shown_text(file))));
    // If the reader is gone, the exit code speaks.
    let print = || drop(output.answer(&text, &Value::Null));
    match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

fn to_json(checked: &Checked, server: Option<&ServerClient>) -> Map<String, Value> {
    let own = || checked.repository.display().to_string();
    let findings = checked.findings.iter().map(|Finding { commit, files, reason }| {
        json!({ "commit": commit.to_string(), "files": files, "reason": reason })
    });
    let fields = [
        ("repository", json!(server.map_or_else(own, ServerClient::address))),
        ("commits", json!(checked.commits)),
        ("head", json!(checked.head.to_string())),
        ("found", json!(checked.found)),
        ("findings", findings.collect()),
        ("notes", json!(checked.notes)),
        ("warnings", json!(checked.warnings)),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", plural(number))
}
