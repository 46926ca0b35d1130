//! `countersign trust`

use countersign_core::proof::{log_pin::LogPin, trust::Pin, trust::Root};
use countersign_core::values::{path::RepoPath, shown::quoted, shown::shown_text};
use serde_json::{Value, json};

use crate::client::targets::{ReleaseName, find_project};
use crate::words::{error::CliError, output::Output};
use crate::{args::TrustCommand, settings::trust::TrustFile};

pub(crate) fn run(command: &TrustCommand, output: Output) -> Result<(), CliError> {
    let trust = TrustFile::locate()?;
    match command {
        TrustCommand::List => list(&trust, output),
        TrustCommand::Remove { name } => forget(&trust, name, output),
    }
}

fn list(trust: &TrustFile, output: Output) -> Result<(), CliError> {
    let store = trust.read()?;
    let mut text: Vec<String> =
        store.projects.iter().map(|(project, pin)| describe(project, pin, output)).collect();
    text.extend(store.logs.iter().map(|(key, pin)| describe_log(key, pin)));
    if text.is_empty() {
        text.push(
            "No project was accepted on this computer yet: `countersign download URL` accepts one."
                .to_owned(),
        );
    }
    let document: Value = serde_json::from_slice(&store.write()).map_err(|error| {
        CliError::other("what is remembered cannot be shown", "report this").because(error)
    })?;
    let (file, projects, logs) = (trust.path(), &document["projects"], &document["logs"]);
    let value = json!({"file": file.display().to_string(), "projects": projects, "logs": logs});
    output.answer(&text.join("\n"), &value)
}

fn describe_log(key: &str, pin: &LogPin) -> String {
    let size = pin.head().map_or_else(|error| error.to_string(), |head| format!("size {}", head.size));
    format!("log {}\n  {size}, seen {}", shown_text(key), pin.seen_at)
}

fn describe(project: &RepoPath, pin: &Pin, output: Output) -> String {
    let root = match &pin.root {
        Root::Origin(url) => format!("by the signers file at {}", shown_text(url)),
        Root::Digest(digest) => format!("by the digest {}", output.digest(digest)),
    };
    let mut lines = vec![project.to_string(), format!("  accepted {}\n    {root}", pin.accepted_at)];
    for link in &pin.history {
        lines.push(format!(
            "  signers since {}\n    {}",
            link.activated_at,
            output.digest(&link.signers_file_digest)
        ));
    }
    lines.extend(pin.log.iter().map(|log| format!("  log {}", shown_text(log.name()))));
    for (path, seen) in &pin.revocations {
        lines.push(format!("  revoked {}\n    {path}\n    {}", seen.revoked_at, quoted(&seen.reason)));
    }
    lines.join("\n")
}

/// Forgets a log, or a project.
fn forget(trust: &TrustFile, name: &str, output: Output) -> Result<(), CliError> {
    let unknown = || {
        CliError::other(
            format!("{} is neither an accepted project nor a remembered log", shown_text(name)),
            "`countersign trust list` shows them",
        )
    };
    let mut store = trust.read()?;
    if store.forget_log(name) {
        let shown = shown_text(name);
        output.confirm(&format!("Forget the log {shown} and its checkpoint?"))?;
        if !trust.change(|store| store.forget_log(name))? {
            return Err(unknown());
        }
        return output.result(&format!("Forgot the log {shown}"), &json!({"removed": name}));
    }
    let accepted: Vec<RepoPath> = store.projects.keys().cloned().collect();
    if ReleaseName::parse_one(&[name.to_owned()]).is_err() {
        return Err(unknown());
    }
    let project = &find_project(name, &accepted)?.ok_or_else(unknown)?;
    let pin = store.projects.get(project).ok_or_else(unknown)?;
    output.show_question(&describe(project, pin, output.with_keys(true)));
    output.confirm("Forget this project, its history and the revocations seen?")?;
    trust.change(|store| store.projects.remove(project))?.ok_or_else(unknown)?;
    trust.forget_history(project);
    output.result(&format!("Forgot {project}"), &json!({"removed": project}))
}
