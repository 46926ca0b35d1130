//! `countersign monitor` (D99, D214)

mod lie;
mod reading;
mod replay;
mod state;

use std::{cell::RefCell, collections::BTreeMap, collections::BTreeSet};

use countersign_core::documents::{layout, signers::SignersFile, transparency::Transparency};
use countersign_core::log::{checkpoint::SignedCheckpoint, note::Note, tree::TreeHead, tree::empty_root};
use countersign_core::proof::log_pin::LogPin;
use countersign_core::values::shown::{plural, shown_text};
use countersign_core::values::{key::PublicKey, path::RepoPath, verifier_key::VerifierKey, wire::routes};
use serde_json::{Value, json};

use crate::client::{ServerClient, now, session::Session, state::StateQuestion, targets::find_project};
use crate::commands::monitor::reading::{LogPart, Watching};
use crate::commands::monitor::state::{Delivery, MonitorState, StateFile};
use crate::commands::monitor::{lie::LyingLog, replay::StateReplay};
use crate::commands::watch::until_interrupted;
use crate::words::error::{CliError, ErrorKind, shown_path};
use crate::{args::MonitorArgs, evidence::log_memory::LogSighting, evidence::log_memory::NotContinued};

pub(crate) async fn run(session: &Session, args: &MonitorArgs) -> Result<(), CliError> {
    let url = match (&args.url, &args.check) {
        (_, Some(file)) => return lie::check(file, session.output),
        (Some(url), None) => url,
        (None, None) => {
            return Err(CliError::usage("no server is named", "name its URL, or a file with --check"));
        }
    };
    let client = ServerClient::new(url, session.output)?;
    let key = match args.projects.is_empty() {
        true => Some(session.public_key()?),
        false => None,
    };
    let mut projects = BTreeSet::new();
    for name in &args.projects {
        projects.insert(resolve(session, &client, name).await?);
    }
    let file = StateFile::locate(args, url, &projects)?;
    // What was watched before may have been dropped.
    if file.read()?.is_none() {
        // To watch a project that does not exist would look like watching, and tell nothing.
        for project in &projects {
            if client.state(&layout::active_signers(project), &StateQuestion::Path).await?.is_none() {
                return Err(unknown_project(&client, project.as_str()));
            }
        }
    }
    let monitor = Monitor {
        session,
        client,
        projects,
        key,
        file,
        delivery: Delivery::new(args)?,
        unwitnessed: RefCell::default(),
        replay: RefCell::default(),
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
    until_interrupted(following).await
}

/// The project that a name stands for.
async fn resolve(session: &Session, client: &ServerClient, name: &str) -> Result<RepoPath, CliError> {
    if let Some(path) = find_project(name, &session.known_projects())? {
        return Ok(path);
    }
    let found = client.projects(&[("name", name)]).await?.projects;
    find_project(name, &found)?.ok_or_else(|| unknown_project(client, name))
}

fn unknown_project(client: &ServerClient, name: &str) -> CliError {
    CliError::usage(
        format!("{} knows no project `{}`", client.address(), shown_text(name)),
        "name a project as acme/app, by its address, or by its path, as in https/github.com/443/acme/app",
    )
}

fn finish_once(told: usize) -> Result<(), CliError> {
    if told == 0 {
        return Ok(());
    }
    Err(CliError::new(
        ErrorKind::Changed,
        format!("there was something new: {told} change{}", plural(told)),
        "check that the project's own people did this; `countersign signers history` shows who its signers are now",
    ))
}

struct Monitor<'a> {
    session: &'a Session,
    client: ServerClient,
    /// The projects that the user named.
    projects: BTreeSet<RepoPath>,
    /// The key whose projects are watched if the user named none.
    key: Option<PublicKey>,
    file: StateFile,
    delivery: Delivery,
    /// Projects that were told to be without the word of their witnesses.
    unwitnessed: RefCell<BTreeSet<RepoPath>>,
    /// The replay as the last look left it, in step with the file.
    replay: RefCell<Option<StateReplay>>,
}

impl Monitor<'_> {
    /// Tells what is new, and how much it was.
    async fn look(&self) -> Result<usize, CliError> {
        let before = self.file.read()?;
        let (told, state) = self.follow(before).await?;
        Ok(told + self.hear_witnesses(&state).await?)
    }

    async fn follow(&self, before: Option<MonitorState>) -> Result<(usize, MonitorState), CliError> {
        let note = self.client.checkpoint(routes::LOG_CHECKPOINT).await?.ok_or_else(|| self.no_log())?;
        let Some(before) = before else { return Ok((0, self.begin(&note).await?)) };
        let shown = self.open(&note, &before.key)?;
        let pin = LogPin { seen_at: now()?, checkpoint: before.checkpoint.clone() };
        let head = shown.checkpoint().head();
        let seen = pin.head().map_err(|error| self.file.unusable(error.to_string()))?.head();
        let sighting =
            LogSighting { key: &before.key, note: &note, witnesses: &[], is_timed: false, consistency: None };
        // Before anything is read: two checkpoints that contradict each other are the strongest evidence.
        sighting.check_against(&pin, Some(&self.client)).await?;
        if head.size <= seen.size && before.replay.is_some() {
            return Ok((0, before));
        }
        // Before anything is read: new signers may not list the key any more.
        let projects = self.list_projects(&before.projects).await?;
        let mut transparency = before.transparency.clone();
        transparency.extend(self.read_demands(projects.difference(&before.projects)).await?);
        let replay = self.take_replay(&before)?;
        let (from, after) = match &replay {
            Some(_) => (seen, Some(before.commit.clone())),
            None => (TreeHead { size: 0, root: empty_root() }, None),
        };
        let (client, key, told) = (&self.client, &before.key, seen.size);
        let part = LogPart { client, key, note: &note, from, to: head, after, told };
        let newest = part.after.clone().unwrap_or_default();
        let watching = Watching { changes: Vec::new(), projects, key: self.key, transparency, newest };
        let why = "by its own tiles, the log does not continue what was seen of it";
        self.read(part, watching, replay, || sighting.forked(&pin, why)).await
    }

    /// Reads a part of the log under a checkpoint, tells what changed there, and remembers it. Gives how much changed.
    /// `contradiction`: what it means if the entries do not give the root.
    async fn read(
        &self,
        part: LogPart<'_>,
        mut watching: Watching,
        replay: Option<StateReplay>,
        contradiction: impl FnOnce() -> CliError,
    ) -> Result<(usize, MonitorState), CliError> {
        let LogPart { client, key, note, to: TreeHead { size, .. }, .. } = part;
        let mut replay = replay.unwrap_or_else(|| StateReplay::begin(&self.file.replay_file()));
        match part.read(&mut watching, &mut replay).await {
            Ok(None) => {}
            Ok(Some(found)) => {
                let log = LyingLog { client, key, note, size, replay: &replay };
                return Err(log.accuse(found).await?);
            }
            Err(NotContinued::Contradiction(_)) => return Err(contradiction()),
            Err(NotContinued::Unknown(error)) => return Err(error),
        }
        for change in &watching.changes {
            self.tell(&change.text(), &json!(change)).await?;
        }
        Ok((watching.changes.len(), self.remember(key.clone(), note, watching, replay)?))
    }

    /// What was derived up to the state that is remembered.
    fn take_replay(&self, before: &MonitorState) -> Result<Option<StateReplay>, CliError> {
        let name = self.file.replay_file();
        let kept = match (self.replay.take(), &before.replay) {
            (Some(replay), Some(mark)) if replay.is_at(mark) => Some(replay),
            (_, Some(mark)) => StateReplay::load(&name, mark)?,
            (_, None) => None,
        };
        if kept.is_none() {
            self.session.output.note(&format!(
                "What was derived of the log before cannot be used, because {} is missing or damaged: it is derived again.",
                shown_path(&name)
            ));
        }
        Ok(kept)
    }

    fn remember(
        &self,
        key: VerifierKey,
        note: &Note,
        watching: Watching,
        mut replay: StateReplay,
    ) -> Result<MonitorState, CliError> {
        let mark = replay.save()?;
        let Watching { projects, transparency, newest: commit, .. } = watching;
        let (checkpoint, mark) = (note.to_string(), Some(mark));
        let state = MonitorState { key, checkpoint, commit, projects, transparency, replay: mark };
        self.file.write(&state)?;
        replay.forget_files_before();
        self.replay.replace(Some(replay));
        Ok(state)
    }

    /// Tells of projects that newly lack the word of their witnesses, and gives how many lack it.
    async fn hear_witnesses(&self, state: &MonitorState) -> Result<usize, CliError> {
        let pin = LogPin { seen_at: now()?, checkpoint: state.checkpoint.clone() };
        let demands = &state.transparency;
        let unwitnessed = lie::find_unwitnessed(&self.client, &state.key, &pin, demands).await?;
        let lacking = unwitnessed.iter().map(|of| of.project.clone()).collect();
        let before = self.unwitnessed.replace(lacking);
        for new in unwitnessed.iter().filter(|of| !before.contains(&of.project)) {
            self.tell(&new.text(), &new.json()).await?;
        }
        Ok(unwitnessed.len())
    }

    async fn begin(&self, note: &Note) -> Result<MonitorState, CliError> {
        let key = self.client.log_key().await?.ok_or_else(|| self.no_log())?;
        let shown = self.open(note, &key)?;
        let head = shown.checkpoint().head();
        let projects = self.list_projects(&BTreeSet::new()).await?;
        let transparency = self.read_demands(&projects).await?;
        let names: Vec<String> = projects.iter().map(ToString::to_string).collect();
        let (changes, newest) = (Vec::new(), String::new());
        let watching = Watching { changes, projects, key: self.key, transparency, newest };
        let from = TreeHead { size: 0, root: empty_root() };
        let (client, told) = (&self.client, head.size);
        let part = LogPart { client, key: &key, note, from, to: head, after: None, told };
        let untrue = || reading::untrue_journal(&self.client, "its entries do not give its root");
        let (_, state) = self.read(part, watching, None, untrue).await?;
        self.session.output.note(&format!(
            "Following the log {} from size {} on, for {}. Each commit before gives the state that the log has.",
            key.name(),
            head.size,
            if names.is_empty() {
                "all projects that will list the key".to_owned()
            } else {
                names.join(", ")
            }
        ));
        Ok(state)
    }

    /// What projects demand of logs, by the server's word. From then on the log itself tells of changes.
    async fn read_demands(
        &self,
        projects: impl IntoIterator<Item = &RepoPath>,
    ) -> Result<BTreeMap<RepoPath, Transparency>, CliError> {
        let mut demands = BTreeMap::new();
        for project in projects {
            let signers = self.client.parsed(&layout::active_signers(project), SignersFile::parse).await?;
            let demand = signers.as_ref().and_then(SignersFile::transparency).cloned();
            demands.extend(demand.map(|demand| (project.clone(), demand)));
        }
        Ok(demands)
    }

    fn open(&self, note: &Note, key: &VerifierKey) -> Result<SignedCheckpoint, CliError> {
        SignedCheckpoint::open(note, std::slice::from_ref(key), &[]).map_err(|error| {
            CliError::unverified(
                format!("the checkpoint of {} is not one of the log {}", self.client.address(), key.name()),
                format!(
                    "someone may want to show you another history. Only if the server's operator says, in a place that you \
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

    async fn tell(&self, text: &str, value: &Value) -> Result<(), CliError> {
        self.session.output.item(text, value)?;
        self.delivery.send(text, value).await
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
