//! How far a monitor is, as one readable JSON document, and whom it tells what it finds.

use std::collections::{BTreeMap, BTreeSet};
use std::{io::Write as _, path::PathBuf, process::Command, process::Stdio, time::Duration};

use countersign_core::values::json::{Field, FromField as _, ParseError, read, write_versioned};
use countersign_core::values::{digest::Sha256, path::RepoPath, verifier_key::VerifierKey};
use countersign_core::{documents::transparency::Transparency, json_fields, proof::log_pin::LogPin};
use countersign_forge::url::parse_http_url;
use reqwest::header::CONTENT_TYPE;
use serde::Serialize;
use serde_json::Value;
use url::Url;

use crate::settings::config_dir::{ConfigDir, read_bounded, write};
use crate::words::error::{CliError, add_suffix, shown_path};
use crate::{args::MonitorArgs, client::now, commands::monitor::replay::ReplayMark};

const VERSION: u64 = 1;
const MAX_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct MonitorState {
    pub(super) key: VerifierKey,
    /// The whole note.
    pub(super) checkpoint: String,
    /// The last commit that the checkpoint covers; empty if nothing was replayed.
    pub(super) commit: String,
    /// All projects that were ever watched. New signers must not be able to end the watch.
    pub(super) projects: BTreeSet<RepoPath>,
    /// What their signers files demand of the log.
    pub(super) transparency: BTreeMap<RepoPath, Transparency>,
    /// The state that all commits up to here give; `None` if it cannot be read, as that of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replay: Option<ReplayMark>,
}

impl MonitorState {
    /// The log as it was shown last.
    pub(super) fn pin(&self) -> Result<LogPin, CliError> {
        Ok(LogPin { seen_at: now()?, checkpoint: self.checkpoint.clone() })
    }
}

#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
}

impl StateFile {
    /// One for each server and set of projects.
    pub(super) fn locate(
        args: &MonitorArgs,
        url: &str,
        projects: &BTreeSet<RepoPath>,
    ) -> Result<Self, CliError> {
        let path = match &args.state {
            Some(path) => path.clone(),
            None => {
                let dir = ConfigDir::locate()?;
                // Makes the directory.
                drop(dir.lock()?);
                let projects: BTreeSet<&str> = projects.iter().map(RepoPath::as_str).collect();
                let what = format!("{url}\n{projects:?}");
                dir.file(&format!("monitor-{}.json", &Sha256::of(what.as_bytes()).to_string()[..16]))
            }
        };
        Ok(Self { path })
    }

    /// Reads the state, or `None` before the first look.
    pub(super) fn read(&self) -> Result<Option<MonitorState>, CliError> {
        if !self.path.exists() {
            return Ok(None);
        }
        let bytes = read_bounded(&self.path, MAX_BYTES)?;
        read(&bytes).map(Some).map_err(|error| self.unusable(error.to_string()))
    }

    pub(super) fn write(&self, state: &MonitorState) -> Result<(), CliError> {
        write(&self.path, &write_versioned(VERSION, state))
    }

    /// The path of the file that keeps the replay.
    pub(super) fn replay_file(&self) -> PathBuf {
        add_suffix(&self.path, ".map")
    }

    pub(super) fn shown(&self) -> String {
        shown_path(&self.path)
    }

    pub(super) fn unusable(&self, reason: String) -> CliError {
        CliError::other(
            format!("{} cannot be used", self.shown()),
            "move it away to begin anew: what happened meanwhile is then not reported",
        )
        .because(reason)
    }
}

json_fields!(object MonitorState version VERSION {
    key: text(VerifierKey::parse_log), checkpoint, commit, projects: with(parse_projects), transparency, replay: lenient,
});

fn parse_projects(list: &Field<'_>) -> Result<BTreeSet<RepoPath>, ParseError> {
    list.list(RepoPath::parse_field)
}

// The delivery of what a monitor finds, to a webhook or a command.

const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Delivery {
    webhook: Option<(Url, reqwest::Client)>,
    command: Option<String>,
}

impl Delivery {
    pub(super) fn new(args: &MonitorArgs) -> Result<Self, CliError> {
        let webhook = args.webhook.as_deref().map(open_webhook).transpose()?;
        Ok(Self { webhook, command: args.exec.clone() })
    }

    pub(super) async fn send(&self, text: &str, value: &Value) -> Result<(), CliError> {
        if let Some((url, http)) = &self.webhook {
            let request = http.post(url.clone()).header(CONTENT_TYPE, "application/json").timeout(TIMEOUT);
            let sent = request.body(value.to_string()).send().await;
            // The URL may hold a secret.
            sent.and_then(reqwest::Response::error_for_status)
                .map_err(|error| undelivered("the webhook did not take it").because(error.without_url()))?;
        }
        if let Some(command) = &self.command {
            run(command, text, value).map_err(|error| undelivered("--exec failed").because(error))?;
        }
        Ok(())
    }
}

fn open_webhook(text: &str) -> Result<(Url, reqwest::Client), CliError> {
    let url = parse_http_url(text).map_err(|problem| {
        CliError::usage(format!("--webhook {problem}"), "write it as https://HOST/PATH")
    })?;
    let http =
        countersign_forge::https::https_client(|builder| builder.redirect(reqwest::redirect::Policy::none()));
    Ok((url, http.map_err(CliError::no_https)?))
}

fn run(command: &str, text: &str, value: &Value) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("COUNTERSIGN_CHANGE", value.to_string()).stdin(Stdio::piped());
    let mut child = shell.spawn().map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // A command that reads nothing is no failure.
        let _ = writeln!(input, "{text}");
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

fn undelivered(what: &str) -> CliError {
    CliError::unreachable(
        format!("a change could not be reported: {what}"),
        "correct it, and run it again: what was not reported is reported then",
    )
}
