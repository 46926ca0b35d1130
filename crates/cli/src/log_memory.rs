//! Holds a log to what it has shown before (D98). If it contradicts itself, both checkpoints are kept as evidence.

use std::path::PathBuf;

use countersign_core::{
    log::{
        checkpoint::SignedCheckpoint,
        note::Note,
        tree::{BadProof, TreeHead},
    },
    proof::{
        log_pin::{Continuation, LogPin, LogPinFault},
        trust::OtherLog,
    },
    values::{path::RepoPath, verifier_key::VerifierKey},
};
use countersign_explain::logs::shown_verifier_key;
use serde_json::json;

use crate::{
    client::{ServerClient, now},
    config_dir::ConfigDir,
    error::CliError,
    files::write_new,
    log_tiles::{NotContinued, check_continuation},
    output::quote,
    paths::shown_path,
    trust::TrustFile,
};

/// A checkpoint that a log has signed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogSighting<'a> {
    pub(crate) key: &'a VerifierKey,
    pub(crate) note: &'a Note,
    /// Known witnesses, whose cosignatures verify.
    pub(crate) witnesses: &'a [VerifierKey],
    /// Whether enough of them prove its time.
    pub(crate) is_timed: bool,
}

/// What may be remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Continuity {
    Proven,
    /// There was no network to ask.
    Unknown,
}

impl LogSighting<'_> {
    /// Checks that the log continues what was seen of it. Without a client, only what needs no tiles.
    pub(crate) async fn check(
        &self,
        trust: &TrustFile,
        client: Option<&ServerClient>,
    ) -> Result<Continuity, CliError> {
        let store = trust.read()?;
        let Some(pin) = store.logs.get(&self.key.to_string()) else { return Ok(Continuity::Proven) };
        self.check_against(pin, client).await
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
        let (from, to) = match pin.compare(&shown, self.witnesses, self.is_timed) {
            Ok(Continuation::Same) => return Ok(Continuity::Proven),
            Ok(Continuation::Grown { from, to }) => (from, to),
            Ok(Continuation::Shrunk { shown, seen }) => (shown, seen),
            Err(fault @ (LogPinFault::Fork(_) | LogPinFault::WitnessWentBack { .. })) => {
                return Err(self.forked(pin, &fault.to_string()));
            }
            Err(fault @ LogPinFault::Unusable(_)) => return Err(unusable(fault.to_string())),
            Err(LogPinFault::Smaller { .. }) if client.is_none() => return Ok(Continuity::Unknown),
            Err(fault @ LogPinFault::Smaller { .. }) => {
                return Err(CliError::unverified(
                    format!("the log {} went back: {fault}", self.key.name()),
                    "run it again in a minute. If that does not help, the server hides its newest state, or was restored \
                     from a backup: ask its operator",
                ));
            }
        };
        let Some(client) = client else { return Ok(Continuity::Unknown) };
        match check_continuation(client, &from, &to).await {
            Ok(()) => Ok(Continuity::Proven),
            Err(NotContinued::Unknown(error)) => Err(error),
            Err(NotContinued::Contradiction(BadProof)) => {
                Err(self.forked(pin, &does_not_continue(&from, &to)))
            }
        }
    }

    /// Remembers the log of a project and its checkpoint, if there is something new. A directory that cannot be written to
    /// is told by the caller.
    pub(crate) fn remember(&self, trust: &TrustFile, project: &RepoPath) -> Result<(), CliError> {
        let time = now()?;
        let mut after = trust.read()?;
        let before = after.clone();
        after.remember_log(project, self.key, self.note, time);
        if after == before {
            return Ok(());
        }
        trust.change(|store| store.remember_log(project, self.key, self.note, time))
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

/// In the configuration directory, under a name that is not taken.
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

/// Another log than the one that this computer knows, which no policy names.
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
