//! Holds a log to what it has shown before (D98). If it contradicts itself, both checkpoints are kept as evidence.

use std::path::PathBuf;

use countersign_api::state::LogConsistency;
use countersign_core::log::tree::{BadProof, TreeHead, verify_consistency};
use countersign_core::log::{checkpoint::SignedCheckpoint, note::Note};
use countersign_core::proof::log_pin::{Continuation, LogPin, LogPinFault};
use countersign_core::proof::trust::{OtherLog, TrustStore};
use countersign_core::values::{path::RepoPath, verifier_key::VerifierKey};
use countersign_explain::logs::shown_verifier_key;
use serde_json::json;

use crate::client::{ServerClient, now};
use crate::log_tiles::{NotContinued, check_continuation};
use crate::{config_dir::ConfigDir, error::CliError, files::write_new, output::quote, paths::shown_path};
use crate::{proof::behind, trust::TrustFile};

/// How often other processes can see more of a log while this one compares.
const MAX_COMPARISONS: usize = 8;

/// A checkpoint that a log has signed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogSighting<'a> {
    pub(crate) key: &'a VerifierKey,
    pub(crate) note: &'a Note,
    /// Known witnesses, whose cosignatures verify.
    pub(crate) witnesses: &'a [VerifierKey],
    /// Whether enough of the witnesses prove its time.
    pub(crate) is_timed: bool,
    /// What the server says to prove that it is the log that was seen.
    pub(crate) consistency: Option<&'a LogConsistency>,
}

/// The project whose state a log shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedProject<'a> {
    pub(crate) project: &'a RepoPath,
    /// Whether a policy names the log, and so decides which one counts.
    pub(crate) has_policy: bool,
}

/// Whether a log continues what was seen of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Continuity {
    Proven,
    /// There was no network to ask.
    Unknown,
}

/// Why a checkpoint is not remembered that could be.
pub(crate) enum NotRemembered {
    /// The log contradicts what is known of it.
    Refused(CliError),
    /// The continuity is proven, and the file cannot be written.
    Unwritten(CliError),
}

impl LogSighting<'_> {
    /// Checks that the log continues what was seen of it, and remembers what it shows. Without a client, checks only what
    /// needs no tiles.
    ///
    /// Tiles are asked for while the store is not locked. What another process has seen of the log meanwhile is compared
    /// as well, before anything is written (D207).
    pub(crate) async fn check(
        &self,
        trust: &TrustFile,
        client: Option<&ServerClient>,
        subject: LoggedProject<'_>,
    ) -> Result<(), NotRemembered> {
        for _ in 0..MAX_COMPARISONS {
            let store = trust.read().map_err(NotRemembered::Refused)?;
            self.check_log(&store, subject).map_err(NotRemembered::Refused)?;
            let seen = store.log_pin(self.key);
            let continuity = match seen {
                Some(pin) => self.check_against(pin, client).await.map_err(NotRemembered::Refused)?,
                None => Continuity::Proven,
            };
            if continuity == Continuity::Unknown
                || self.remember(trust, subject, seen).map_err(NotRemembered::Unwritten)?
            {
                return Ok(());
            }
        }
        let error = CliError::other(
            "other countersign processes change what is known of the log all the time",
            "run it again when they are done",
        );
        Err(NotRemembered::Refused(error))
    }

    /// A log that no policy names must be the one that this computer knows.
    fn check_log(&self, store: &TrustStore, subject: LoggedProject<'_>) -> Result<(), CliError> {
        let LoggedProject { project, has_policy } = subject;
        if has_policy { Ok(()) } else { store.check_log(project, self.key).map_err(other_log) }
    }

    pub(crate) async fn check_against(
        &self,
        pin: &LogPin,
        client: Option<&ServerClient>,
    ) -> Result<Continuity, CliError> {
        let unusable =
            |error| CliError::unverified("a checkpoint cannot be used", "report this").because(error);
        let shown = SignedCheckpoint::open(self.note, std::slice::from_ref(self.key), self.witnesses);
        let shown = shown.map_err(|error| unusable(error.to_string()))?;
        let compared = pin.compare(&shown, self.witnesses, self.is_timed);
        let is_behind = matches!(compared, Ok(Continuation::Shrunk { .. }));
        let (from, to) = match compared {
            Ok(Continuation::Same) => return Ok(Continuity::Proven),
            Ok(Continuation::Grown { from, to }) => (from, to),
            Ok(Continuation::Shrunk { shown, seen }) => (shown, seen),
            Err(fault @ (LogPinFault::Fork(_) | LogPinFault::WitnessWentBack { .. })) => {
                return Err(self.forked(pin, &fault.to_string()));
            }
            Err(fault @ LogPinFault::Unusable(_)) => return Err(unusable(fault.to_string())),
            Err(LogPinFault::Smaller { .. }) if client.is_none() => return Ok(Continuity::Unknown),
            Err(fault @ LogPinFault::Smaller { .. }) => {
                return Err(behind(format!(
                    "the server is behind with the log {}: {fault}",
                    self.key.name()
                )));
            }
        };
        let shown = self.consistency.filter(|proof| proof.from == from.size && proof.to == to.size);
        if shown.is_some_and(|proof| verify_consistency(&from, &to, &proof.hashes).is_ok()) {
            return Ok(Continuity::Proven);
        }
        // A proof that does not verify is no evidence of a fork. Tiles are.
        let Some(client) = client else { return Ok(Continuity::Unknown) };
        match check_continuation(client, &from, &to).await {
            Ok(()) => Ok(Continuity::Proven),
            Err(NotContinued::Unknown(_)) if is_behind => Err(behind(format!(
                "the server is behind with the log {}: it shows size {}, and this computer has seen size {}",
                self.key.name(),
                from.size,
                to.size
            ))),
            Err(NotContinued::Unknown(error)) => Err(error),
            Err(NotContinued::Contradiction(BadProof)) => {
                Err(self.forked(pin, &does_not_continue(&from, &to)))
            }
        }
    }

    /// Remembers the log of a project and its checkpoint, if there is something new. Returns whether what is known of the
    /// log is still what was compared.
    fn remember(
        &self,
        trust: &TrustFile,
        subject: LoggedProject<'_>,
        compared: Option<&LogPin>,
    ) -> Result<bool, CliError> {
        let time = now()?;
        trust.change(|store| {
            let is_same = store.log_pin(self.key) == compared && self.check_log(store, subject).is_ok();
            if is_same {
                store.remember_log(subject.project, self.key, self.note, time);
            }
            is_same
        })
    }

    /// The error of a log that contradicts itself, with the evidence in a file.
    pub(crate) fn forked(&self, pin: &LogPin, fault: &str) -> CliError {
        let (seen, shown) = (pin.checkpoint.clone(), self.note.to_string());
        let hint = match write_evidence(self.key, fault, &pin.checkpoint, self.note) {
            Ok(file) => format!(
                "do not use the file. Both checkpoints are in {}: send them to the project, the server's operator and the \
                 witnesses",
                shown_path(&file)
            ),
            Err(error) => format!(
                "do not use the file. Both checkpoints could not be written to a file ({error}): copy them from here, and \
                 send them to the project, the server's operator and the witnesses"
            ),
        };
        CliError::unverified(
            format!(
                "THE LOG {} CONTRADICTS ITSELF: {fault}\nseen before:\n{}\nshown now:\n{}",
                self.key.name(),
                indented(&seen),
                indented(&shown)
            ),
            hint,
        )
        .with_detail("seen_checkpoint", json!(seen))
        .with_detail("shown_checkpoint", json!(shown))
    }
}

fn does_not_continue(from: &TreeHead, to: &TreeHead) -> String {
    format!(
        "by the tiles that are shown, the log of size {} does not begin with the log of size {}. Either it has forked, or \
         the tiles were changed on the way",
        to.size, from.size
    )
}

fn indented(note: &str) -> String {
    note.trim_end().lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Writes the evidence to the configuration directory, under a name that is not taken.
fn write_evidence(key: &VerifierKey, fault: &str, seen: &str, shown: &Note) -> Result<PathBuf, CliError> {
    let time = now()?.to_whole_seconds();
    let text = format!(
        "Evidence of {time}: the log {} contradicts itself.\n{fault}\n\nIts key:\n{key}\n\nSeen before:\n\n{seen}\nShown \
         now:\n\n{shown}",
        key.name(),
    );
    let dir = ConfigDir::locate()?;
    // With the directory, which may not be there yet.
    drop(dir.lock()?);
    let stem = format!("log-fork-{}", time.to_string().replace(':', ""));
    let names = std::iter::once(format!("{stem}.txt")).chain((2..=100).map(|n| format!("{stem}-{n}.txt")));
    let free = names.map(|name| dir.file(&name)).find(|path| !path.exists());
    let path = free.unwrap_or_else(|| dir.file(&stem));
    write_new(&path, text.as_bytes(), 0o600)?;
    Ok(path)
}

/// The error for another log than the one that this computer knows, which no policy names.
pub(crate) fn other_log(error: OtherLog) -> CliError {
    let OtherLog { project, accepted, shown } = &error;
    CliError::unverified(
        format!(
            "THE LOG HAS CHANGED: the state of {project} was shown by the log {}, and is now shown by the log {}",
            shown_verifier_key(accepted),
            shown_verifier_key(shown)
        ),
        format!(
            "someone may want to show you another history. Only if the server's operator says, in a place that you trust, \
             that the log began anew: `countersign trust forget-log {}`",
            quote(accepted.name())
        ),
    )
    .with_detail("logs", json!([accepted.to_string(), shown.to_string()]))
}
