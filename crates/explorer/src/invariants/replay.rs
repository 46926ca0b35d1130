//! The replay of `store`: it accepts every step, and refuses it when one byte of what the step wrote is another.

use std::{collections::BTreeSet, sync::Arc};

use countersign_core::{rules::snapshot::Change, values::path::RepoPath, values::time::Timestamp};
use countersign_forge::forges::speaks_for;
use countersign_store::audit::replay::{CommitStep, Replay};
use serde_json::Value;

use crate::contents::{Contents, State};
use crate::{invariants::Held, invariants::Invariant, view::Reads, view::View};

/// A step as the repository records it.
#[derive(Debug, Clone, Copy)]
pub struct RecordedStep<'a> {
    pub before: &'a State,
    pub change: &'a Change,
    pub now: Timestamp,
}

/// Values that the server alone knows. Nothing in a commit proves them, so a replay accepts any (docs/fsck.md).
const UNPROVEN: [&str; 4] = ["collected_at", "retrieved_at", "retrieval_url", "mirrored_on"];

impl RecordedStep<'_> {
    /// Whether a replay accepts that the step made this change.
    fn replays(&self, contents: &mut Contents, change: &Change) -> Result<bool, String> {
        let after = contents.apply(self.before, change)?;
        let touched: BTreeSet<RepoPath> = self.change.files.keys().cloned().collect();
        let message = self.change.recorded_message();
        let step = CommitStep { message: &message, time: self.now, touched: &touched, is_first: false };
        let (contents, reads) = (&*contents, &Reads::default());
        let view = |state| View { contents, state, reads };
        let replayed = Replay::new(speaks_for).check(&view(self.before), &view(&after), &step);
        Ok(replayed.is_ok())
    }

    pub fn check_repeats(&self, contents: &mut Contents) -> Held {
        match self.replays(contents, self.change) {
            Ok(true) => Ok(()),
            Ok(false) => Invariant::ReplayRepeats.broken("a replay refuses what the rules did"),
            Err(error) => Invariant::ReplayRepeats.broken(error),
        }
    }

    /// Changes one byte of one file that the step wrote. `at` says which.
    pub fn check_byte(&self, contents: &mut Contents, at: u64) -> Held {
        let written: Vec<(&RepoPath, &Arc<[u8]>)> =
            self.change.files.iter().filter_map(|(path, bytes)| Some((path, bytes.as_ref()?))).collect();
        let total: usize = written.iter().map(|(_, bytes)| bytes.len()).sum();
        if total == 0 {
            return Ok(());
        }
        let mut at = usize::try_from(at % total as u64).expect("below a length");
        let written = written.into_iter().find(|(_, bytes)| {
            let is_here = at < bytes.len();
            if !is_here {
                at -= bytes.len();
            }
            is_here
        });
        let Some((path, bytes)) = written else { return Ok(()) };
        let mut other = bytes.to_vec();
        // A digit stays a digit and a letter a letter, so that not only the syntax breaks.
        other[at] ^= 1;
        let mut change = self.change.clone();
        change.write(path.clone(), other.clone());
        let accepted = self.replays(contents, &change);
        if accepted != Ok(true) || self.is_unproven(path, bytes, &other) {
            return Ok(());
        }
        let title = self.change.message.lines().next().unwrap_or_default();
        Invariant::ReplayRepeats.broken(format!("byte {at} of {path} is another, and {title:?} is accepted"))
    }

    pub fn written_bytes(&self) -> u64 {
        self.change.files.values().flatten().map(|bytes| bytes.len() as u64).sum()
    }

    /// Whether the change is in nothing but what the server alone knows.
    fn is_unproven(&self, path: &RepoPath, bytes: &[u8], other: &[u8]) -> bool {
        let is_index = path.as_str().ends_with("/svc.index.json");
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
        let (Some(mut bytes), Some(mut other)) = (parse(bytes), parse(other)) else { return false };
        // What an index lists was downloaded once; the artifact signers vouch for it.
        if is_index {
            return true;
        }
        forget(&mut bytes);
        forget(&mut other);
        // When signers took effect that had waited, the clock alone said.
        if path.as_str().contains("/svc.signers.history/") && bytes.get("agreed_at").is_some() {
            (bytes["timestamp"], other["timestamp"]) = (Value::Null, Value::Null);
        }
        bytes == other
    }
}

fn forget(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !UNPROVEN.contains(&name.as_str()));
            fields.values_mut().for_each(forget);
        }
        Value::Array(entries) => entries.iter_mut().for_each(forget),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
