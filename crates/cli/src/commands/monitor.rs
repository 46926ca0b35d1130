//! `countersign monitor` (D99, D214)

mod lie;
mod reading;
mod replay;
mod state;

use std::{cell::RefCell, collections::BTreeSet};

use countersign_core::documents::{layout, signers::SignersFile};
use countersign_core::log::{checkpoint::SignedCheckpoint, note::Note, tree::TreeHead, tree::empty_root};
use countersign_core::values::shown::{plural, shown_text};
use countersign_core::values::{key::PublicKey, path::RepoPath, verifier_key::VerifierKey, wire::routes};
use serde_json::{Value, json};

use crate::client::{ServerClient, session::Session, state::StateQuestion, targets::find_project};
use crate::commands::monitor::reading::{LogPart, Watching};
use crate::commands::monitor::replay::StateReplay;
use crate::commands::monitor::state::{Delivery, MonitorState, StateFile};
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
    let key = args.projects.is_empty().then(|| session.public_key()).transpose()?;
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

/// The tree of a log of which nothing was replayed.
fn nothing_read() -> TreeHead {
    TreeHead { size: 0, root: empty_root() }
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
        let note = self.client.checkpoint(routes::LOG_CHECKPOINT).await?.ok_or_else(|| self.no_log())?;
        let (told, state) = match before {
            Some(before) => self.go_on(before, &note).await?,
            None => (0, self.begin(&note).await?),
        };
        Ok(told + self.hear_witnesses(&state).await?)
    }

    async fn go_on(&self, mut state: MonitorState, note: &Note) -> Result<(usize, MonitorState), CliError> {
        let (key, to, pin) = (state.key.clone(), self.open(note, &state.key)?, state.pin()?);
        let seen = pin.head().map_err(|error| self.file.unusable(error.to_string()))?.head();
        let sighting = LogSighting { key: &key, note, witnesses: &[], is_timed: false, consistency: None };
        // Before anything is read: two checkpoints that contradict each other are the strongest evidence.
        sighting.check_against(&pin, Some(&self.client)).await?;
        if to.size <= seen.size && state.replay.is_some() {
            return Ok((0, state));
        }
        // Before anything is read: new signers may not list the key any more.
        self.add_projects(&mut state).await?;
        let replay = self.take_replay(&state)?;
        let mut from = seen;
        if replay.is_none() {
            state.commit.clear();
            from = nothing_read();
        }
        let part = LogPart { client: &self.client, note, from, to, told: seen.size };
        let why = "by its own tiles, the log does not continue what was seen of it";
        self.read(part, state, replay, || sighting.forked(&pin, why)).await
    }

    /// Reads a part of the log under a checkpoint, tells what changed there, and remembers it. Gives how much changed.
    /// `contradiction`: what it means if the entries do not give the root.
    async fn read(
        &self,
        part: LogPart<'_>,
        state: MonitorState,
        replay: Option<StateReplay>,
        contradiction: impl FnOnce() -> CliError,
    ) -> Result<(usize, MonitorState), CliError> {
        let mut watching = Watching { state, key: self.key, changes: Vec::new() };
        let mut replay = replay.unwrap_or_else(|| StateReplay::begin(&self.file.replay_file()));
        match part.read(&mut watching, &mut replay).await {
            Ok(None) => {}
            Ok(Some(found)) => return Err(part.accuse(&watching.state.key, found, &replay).await?),
            Err(NotContinued::Contradiction(_)) => return Err(contradiction()),
            Err(NotContinued::Unknown(error)) => return Err(error),
        }
        let Watching { mut state, changes, .. } = watching;
        for change in &changes {
            self.tell(&change.text(), &json!(change)).await?;
        }
        state.checkpoint = part.note.to_string();
        state.replay = Some(replay.save()?);
        self.file.write(&state)?;
        replay.forget_files_before();
        self.replay.replace(Some(replay));
        Ok((changes.len(), state))
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

    /// Tells of projects that newly lack the word of their witnesses, and gives how many lack it.
    async fn hear_witnesses(&self, state: &MonitorState) -> Result<usize, CliError> {
        let unwitnessed = lie::find_unwitnessed(&self.client, state).await?;
        let lacking = unwitnessed.iter().map(|of| of.project.clone()).collect();
        let before = self.unwitnessed.replace(lacking);
        for new in unwitnessed.iter().filter(|of| !before.contains(&of.project)) {
            self.tell(&new.text(), &json!(new)).await?;
        }
        Ok(unwitnessed.len())
    }

    async fn begin(&self, note: &Note) -> Result<MonitorState, CliError> {
        let key = self.client.log_key().await?.ok_or_else(|| self.no_log())?;
        let to = self.open(note, &key)?;
        let (checkpoint, commit, projects, transparency, replay) = Default::default();
        let mut state = MonitorState { key, checkpoint, commit, projects, transparency, replay };
        self.add_projects(&mut state).await?;
        let part = LogPart { client: &self.client, note, from: nothing_read(), to, told: to.size };
        let untrue = || reading::untrue_journal(&self.client, "its entries do not give its root");
        let (_, state) = self.read(part, state, None, untrue).await?;
        let names: Vec<String> = state.projects.iter().map(ToString::to_string).collect();
        self.session.output.note(&format!(
            "Following the log {} from size {} on, for {}. Each commit before gives the state that the log has.",
            state.key.name(),
            to.size,
            if names.is_empty() {
                "all projects that will list the key".to_owned()
            } else {
                names.join(", ")
            }
        ));
        Ok(state)
    }

    /// Watches also the projects that the user named, and those whose signers list the key now. What they demand of
    /// logs is the server's word. From then on the log itself tells of changes.
    async fn add_projects(&self, state: &mut MonitorState) -> Result<(), CliError> {
        let mut projects = self.projects.clone();
        if let Some(key) = &self.key {
            projects.extend(self.client.key(key).await?.listed.into_iter().map(|listed| listed.project_id));
        }
        for project in projects {
            if state.projects.insert(project.clone()) {
                let signers =
                    self.client.parsed(&layout::active_signers(&project), SignersFile::parse).await?;
                let demand = signers.as_ref().and_then(SignersFile::transparency).cloned();
                state.transparency.extend(demand.map(|demand| (project, demand)));
            }
        }
        Ok(())
    }

    fn open(&self, note: &Note, key: &VerifierKey) -> Result<TreeHead, CliError> {
        let signed = SignedCheckpoint::open(note, std::slice::from_ref(key), &[]).map_err(|error| {
            CliError::unverified(
                format!("the checkpoint of {} is not one of the log {}", self.client.address(), key.name()),
                format!(
                    "someone may want to show you another history. Only if the server's operator says, in a place that you \
                     trust, that the log began anew: move {} away",
                    self.file.shown()
                ),
            )
            .because(error)
        })?;
        Ok(signed.checkpoint().head())
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
