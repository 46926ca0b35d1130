//! What a proposed signers file changes in its log and witnesses (D92).

use std::{collections::BTreeSet, fmt};

use countersign_core::documents::transparency::Transparency;
use countersign_core::values::verifier_key::VerifierKey;

use crate::words::{
    shown_age, shown_replaying_count, shown_verifier_key, shown_witness_count, shown_witness_groups,
    witness_rule,
};

/// One change, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChange {
    text: String,
    is_alarming: bool,
}

impl LogChange {
    fn plain(text: String) -> Self {
        Self { text, is_alarming: false }
    }

    fn alarming(text: String) -> Self {
        Self { text, is_alarming: true }
    }

    /// A change of how easily the log can deceive, which stands first in the sentence.
    fn of_strength(is_weaker: bool, text: &str) -> Self {
        let mark = if is_weaker { "WEAKER" } else { "stronger" };
        Self { text: format!("{mark}: {text}"), is_alarming: is_weaker }
    }

    /// Whether it must not be overlooked: the log can deceive more easily, or it is another one.
    pub fn is_alarming(&self) -> bool {
        self.is_alarming
    }
}

impl fmt::Display for LogChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Lists the changes of the log and its witnesses. Empty if nothing changes but the order of groups and witnesses,
/// which means nothing.
pub fn list_log_changes(before: Option<&Transparency>, after: Option<&Transparency>) -> Vec<LogChange> {
    match (before, after) {
        (None, None) => Vec::new(),
        (None, Some(after)) => vec![LogChange::plain(added_text(after))],
        (Some(before), None) => vec![LogChange::alarming(format!(
            "WEAKER: a log no longer proves which release was completed last and that it is not revoked; it was {}",
            shown_verifier_key(before.log())
        ))],
        (Some(before), Some(after)) => compare(before, after),
    }
}

fn added_text(added: &Transparency) -> String {
    let log = shown_verifier_key(added.log());
    match added.max_age() {
        None => format!("log: {log}; no witnesses"),
        Some(age) => {
            let (groups, age) = (shown_witness_groups(added.witnesses()), shown_age(age));
            format!("log: {log}; {groups}; a proof can be at most {age} old")
        }
    }
}

fn compare(before: &Transparency, after: &Transparency) -> Vec<LogChange> {
    let mut changes = Vec::new();
    if before.log() != after.log() {
        let [was, is] = [before, after].map(|file| shown_verifier_key(file.log()));
        changes.push(LogChange::alarming(format!(
            "WARNING: another log proves the newest state: it was {was}, and is to be {is}"
        )));
    }
    let [was, is] = [before, after].map(|file| file.policy().tolerance());
    let needed = [was, is].map(|found| found.map_or(0, |found| found.needed));
    changes.extend(compare_needed(needed));
    // Without witnesses, what is needed says it all.
    if let (Some(was), Some(is)) = (was, is) {
        let colluders =
            [was.must_collude, is.must_collude].map(|count| with_the_log(count, shown_witness_count));
        let liars = [was.must_lie, is.must_lie].map(|count| with_the_log(count, shown_replaying_count));
        let deceits = [
            (is.must_collude < was.must_collude, colluders, "different people different states"),
            (is.must_lie < was.must_lie, liars, "everyone a false state"),
        ];
        let changed = deceits.into_iter().filter(|(_, [was, is], _)| was != is);
        changes.extend(changed.map(|(is_weaker, [was, is], what)| {
            LogChange::of_strength(is_weaker, &format!("{is} can show {what}; before, {was} could"))
        }));
    }
    let [old, new] = [before, after].map(witnesses_of);
    let joined = new.difference(&old).map(|key| format!("{} joins as witness", shown_verifier_key(key)));
    let left = old.difference(&new).map(|key| format!("{} leaves, and was witness", shown_verifier_key(key)));
    changes.extend(joined.chain(left).map(LogChange::plain));
    let [replayed, replaying] = [before, after].map(|file| file.policy().replaying_keys());
    for witness in old.intersection(&new) {
        let [before, replays] = [&replayed, &replaying].map(|keys| keys.contains(witness));
        if before != replays {
            let (key, said) = (shown_verifier_key(witness), if replays { "said" } else { "no longer said" });
            changes.push(LogChange::plain(format!("the witness {key} is {said} to replay the rules")));
        }
    }
    if is.is_some() {
        let groups = groups_text(before, after).map(|text| format!("witnesses: {text}"));
        changes.extend(groups.map(LogChange::plain));
    }
    match (before.max_age(), after.max_age()) {
        (None, Some(age)) => {
            changes.push(LogChange::plain(format!("a proof can be at most {} old", shown_age(age))));
        }
        (Some(before), Some(after)) if before != after => {
            let text = format!("a proof can be {} old; before, {}", shown_age(after), shown_age(before));
            changes.push(LogChange::of_strength(after > before, &text));
        }
        (_, _) => {}
    }
    changes
}

/// Compares the fewest witnesses that must have cosigned.
fn compare_needed([before, after]: [usize; 2]) -> Option<LogChange> {
    if before == after {
        return None;
    }
    if after == 0 {
        return Some(LogChange::alarming(format!(
            "WEAKER: no witness needs to have seen a state, and no proof has a time; before, it took {}",
            shown_witness_count(before)
        )));
    }
    let was = if before == 0 { "none".to_owned() } else { before.to_string() };
    let text = format!("it takes {} to prove a state; before, it took {was}", shown_witness_count(after));
    Some(LogChange::of_strength(after < before, &text))
}

fn witnesses_of(file: &Transparency) -> BTreeSet<&VerifierKey> {
    file.witnesses().iter().flat_map(|group| &group.keys).collect()
}

/// Says the groups, if they differ in more than the witnesses that join or leave an only group.
fn groups_text(before: &Transparency, after: &Transparency) -> Option<String> {
    match (before.witnesses(), after.witnesses()) {
        ([was], [is]) => {
            let [was, is] = [was, is].map(witness_rule);
            (was != is).then(|| format!("{was} becomes {is}"))
        }
        (_, groups) => (sort_groups(before) != sort_groups(after)).then(|| shown_witness_groups(groups)),
    }
}

/// The groups by what they mean, whatever their order.
fn sort_groups(file: &Transparency) -> BTreeSet<(usize, BTreeSet<&VerifierKey>)> {
    file.witnesses().iter().map(|group| (group.threshold, group.keys.iter().collect())).collect()
}

fn with_the_log(count: usize, shown: fn(usize) -> String) -> String {
    match count {
        0 => "the log alone".to_owned(),
        count => format!("the log with {}", shown(count)),
    }
}
