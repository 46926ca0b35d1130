//! What a proposed signers file changes in its log and witnesses (D92).

use std::{collections::BTreeSet, fmt, time::Duration};

use countersign_core::documents::transparency::{Transparency, WitnessGroup};
use countersign_core::values::verifier_key::VerifierKey;

use crate::words::{
    shown_age, shown_replaying_count, shown_verifier_key, shown_witness_count, shown_witness_groups,
    witness_rule,
};

/// One change; `Display` says it in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogChange {
    /// A log was named where there was none before.
    Added(Transparency),
    Removed(Transparency),
    OtherLog {
        before: VerifierKey,
        after: VerifierKey,
    },
    /// The fewest witnesses that must have cosigned.
    Needed {
        before: usize,
        after: usize,
    },
    /// The fewest witnesses that must collude with the log, so that it can show two states.
    Collusion {
        before: usize,
        after: usize,
    },
    /// The fewest witnesses that replay the rules and must collude with the log, so that it can show a false state (D213).
    Lie {
        before: usize,
        after: usize,
    },
    WitnessJoined(VerifierKey),
    WitnessLeft(VerifierKey),
    /// A change of what the file says of a witness that stays.
    Replaying {
        witness: VerifierKey,
        replays: bool,
    },
    WitnessGroups {
        before: Vec<WitnessGroup>,
        after: Vec<WitnessGroup>,
    },
    MaxAge {
        before: Option<Duration>,
        after: Duration,
    },
}

/// Lists the changes of the log and its witnesses. Empty if nothing changes but the order of groups and witnesses,
/// which means nothing.
pub fn list_log_changes(before: Option<&Transparency>, after: Option<&Transparency>) -> Vec<LogChange> {
    match (before, after) {
        (None, None) => Vec::new(),
        (None, Some(after)) => vec![LogChange::Added(after.clone())],
        (Some(before), None) => vec![LogChange::Removed(before.clone())],
        (Some(before), Some(after)) => compare(before, after),
    }
}

fn compare(before: &Transparency, after: &Transparency) -> Vec<LogChange> {
    let mut changes = Vec::new();
    if before.log() != after.log() {
        changes.push(LogChange::OtherLog { before: before.log().clone(), after: after.log().clone() });
    }
    let [was, is] = [before, after].map(|file| file.policy().tolerance());
    let [needed_before, needed_after] = [was, is].map(|found| found.map_or(0, |found| found.needed));
    if needed_before != needed_after {
        changes.push(LogChange::Needed { before: needed_before, after: needed_after });
    }
    // Without witnesses, what is needed says it all.
    if let (Some(was), Some(is)) = (was, is)
        && was.must_collude != is.must_collude
    {
        changes.push(LogChange::Collusion { before: was.must_collude, after: is.must_collude });
    }
    if let (Some(was), Some(is)) = (was, is)
        && was.must_lie != is.must_lie
    {
        changes.push(LogChange::Lie { before: was.must_lie, after: is.must_lie });
    }
    let [old, new] = [before, after].map(witnesses_of);
    changes.extend(new.difference(&old).map(|key| LogChange::WitnessJoined((*key).clone())));
    changes.extend(old.difference(&new).map(|key| LogChange::WitnessLeft((*key).clone())));
    let [replayed, replaying] = [before, after].map(|file| file.policy().replaying_keys());
    for witness in old.intersection(&new) {
        let [before, replays] = [&replayed, &replaying].map(|keys| keys.contains(witness));
        if before != replays {
            changes.push(LogChange::Replaying { witness: (*witness).clone(), replays });
        }
    }
    if is.is_some() && has_other_groups(before, after) {
        let [before, after] = [before, after].map(|file| file.witnesses().to_vec());
        changes.push(LogChange::WitnessGroups { before, after });
    }
    if let Some(age) = after.max_age()
        && before.max_age() != Some(age)
    {
        changes.push(LogChange::MaxAge { before: before.max_age(), after: age });
    }
    changes
}

fn witnesses_of(file: &Transparency) -> BTreeSet<&VerifierKey> {
    file.witnesses().iter().flat_map(|group| &group.keys).collect()
}

/// Whether they differ in more than the witnesses that join or leave an only group.
fn has_other_groups(before: &Transparency, after: &Transparency) -> bool {
    match (before.witnesses(), after.witnesses()) {
        ([before], [after]) => witness_rule(before) != witness_rule(after),
        (_, _) => sort_groups(before) != sort_groups(after),
    }
}

/// The groups by what they mean, whatever their order.
fn sort_groups(file: &Transparency) -> BTreeSet<(usize, BTreeSet<&VerifierKey>)> {
    file.witnesses().iter().map(|group| (group.threshold, group.keys.iter().collect())).collect()
}

impl LogChange {
    /// Whether it must not be overlooked: the log can deceive more easily, or it is another one.
    pub fn is_alarming(&self) -> bool {
        match self {
            Self::Removed(_) | Self::OtherLog { .. } => true,
            Self::Needed { before, after }
            | Self::Collusion { before, after }
            | Self::Lie { before, after } => after < before,
            Self::MaxAge { before, after } => before.is_some_and(|before| *after > before),
            Self::Added(_)
            | Self::WitnessJoined(_)
            | Self::WitnessLeft(_)
            | Self::Replaying { .. }
            | Self::WitnessGroups { .. } => false,
        }
    }

    fn mark(&self) -> &'static str {
        if self.is_alarming() { "WEAKER: " } else { "stronger: " }
    }
}

impl fmt::Display for LogChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(found) => {
                write!(f, "log: {}", shown_verifier_key(found.log()))?;
                match found.max_age() {
                    None => f.write_str("; no witnesses"),
                    Some(age) => write!(
                        f,
                        "; {}; a proof can be at most {} old",
                        shown_witness_groups(found.witnesses()),
                        shown_age(age)
                    ),
                }
            }
            Self::Removed(found) => write!(
                f,
                "WEAKER: a log no longer proves which release was completed last and that it is not revoked; it was {}",
                shown_verifier_key(found.log())
            ),
            Self::OtherLog { before, after } => write!(
                f,
                "WARNING: another log proves the newest state: it was {}, and is to be {}",
                shown_verifier_key(before),
                shown_verifier_key(after)
            ),
            Self::Needed { before, after: 0 } => write!(
                f,
                "WEAKER: no witness needs to have seen a state, and no proof has a time; before, it took {}",
                shown_witness_count(*before)
            ),
            Self::Needed { before: 0, after } => write!(
                f,
                "{}it takes {} to prove a state; before, it took none",
                self.mark(),
                shown_witness_count(*after)
            ),
            Self::Needed { before, after } => {
                let (mark, after) = (self.mark(), shown_witness_count(*after));
                write!(f, "{mark}it takes {after} to prove a state; before, it took {before}")
            }
            Self::Collusion { before, after } => {
                let who = |count: usize| with_the_log(count, shown_witness_count);
                let (mark, before, after) = (self.mark(), who(*before), who(*after));
                write!(f, "{mark}{after} can show different people different states; before, {before} could")
            }
            Self::Lie { before, after } => {
                let who = |count: usize| with_the_log(count, shown_replaying_count);
                let (mark, before, after) = (self.mark(), who(*before), who(*after));
                write!(f, "{mark}{after} can show everyone a false state; before, {before} could")
            }
            Self::WitnessJoined(key) => write!(f, "{} joins as witness", shown_verifier_key(key)),
            Self::WitnessLeft(key) => write!(f, "{} leaves, and was witness", shown_verifier_key(key)),
            Self::Replaying { witness, replays: true } => {
                write!(f, "the witness {} is said to replay the rules", shown_verifier_key(witness))
            }
            Self::Replaying { witness, replays: false } => {
                write!(f, "the witness {} is no longer said to replay the rules", shown_verifier_key(witness))
            }
            Self::WitnessGroups { before, after } => match (before.as_slice(), after.as_slice()) {
                ([before], [after]) => {
                    write!(f, "witnesses: {} becomes {}", witness_rule(before), witness_rule(after))
                }
                (_, after) => write!(f, "witnesses: {}", shown_witness_groups(after)),
            },
            Self::MaxAge { before: None, after } => {
                write!(f, "a proof can be at most {} old", shown_age(*after))
            }
            Self::MaxAge { before: Some(before), after } => {
                let (mark, before, after) = (self.mark(), shown_age(*before), shown_age(*after));
                write!(f, "{mark}a proof can be {after} old; before, {before}")
            }
        }
    }
}

fn with_the_log(count: usize, shown: fn(usize) -> String) -> String {
    match count {
        0 => "the log alone".to_owned(),
        count => format!("the log with {}", shown(count)),
    }
}
