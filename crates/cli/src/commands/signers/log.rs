//! The log and the witnesses of a signers file in the making (D91).

use std::collections::BTreeSet;

use countersign_core::documents::transparency::{Transparency, WitnessGroup};
use countersign_core::values::shown::shown_text;
use serde_json::{Value, json};

use crate::args::{GivenGroup, LogArgs};
use crate::words::error::CliError;

/// A day: long enough for witnesses that are down, short enough that a hidden revocation comes to light.
const DEFAULT_MAX_AGE_SECONDS: u64 = 86_400;

/// Keys are text, because the one reader of signers files says what is wrong with them.
#[derive(Debug, Default)]
pub(super) struct LogDraft {
    log: String,
    groups: Vec<GivenGroup>,
    /// The keys of witnesses that replay the rules (D213).
    replaying: BTreeSet<String>,
    max_age_seconds: Option<u64>,
}

impl LogDraft {
    pub(super) fn of(file: &Transparency) -> Self {
        let groups = file.witnesses();
        let given = |group: &WitnessGroup| GivenGroup {
            threshold: group.threshold,
            keys: group.keys.iter().map(ToString::to_string).collect(),
        };
        Self {
            log: file.log().to_string(),
            groups: groups.iter().map(given).collect(),
            replaying: groups.iter().flat_map(|group| &group.replaying).map(ToString::to_string).collect(),
            max_age_seconds: file.max_age().map(|age| age.as_secs()),
        }
    }

    /// What is not there is empty, or null.
    pub(super) fn to_json(&self) -> Value {
        let witness = |key: &String| match self.replaying.contains(key) {
            true => json!({ "key": key, "replaying": true }),
            false => json!(key),
        };
        let group = |group: &GivenGroup| {
            let keys: Vec<Value> = group.keys.iter().map(witness).collect();
            json!({ "threshold": group.threshold, "keys": keys })
        };
        let witnesses: Vec<Value> = self.groups.iter().map(group).collect();
        json!({ "log": self.log, "witnesses": witnesses, "max_age_seconds": self.max_age_seconds })
    }

    /// What is said of witnesses that stay, stays.
    fn set_replaying(&mut self, args: &LogArgs) -> Result<(), CliError> {
        for name in &args.replaying {
            let keys = self.find_witness(name)?;
            self.replaying.extend(keys);
        }
        for name in &args.not_replaying {
            let keys = self.find_witness(name)?;
            self.replaying.retain(|key| !keys.contains(key));
        }
        Ok(())
    }

    /// The keys of the witness that is given by its name, or the key that is given itself.
    fn find_witness(&self, name: &str) -> Result<Vec<String>, CliError> {
        let has_name = |key: &&String| *key == name || key.split('+').next() == Some(name);
        let keys = self.groups.iter().flat_map(|group| &group.keys);
        let found: Vec<String> = keys.filter(has_name).cloned().collect();
        if found.is_empty() {
            return Err(CliError::usage(
                format!("`{}` is not one of the witnesses", shown_text(name)),
                "name a witness of the log by its key or its name; --witness names all of them",
            ));
        }
        Ok(found)
    }

    /// Witnesses take the place of all that there were. A threshold alone changes that of an only group.
    fn set_witnesses(&mut self, args: &LogArgs) -> Result<(), CliError> {
        if !args.witnesses.0.is_empty() {
            self.groups = args.witness_groups()?;
            self.max_age_seconds = self.max_age_seconds.or(Some(DEFAULT_MAX_AGE_SECONDS));
            return Ok(());
        }
        match (args.witness_threshold.as_slice(), self.groups.as_mut_slice()) {
            ([], _) => Ok(()),
            ([threshold], [only]) => {
                only.threshold = *threshold;
                Ok(())
            }
            (_, groups) => Err(CliError::usage(
                format!(
                    "--witness-threshold alone needs one group of witnesses, and there are {}",
                    groups.len()
                ),
                "name the witnesses as well: --witness KEY… --witness-threshold N",
            )),
        }
    }
}

/// What the options say of the log.
pub(super) fn set_log(draft: &mut Option<LogDraft>, args: &LogArgs) -> Result<(), CliError> {
    if let Some(key) = &args.log {
        draft.get_or_insert_default().log.clone_from(key);
    }
    let lists = [&args.replaying, &args.not_replaying].map(Vec::is_empty);
    let has_witnesses = !args.witnesses.0.is_empty() || !args.witness_threshold.is_empty();
    let has_more = lists.contains(&false) || has_witnesses || args.max_age.is_some();
    match draft {
        None if has_more => Err(CliError::usage(
            "there are witnesses or an age of proofs, but no log",
            "name the log with --log KEY; a server with a log shows its key at /log/key",
        )),
        None => Ok(()),
        Some(log) => {
            log.set_witnesses(args)?;
            log.set_replaying(args)?;
            if let Some(age) = args.max_age {
                log.max_age_seconds = Some(age.as_secs());
            }
            Ok(())
        }
    }
}
