//! `countersign monitor` (D99)

mod delivery;
mod reading;
mod state;

use std::collections::BTreeSet;

use countersign_core::{
    log::{checkpoint::SignedCheckpoint, note::Note},
    proof::log_pin::LogPin,
    values::{key::PublicKey, path::RepoPath, verifier_key::VerifierKey},
};
use serde_json::json;

use self::{
    delivery::Delivery,
    reading::{LogPart, WatchedChange, Watching},
    state::{MonitorState, StateFile},
};
use crate::{
    args::MonitorArgs,
    client::{ServerClient, now},
    error::{CliError, ErrorKind},
    log_memory::LogSighting,
    session::Session,
};

pub(crate) async fn run(session: &Session, args: &MonitorArgs) -> Result<(), CliError> {
    let client = ServerClient::new(&args.url, session.output)?;
    let key = match args.projects.is_empty() {
        true => Some(session.public_key()?),
        false => None,
    };
    let monitor = Monitor {
        session,
        client,
        projects: args.projects.iter().cloned().collect(),
        key,
        file: StateFile::locate(args)?,
        delivery: Delivery::new(args)?,
    };
    let following = async {
        loop {
            let told = match monitor.look().await {
                Ok(told) => told,
                Err(error) if error.kind() == ErrorKind::Unreachable && !args.once => {
                    session.output.note(&format!("{error}; trying again."));
                    0
                }
                Err(error) => {
                    monitor.alarm(&error).await;
                    return Err(error);
                }
            };
            if args.once {
                return finish_once(told);
            }
            tokio::time::sleep(args.interval).await;
        }
    };
    tokio::select! {
        ended = following => ended,
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(|error| {
            CliError::other("Ctrl-C cannot be heard", "end it by another signal").because(error)
        }),
    }
}

fn finish_once(told: usize) -> Result<(), CliError> {
    match told {
        0 => Ok(()),
        1 => Err(changed("1 change".to_owned())),
        many => Err(changed(format!("{many} changes"))),
    }
}

fn changed(what: String) -> CliError {
    CliError::new(
        ErrorKind::Changed,
        format!("there was something new: {what}"),
        "check that the project's own people did this; `countersign chain PROJECT` shows who its signers are now",
    )
}

struct Monitor<'a> {
    session: &'a Session,
    client: ServerClient,
    /// That the user named.
    projects: BTreeSet<RepoPath>,
    /// Else those that list this key.
    key: Option<PublicKey>,
    file: StateFile,
    delivery: Delivery,
}

impl Monitor<'_> {
    /// Tells what is new, and how much it was.
    async fn look(&self) -> Result<usize, CliError> {
        let before = self.file.read()?;
        let note = self.client.checkpoint().await?.ok_or_else(|| self.no_log())?;
        let Some(before) = before else { return self.begin(&note).await };
        let shown = self.open(&note, &before.key)?;
        let pin = LogPin { seen_at: now()?, checkpoint: before.checkpoint.clone() };
        let head = shown.checkpoint().head();
        let seen = pin.head().map_err(|error| self.file.unusable(error.to_string()))?.head();
        let sighting = LogSighting { key: &before.key, note: &note, witnesses: &[], is_timed: false };
        if head.size <= seen.size {
            // Equal, or an error.
            return sighting.check_against(&pin, Some(&self.client)).await.map(|_| 0);
        }
        // Before anything is read: new signers may not list the key any more.
        let watching = Watching { projects: self.list_projects(&before.projects).await?, key: self.key };
        let part = LogPart { client: &self.client, from: seen, to: head, after: before.commit.clone() };
        let read = part.read(watching).await.map_err(|error| error.into_cli(&sighting, &pin))?;
        for change in &read.changes {
            self.tell(change).await?;
        }
        let after = MonitorState {
            key: before.key,
            checkpoint: note.to_string(),
            commit: read.newest,
            projects: read.projects,
        };
        self.file.write(&after)?;
        Ok(read.changes.len())
    }

    async fn begin(&self, note: &Note) -> Result<usize, CliError> {
        let key = self.client.log_key().await?.ok_or_else(|| self.no_log())?;
        let shown = self.open(note, &key)?;
        let head = shown.checkpoint().head();
        let commit = reading::commit_at(&self.client, head.size).await?;
        let projects = self.list_projects(&BTreeSet::new()).await?;
        let names: Vec<&str> = projects.iter().map(RepoPath::as_str).collect();
        self.session.output.note(&format!(
            "Following the log {} from size {} on, for {}.",
            key.name(),
            head.size,
            if names.is_empty() {
                "all projects that will list the key".to_owned()
            } else {
                names.join(", ")
            }
        ));
        self.file.write(&MonitorState { key, checkpoint: note.to_string(), commit, projects })?;
        Ok(0)
    }

    fn open(&self, note: &Note, key: &VerifierKey) -> Result<SignedCheckpoint, CliError> {
        SignedCheckpoint::open(note, std::slice::from_ref(key), &[]).map_err(|error| {
            CliError::unverified(
                format!("the checkpoint of {} is not one of the log {}", self.client.address(), key.name()),
                format!(
                    "somebody may want to show you another history. Only if the server's operator says, in a place that you \
                     trust, that the log began anew: move {} away",
                    self.file.shown()
                ),
            )
            .because(error)
        })
    }

    async fn list_projects(&self, known: &BTreeSet<RepoPath>) -> Result<BTreeSet<RepoPath>, CliError> {
        let mut projects: BTreeSet<RepoPath> = known.union(&self.projects).cloned().collect();
        if let Some(key) = &self.key {
            projects.extend(self.client.key(key).await?.listed.into_iter().map(|listed| listed.project_id));
        }
        Ok(projects)
    }

    async fn tell(&self, change: &WatchedChange) -> Result<(), CliError> {
        let value = change.json();
        self.session.output.item(&change.text(), &value)?;
        self.delivery.send(&change.text(), &value).await
    }

    /// A log that lies is the most important change of all. The error itself is shown whether this arrives or not.
    async fn alarm(&self, error: &CliError) {
        if error.kind() == ErrorKind::Verification {
            let value = json!({"kind": "alarm", "server": self.client.address(), "error": error.to_string()});
            if let Err(lost) = self.delivery.send(&format!("ALARM: {error}"), &value).await {
                self.session.output.show(&format!("The alarm did not arrive: {lost}"));
            }
        }
    }

    fn no_log(&self) -> CliError {
        CliError::other(
            format!("the server {} keeps no log", self.client.address()),
            "ask its operator; `countersign watch` follows its events, which prove nothing",
        )
    }
}
