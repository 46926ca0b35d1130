//! `countersign fsck`

use countersign_core::shown::shown_text;
use countersign_server::store::history::{self, Checked, Finding};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};

use crate::{args::FsckArgs, error::CliError, output::Output};

/// Drawing costs more than checking a commit.
const COMMITS_PER_DRAW: usize = 64;

pub(crate) fn run(args: &FsckArgs, output: Output) -> Result<(), CliError> {
    let bar = output.shows_progress().then(new_bar);
    let checked = history::check(&args.dir, args.since, &mut |done, total| show(bar.as_ref(), done, total));
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let checked = checked?;
    for note in &checked.notes {
        output.note(&format!("note: {}", shown_text(note)));
    }
    if checked.found == 0 {
        let text = format!(
            "Each of {} is a legal change. To check only what comes later, pass --since with this commit:\n{}",
            count(checked.commits, "commit"),
            checked.head
        );
        return output.answer(&text, &Value::Object(to_json(&checked)));
    }
    if !output.is_json() {
        output.answer(&describe(&checked, output), &Value::Null)?;
    }
    let message = format!("the history is not legal: {}", count(checked.found, "finding"));
    let hint = "do not rely on this repository before each is explained; a copy from before the first commit that is \
                named can tell what was changed";
    Err(CliError::unverified(message, hint).with_details(to_json(&checked)))
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("checking commits {wide_bar} {pos}/{len} {eta}") {
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

fn describe(checked: &Checked, output: Output) -> String {
    let mut lines = Vec::new();
    for Finding { commit, files, reason } in &checked.findings {
        lines.push(format!("{} {commit}: {}", output.bad("commit"), shown_text(reason)));
        lines.extend(files.iter().map(|file| format!("  {}", shown_text(file))));
    }
    if checked.found > checked.findings.len() {
        lines.push(format!("and {} more", checked.found - checked.findings.len()));
    }
    lines.join("\n")
}

fn to_json(checked: &Checked) -> Map<String, Value> {
    let findings = checked.findings.iter().map(|Finding { commit, files, reason }| {
        json!({ "commit": commit.to_string(), "files": files, "reason": reason })
    });
    let fields = [
        ("commits", json!(checked.commits)),
        ("head", json!(checked.head.to_string())),
        ("found", json!(checked.found)),
        ("findings", findings.collect()),
        ("notes", json!(checked.notes)),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("{number} {noun}") } else { format!("{number} {noun}s") }
}
