//! What a log proves about a release now (D97): its staple is found, verified by core, held to what was seen before,
//! and to the age that the policy allows.

use std::{path::Path, time::Duration};

use countersign_api::state::LogAnswer;
use countersign_core::proof::freshness::{
    Freshness, LogTrust, LoggedSigners, QuorumCount, StapleError, StapleSubject, age, is_too_old, verify,
};
use countersign_core::proof::{bundle::Staple, verify::VerifiedArtifact};
use countersign_core::values::shown::{plural, shown_text};
use countersign_core::values::{
    bounds::STAPLE_BYTES, path::RepoPath, time::Timestamp, verifier_key::VerifierKey,
};
use countersign_core::{documents::layout, log::checkpoint::CheckpointError, log::record::LoggedState};
use countersign_explain::words::{shown_age, shown_witness_count};
use serde_json::{Value, json};

use crate::client::{ServerClient, now, session::Session};
use crate::evidence::log_memory::{LogSighting, LoggedProject, other_log};
use crate::evidence::log_policy::{AgeLimit, ChosenPolicy, PolicySource, choose, limit_age};
use crate::evidence::proof::{Network, behind};
use crate::words::error::{CliError, ErrorKind, shown_path};
use crate::{args::ProofArgs, settings::config_dir::read_bounded, settings::trust::TrustFile};

const WAYS_OUT: &str = "run it again in a minute, or ask the project. `--no-log-check` goes on without a proof, and without \
                        noticing a hidden revocation";

/// What was shown of a release, and by whom, and what its user wants to be proven.
#[derive(Debug)]
pub(crate) struct ShownState<'a> {
    pub(crate) session: &'a Session,
    pub(crate) wanted: &'a ProofArgs,
    pub(crate) artifact: &'a VerifiedArtifact,
    pub(crate) from: StateSource<'a>,
    /// The server's, the bundle's, or one that the user has.
    pub(crate) staple: Option<Staple>,
    /// Whether the user gave the staple. It can be newer than what the server shows.
    pub(crate) is_given: bool,
}

/// The party that shows the state of a release.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StateSource<'a> {
    /// A server, now.
    Server { client: &'a ServerClient, log: &'a LogAnswer },
    /// A bundle. It can be old: an old proof is told, and refused only if the user set an age or a policy.
    Bundle,
}

impl StateSource<'_> {
    fn network(self) -> Network {
        match self {
            Self::Server { .. } => Network::Online,
            Self::Bundle => Network::Offline,
        }
    }
}

/// What can be said about the newest state of a release.
#[derive(Debug)]
pub(crate) enum LogReport {
    /// The user did not want to know.
    NotChecked,
    /// No staple is there, and no policy wants one.
    Absent,
    /// No staple is there that meets the policy. Only of a bundle.
    Unmet {
        why: String,
        has_staple: bool,
    },
    Shown(Box<ShownFreshness>),
}

#[derive(Debug)]
pub(crate) struct ShownFreshness {
    pub(crate) staple: Staple,
    pub(crate) freshness: Freshness,
    pub(crate) policy: Option<PolicySource>,
    pub(crate) max_age: Option<AgeLimit>,
    pub(crate) now: Timestamp,
}

impl LogReport {
    /// What was verified, with its staple.
    pub(crate) fn shown(&self) -> Option<&ShownFreshness> {
        if let Self::Shown(shown) = self { Some(shown) } else { None }
    }
}

impl ShownState<'_> {
    /// Why a proof that is wanted is not there yet, if the log's next checkpoint can have it.
    pub(crate) fn waits_for(&self) -> Result<Option<&str>, CliError> {
        let StateSource::Server { log, .. } = self.from else { return Ok(None) };
        if self.wanted.no_log_check || self.staple.is_some() || !log.is_soon {
            return Ok(None);
        }
        Ok(self.choose_policy()?.and(log.no_staple.as_deref()))
    }

    fn choose_policy(&self) -> Result<Option<ChosenPolicy>, CliError> {
        let chain = &self.artifact.chain;
        choose(self.session, self.wanted, &chain.project, &chain.last().signers)
    }

    pub(crate) async fn check(self) -> Result<LogReport, CliError> {
        if self.wanted.no_log_check {
            return Ok(LogReport::NotChecked);
        }
        let trust = TrustFile::locate()?;
        let policy = self.choose_policy()?;
        let policy = policy.as_ref();
        let max_age = limit_age(self.session, self.wanted, &self.artifact.chain.project, policy);
        let is_demanded = self.wanted.max_age.is_some() || policy.is_some_and(ChosenPolicy::is_own);
        let Some(staple) = self.find_staple(&trust, policy)? else {
            return Ok(policy.map_or(LogReport::Absent, |policy| LogReport::Unmet {
                why: format!("no proof is there, although {} names a log", policy.source.text()),
                has_staple: false,
            }));
        };
        // A policy decides itself which log counts. Without one, it must be the log that this computer knows.
        let key = if policy.is_some() { None } else { self.find_log(&trust)? };
        let log_trust = match (policy, &key) {
            (Some(chosen), _) => LogTrust::Policy(&chosen.policy),
            (None, Some(key)) => LogTrust::Key(key),
            (None, None) => LogTrust::Unknown,
        };
        let time = now()?;
        let freshness = match verify(&staple, &StapleSubject::of(self.artifact), log_trust, time) {
            Ok(freshness) => freshness,
            Err(error) if self.is_only_unmet(&error) && !is_demanded => {
                self.refuse_logged(&trust, policy, staple, time)?;
                return Ok(LogReport::Unmet { why: error.to_string(), has_staple: true });
            }
            Err(error) => return Err(self.refused(policy, error)),
        };
        let source = policy.map(|chosen| chosen.source.clone());
        let shown = ShownFreshness { staple, freshness, policy: source, max_age, now: time };
        self.check_state(&trust, &shown)?;
        self.check_continuity(&trust, policy, &shown).await?;
        self.check_signers(&shown)?;
        if self.from.network() == Network::Online || is_demanded {
            self.check_age(&shown)?;
        }
        Ok(LogReport::Shown(Box::new(shown)))
    }

    /// Finds the staple, which must be there with a policy.
    fn find_staple(
        &self,
        trust: &TrustFile,
        policy: Option<&ChosenPolicy>,
    ) -> Result<Option<Staple>, CliError> {
        let path = &self.artifact.path;
        let said = match (&self.staple, self.from) {
            (Some(staple), _) => return Ok(Some(staple.clone())),
            (None, StateSource::Server { client, log }) => {
                let said = log.no_staple.as_deref().map_or_else(|| "it keeps no log".to_owned(), shown_text);
                format!("{}: {said}", client.address())
            }
            (None, StateSource::Bundle) => "the bundle has no staple".to_owned(),
        };
        let unproven = |why: &str| {
            CliError::unverified(format!("it is not proven that {path} is not revoked: {why}"), WAYS_OUT)
                .because(said.clone())
        };
        match (policy, self.from.network()) {
            (Some(policy), Network::Online) => {
                Err(unproven(&format!("{} wants a log to show it", policy.source.text())))
            }
            _ if self.wanted.max_age.is_some() => Err(unproven("--max-age wants a proof")),
            _ if self.wanted.policy.is_some() => Err(unproven("--policy wants a proof")),
            (Some(policy), Network::Offline) if policy.is_own() => {
                Err(unproven(&format!("{} wants a proof", policy.source.text())))
            }
            (None, Network::Online) => {
                let pinned =
                    trust.read()?.projects.get(&self.artifact.chain.project).and_then(|pin| pin.log.clone());
                if let Some(log) = pinned {
                    let output = self.session.output;
                    output.note(&format!(
                        "{} the log {} has shown the state of this project before, and now it does not: {said}",
                        output.bad("warning:"),
                        log.name()
                    ));
                }
                Ok(None)
            }
            (Some(_) | None, Network::Offline) => Ok(None),
        }
    }

    /// The key that the server names, which must be the one that this computer knows, or the known one.
    fn find_log(&self, trust: &TrustFile) -> Result<Option<VerifierKey>, CliError> {
        let (store, project) = (trust.read()?, &self.artifact.chain.project);
        let named = match self.from {
            StateSource::Server { log, .. } => log.key.clone(),
            StateSource::Bundle => None,
        };
        if let Some(named) = &named {
            store.check_log(project, named).map_err(other_log)?;
        }
        Ok(named.or_else(|| store.projects.get(project).and_then(|pin| pin.log.clone())))
    }

    /// Whether only cosignatures are missing. In an old bundle that means only that nothing is proven.
    fn is_only_unmet(&self, error: &StapleError) -> bool {
        let is_unmet = matches!(
            error,
            StapleError::TooFewWitnesses(_)
                | StapleError::Checkpoint(CheckpointError::UnknownOrigin(_) | CheckpointError::NotSigned(_))
        );
        is_unmet && self.from.network() == Network::Offline
    }

    fn refused(&self, policy: Option<&ChosenPolicy>, error: StapleError) -> CliError {
        let by = match policy {
            Some(chosen) => format!("by the log and witnesses of {}", chosen.source.text()),
            None => "by its log".to_owned(),
        };
        let hint = match error {
            StapleError::TooFewWitnesses(_) => WAYS_OUT,
            _ => {
                "do not use the file: the server lies or is broken, or the proof was tampered with. Ask the project"
            }
        };
        CliError::unverified(format!("the state of {} is not proven {by}", self.artifact.path), hint)
            .because(error)
    }

    /// Refuses a release that the log itself says is revoked, even if too few witnesses prove a time.
    fn refuse_logged(
        &self,
        trust: &TrustFile,
        policy: Option<&ChosenPolicy>,
        staple: Staple,
        now: Timestamp,
    ) -> Result<(), CliError> {
        let Some(chosen) = policy else { return Ok(()) };
        let subject = StapleSubject::of(self.artifact);
        let logs = chosen.policy.log_keys();
        let said = logs.iter().find_map(|log| verify(&staple, &subject, LogTrust::Key(log), now).ok());
        let Some(freshness) = said else { return Ok(()) };
        let policy = Some(chosen.source.clone());
        self.check_state(trust, &ShownFreshness { staple, freshness, policy, max_age: None, now })
    }

    /// A revocation that only the log shows is one that the server hides.
    fn check_state(&self, trust: &TrustFile, shown: &ShownFreshness) -> Result<(), CliError> {
        let LoggedState::Revoked(document) = shown.freshness.state else { return Ok(()) };
        let path = &self.artifact.path;
        let reason =
            format!("by the log {}, with {}", shown.freshness.checkpoint.origin, document.to_prefixed());
        if let Some(as_of) = shown.freshness.as_of {
            trust.change(|store| store.remember_logged_revocation(self.artifact, &reason, as_of))?;
        }
        let (hidden, hint) = match self.from {
            StateSource::Server { client, .. } if self.is_given => (
                format!("The server {} does not show it yet", client.address()),
                "do not use the file; look for a newer release",
            ),
            StateSource::Server { client, .. } => (
                format!("The server {} HIDES it, and shows no revocation", client.address()),
                "do not use the file. Tell the project that its server hides a revocation",
            ),
            StateSource::Bundle => (
                "The bundle is older, and does not show it".to_owned(),
                "do not use the file; look for a newer release",
            ),
        };
        let message = format!("{path} is REVOKED {reason}, {}. {hidden}", shown.by_whom());
        Err(CliError::new(ErrorKind::Revoked, message, hint))
    }

    async fn check_continuity(
        &self,
        trust: &TrustFile,
        policy: Option<&ChosenPolicy>,
        shown: &ShownFreshness,
    ) -> Result<(), CliError> {
        let Some(key) = &shown.freshness.log_key else { return Ok(()) };
        let witnesses = policy.map_or_else(Vec::new, |chosen| chosen.policy.witness_keys());
        let (client, consistency) = match self.from {
            StateSource::Server { client, log } => (Some(client), log.consistency.as_ref()),
            StateSource::Bundle => (None, None),
        };
        let is_timed = shown.freshness.as_of.is_some();
        let note = &shown.staple.proof.note;
        let sighting = LogSighting { key, note, witnesses: &witnesses, is_timed, consistency };
        let project = &self.artifact.chain.project;
        let subject = LoggedProject { project, has_policy: policy.is_some() };
        sighting.check(trust, client, subject, self.session.output).await
    }

    /// What a server shows now must be what its log says; a bundle can be older.
    fn check_signers(&self, shown: &ShownFreshness) -> Result<(), CliError> {
        match (shown.freshness.signers, self.from.network()) {
            (LoggedSigners::Replaced { history }, Network::Online) if self.is_given => Err(behind(format!(
                "the server is behind: by the staple, {} has {history} signers files, and the server shows {}",
                self.artifact.chain.project,
                self.artifact.chain.links.len()
            ))),
            (LoggedSigners::Replaced { history }, Network::Online) => Err(CliError::unverified(
                format!(
                    "the server HIDES a change of signers of {}: the log has {history} signers files, {}, and the server \
                     shows {}",
                    self.artifact.chain.project,
                    shown.by_whom(),
                    self.artifact.chain.links.len()
                ),
                "do not use the file, and tell the project",
            )),
            (LoggedSigners::Replaced { .. }, Network::Offline) => Ok(()),
            (LoggedSigners::Newest | LoggedSigners::LogIsBehind { .. }, _) => Ok(()),
        }
    }

    fn check_age(&self, shown: &ShownFreshness) -> Result<(), CliError> {
        let (Some(limit), path) = (&shown.max_age, &self.artifact.path) else { return Ok(()) };
        let Some(as_of) = shown.freshness.as_of else {
            return Err(CliError::unverified(
                format!("nothing proves how old the state of {path} is: {}", shown.by_whom()),
                "witnesses prove a time: pass --policy FILE with witnesses that you trust, or leave --max-age out",
            ));
        };
        if !is_too_old(as_of, shown.now, limit.age) {
            return Ok(());
        }
        let age = age(as_of, shown.now);
        Err(CliError::unverified(
            format!(
                "the newest proof that {path} is not revoked is from {as_of}, {} old; {} allows {}",
                rough_age(age),
                limit.whose,
                shown_age(limit.age)
            ),
            format!(
                "check this computer's clock. If it is right, the server hides its newest state or its witnesses are away: \
                 run it again later, or accept an older proof with --max-age {}",
                age_argument(age)
            ),
        ))
    }
}

impl ShownFreshness {
    /// The witnesses who stand behind it, for people.
    pub(crate) fn by_whom(&self) -> String {
        let Freshness { as_of, quorum, .. } = &self.freshness;
        match (as_of, &self.policy) {
            (Some(as_of), _) => format!(
                "as of {}, by {} of {}{}",
                shown_time(*as_of, self.now),
                quorum.cosigned,
                shown_witness_count(quorum.witnesses),
                shown_replaying(quorum)
            ),
            (None, Some(_)) => "by the log's word alone".to_owned(),
            (None, None) => "by the server's word alone".to_owned(),
        }
    }
}

/// What is said of those that have cosigned, if anything is (D213).
fn shown_replaying(quorum: &QuorumCount) -> String {
    match quorum.replaying {
        None => String::new(),
        Some(0) => ", none of which replays the rules".to_owned(),
        Some(1) => ", 1 of which replays the rules".to_owned(),
        Some(count) => format!(", {count} of which replay the rules"),
    }
}

/// Shows a time as `14:02 UTC`, with the date if it is not today.
pub(crate) fn shown_time(time: Timestamp, now: Timestamp) -> String {
    let (text, today) = (time.to_string(), now.to_string());
    let (date, rest) = text.split_once('T').unwrap_or((&text, ""));
    let minute = rest.get(..5).unwrap_or(rest);
    if today.starts_with(date) { format!("{minute} UTC") } else { format!("{date} {minute} UTC") }
}

/// Shows an age in the largest unit of which it has two, as in `50 hours`.
fn rough_age(age: Duration) -> String {
    let units = [(24 * 60 * 60, "days"), (60 * 60, "hours"), (60, "minutes")];
    let seconds = age.as_secs();
    let found = units.into_iter().find(|(unit, _)| seconds >= 2 * unit);
    found.map_or_else(|| format!("{seconds} seconds"), |(unit, name)| format!("{} {name}", seconds / unit))
}

/// An age that is enough, with some time to type it, as `--max-age` takes it.
fn age_argument(age: Duration) -> String {
    let minutes = age.as_secs() / 60 + 10;
    match minutes {
        0..=120 => format!("{minutes}m"),
        121..=2_880 => format!("{}h", minutes / 60 + 1),
        _ => format!("{}d", minutes / 1_440 + 1),
    }
}

pub(crate) fn read_staple(path: &Path) -> Result<Staple, CliError> {
    let bytes = read_bounded(path, STAPLE_BYTES)?;
    Staple::parse(&bytes).map_err(|error| {
        let message = format!("{} is not a staple", shown_path(path));
        CliError::unverified(message, "make one with `countersign staple NAME -o FILE`").because(error)
    })
}

// The report of what a log proves about a release, for people and for programs.

const NOT_PROVEN: &str = "that this is the newest release, and that it was not revoked a moment ago";

impl LogReport {
    /// Names and texts of lines: what is proven, and what is not. `bundled_at`: of an offline bundle.
    pub(crate) fn lines(&self, project: &RepoPath, bundled_at: Option<&str>) -> Vec<(&'static str, String)> {
        let unknown = match bundled_at {
            None => NOT_PROVEN.to_owned(),
            Some(time) => format!(
                "what happened after {time}, when the bundle says it was made: a revocation or a change of signers \
                 since then only the network could show"
            ),
        };
        match self {
            Self::NotChecked => vec![("not proven", format!("{unknown} (--no-log-check)"))],
            Self::Absent if bundled_at.is_none() => {
                vec![("not proven", format!("{unknown}: the server shows no log of its changes"))]
            }
            Self::Absent => vec![("not proven", unknown)],
            Self::Unmet { why, has_staple } => {
                let there = if *has_staple { "a staple is there, but " } else { "" };
                vec![("log", format!("{there}{why}")), ("not proven", unknown)]
            }
            Self::Shown(shown) => vec![("log", shown.text(project)), ("not proven", shown.not_proven())],
        }
    }

    pub(crate) fn json(&self) -> Value {
        match self {
            Self::NotChecked | Self::Absent => Value::Null,
            Self::Unmet { why, .. } => json!({"word": "none", "unmet": why}),
            Self::Shown(shown) => shown.json(),
        }
    }
}

impl ShownFreshness {
    /// Says the freshness, as in `fresh as of 14:02 UTC, by 3 of 4 witnesses; the release completed last; not revoked`.
    pub(crate) fn text(&self, project: &RepoPath) -> String {
        let Freshness { as_of, newer, newer_indexes, signers, state, .. } = &self.freshness;
        let fresh = if as_of.is_some() { "fresh " } else { "" };
        let mut parts = vec![format!("{fresh}{}", self.by_whom())];
        if let (Some(_), Some(limit)) = (as_of, self.max_age.as_ref().filter(|_| !self.is_fresh())) {
            parts.push(format!("OLDER than {} allows, {}", limit.whose, shown_age(limit.age)));
        }
        parts.push(newer_text(*newer, newer_indexes, project));
        parts.push(
            match state {
                LoggedState::Complete => "not revoked",
                LoggedState::Revoked(_) => "REVOKED",
            }
            .to_owned(),
        );
        match signers {
            LoggedSigners::Newest => {}
            LoggedSigners::Replaced { .. } => parts.push("the signers have changed since".to_owned()),
            LoggedSigners::LogIsBehind { .. } => {
                parts.push("from before the last change of signers".to_owned());
            }
        }
        parts.join("; ")
    }

    /// Whether witnesses prove a time that is not too long ago. Only the proof of a bundle can be too old. It is shown
    /// then, but proves nothing about now.
    pub(crate) fn is_fresh(&self) -> bool {
        let is_old =
            |as_of| self.max_age.as_ref().is_some_and(|limit| is_too_old(as_of, self.now, limit.age));
        self.freshness.as_of.is_some_and(|as_of| !is_old(as_of))
    }

    fn not_proven(&self) -> String {
        match (self.freshness.as_of, &self.policy) {
            (Some(as_of), _) => format!(
                "what happened after {}: a revocation, a change of signers or a newer release",
                shown_time(as_of, self.now)
            ),
            (None, Some(source)) => format!(
                "that this is the newest state, and that everyone is shown the same: {} names a log, but no witnesses",
                source.text()
            ),
            (None, None) => {
                "that this is the newest state, and that everyone is shown the same: the project's signers \
                             file names no log and no witnesses, and no policy of yours does (--policy)"
                    .to_owned()
            }
        }
    }

    fn json(&self) -> Value {
        let Freshness { checkpoint, log_key, as_of, cosignatures, quorum, state, number, newer, .. } =
            &self.freshness;
        let word = match (as_of, &self.policy) {
            (Some(_), _) => "witnesses",
            (None, Some(_)) => "log",
            (None, None) => "server",
        };
        let policy = self.policy.as_ref().map(|source| match source {
            PolicySource::File(path) => path.display().to_string(),
            PolicySource::SignersFile => "signers file".to_owned(),
        });
        let (signers, history) = match self.freshness.signers {
            LoggedSigners::Newest => ("newest", None),
            LoggedSigners::Replaced { history } => ("replaced", Some(history)),
            LoggedSigners::LogIsBehind { history } => ("earlier", Some(history)),
        };
        let cosignatures = cosignatures.iter().map(|cosignature| {
            json!({
                "name": cosignature.witness.name(), "key": cosignature.witness.to_string(), "time": cosignature.time,
            })
        });
        let newer_indexes = self.freshness.newer_indexes.iter().map(RepoPath::as_str);
        json!({
            "word": word,
            "as_of": as_of.map(|time| time.to_string()),
            "age_seconds": as_of.map(|time| age(time, self.now).as_secs()),
            "max_age_seconds": self.max_age.as_ref().map(|limit| limit.age.as_secs()),
            "policy": policy,
            "origin": checkpoint.origin,
            "log_key": log_key.as_ref().map(ToString::to_string),
            "size": checkpoint.size,
            "root": countersign_core::log::tree::write_hash(&checkpoint.root),
            "needed": quorum.needed,
            "cosigned": quorum.cosigned,
            "witnesses": quorum.witnesses,
            "replaying": quorum.replaying,
            "cosignatures": cosignatures.collect::<Vec<_>>(),
            "revoked": matches!(state, LoggedState::Revoked(_)),
            "number": number,
            "newer": newer,
            "newer_indexes": newer_indexes.collect::<Vec<_>>(),
            "signers": signers,
            "signers_in_log": history,
        })
    }
}

fn newer_text(newer: u32, indexes: &[RepoPath], project: &RepoPath) -> String {
    if newer == 0 {
        return "the release completed last".to_owned();
    }
    let names: Vec<String> =
        indexes.iter().map(|index| shown_text(&layout::release_name(index, project))).collect();
    let count = usize::try_from(newer).unwrap_or(usize::MAX);
    let verb = if count == 1 { "was" } else { "were" };
    let later = format!("{newer} release{} {verb} completed later", plural(count));
    match names.len() {
        0 => later,
        listed if listed < count => format!("{later}, the last of them {}", names.join(", ")),
        _ => format!("{later}: {}", names.join(", ")),
    }
}
