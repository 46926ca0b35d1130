//! Logs and witnesses in words, as messages and pages name them (D91).

use std::time::Duration;

use countersign_core::{
    documents::transparency::WitnessGroup,
    log::record::{LoggedState, Record, ReleaseRecord},
    values::{
        shown::{plural, quoted},
        verifier_key::VerifierKey,
    },
};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Shows a verifier key in full, because a name alone proves nothing (D39). One whose name could read as part of our
/// sentence is quoted.
pub fn shown_verifier_key(key: &VerifierKey) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    if key.name().chars().all(is_plain) { key.to_string() } else { quoted(&key.to_string()) }
}

/// Shows a group, as in `any 2 of 3 witnesses: NAME+ID+KEY (replays the rules), …`.
pub fn shown_witness_group(group: &WitnessGroup) -> String {
    let witness = |key: &VerifierKey| {
        let replays = if group.replays(key) { " (replays the rules)" } else { "" };
        format!("{}{replays}", shown_verifier_key(key))
    };
    let keys: Vec<String> = group.keys.iter().map(witness).collect();
    format!("{}: {}", witness_rule(group), keys.join(", "))
}

pub fn shown_witness_groups(groups: &[WitnessGroup]) -> String {
    groups.iter().map(shown_witness_group).collect::<Vec<_>>().join("; and ")
}

/// Says the rule of a group, as in `any 2 of 3 witnesses`.
pub fn witness_rule(group: &WitnessGroup) -> String {
    format!("any {} of {}", group.threshold, shown_witness_count(group.keys.len()))
}

/// Says what a record of the status map says.
pub fn shown_record(record: &Record) -> String {
    match record {
        Record::Release(ReleaseRecord { path, state: LoggedState::Complete, number, .. }) => {
            format!("{path} is complete, as number {number} of its project")
        }
        Record::Release(ReleaseRecord { path, state: LoggedState::Revoked(_), .. }) => {
            format!("{path} is revoked")
        }
        Record::Project(project) => format!(
            "{} has {} signers file{}, the newest of them {}, and {} completed release{}",
            project.path,
            project.history,
            plural(usize::try_from(project.history).unwrap_or(usize::MAX)),
            project.signers.to_prefixed(),
            project.completed,
            plural(usize::try_from(project.completed).unwrap_or(usize::MAX)),
        ),
    }
}

/// Says a count, as in `3 witnesses`.
pub fn shown_witness_count(count: usize) -> String {
    match count {
        1 => "1 witness".to_owned(),
        count => format!("{count} witnesses"),
    }
}

/// Says a count, as in `2 witnesses that replay the rules`.
pub fn shown_replaying_count(count: usize) -> String {
    match count {
        1 => "1 witness that replays the rules".to_owned(),
        count => format!("{count} witnesses that replay the rules"),
    }
}

/// Says an age in the largest unit that says it exactly, as in `7 days`.
pub fn shown_age(age: Duration) -> String {
    let seconds = age.as_secs();
    let units = [(DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1, "second")];
    let (unit, name) =
        units.into_iter().find(|(unit, _)| seconds.is_multiple_of(*unit)).unwrap_or((1, "second"));
    let count = seconds / unit;
    format!("{count} {name}{}", plural(usize::try_from(count).unwrap_or(usize::MAX)))
}
