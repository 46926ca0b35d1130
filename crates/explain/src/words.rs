//! Signers, releases and what speaks against them in words: the same in messages and on pages (D238, D239).

use std::time::Duration;

use countersign_core::documents::layout;
use countersign_core::documents::signers::{FilePattern, Group, Role, Signer, SignersFile};
use countersign_core::documents::transparency::WitnessGroup;
use countersign_core::log::record::{LoggedState, Record, ReleaseRecord};
use countersign_core::rules::quorum::Tally;
use countersign_core::values::shown::{marked_name, plural, quoted, shown_text};
use countersign_core::values::{path::RepoPath, verifier_key::VerifierKey};

/// A name never stands without its key (D39).
pub fn shown_signer(signer: &Signer) -> String {
    match shown_signer_name(signer) {
        None => signer.key.to_string(),
        Some(name) => format!("{name} ({})", signer.key),
    }
}

/// The name alone, for where the key stands beside it. One that is more than a plain word is quoted: it could otherwise
/// read as part of our sentence, or bring along a key of its own choice.
pub fn shown_signer_name(signer: &Signer) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+');
    let name = signer.name.as_deref().filter(|name| !name.is_empty())?;
    Some(if name.chars().all(is_plain) { shown_text(name) } else { quoted(name) })
}

pub fn shown_signers(signers: &[Signer]) -> String {
    signers.iter().map(shown_signer).collect::<Vec<_>>().join(", ")
}

/// Shows a group, as in `any 2 of 3 keys: alice (svc-pub:…), …`.
pub fn shown_group(group: &Group) -> String {
    let Group { threshold, signers } = group;
    format!("{}: {}", rule_text(*threshold, signers.len()), shown_signers(signers))
}

pub fn shown_groups(groups: &[Group]) -> String {
    groups.iter().map(shown_group).collect::<Vec<_>>().join("; and ")
}

/// Says what a group needs, as in `any 2 of 3 keys`.
pub fn rule_text(threshold: usize, size: usize) -> String {
    format!("any {threshold} of {size} key{}", plural(size))
}

/// Says a number of keys or witnesses, whichever they are, as in `any 2`.
pub fn any_text(count: usize) -> String {
    if count == 0 { "none".to_owned() } else { format!("any {count}") }
}

/// The most signers that a sentence names.
const MOST_NAMED: usize = 8;

/// Lists what signers are called, as in `alice, bob or carol`. A long list ends with a number.
pub fn list_called<'a>(called: impl Iterator<Item = &'a str>, last: &str) -> String {
    let mut called: Vec<String> = called.map(str::to_owned).collect();
    if called.len() > MOST_NAMED {
        let others = called.split_off(MOST_NAMED - 1).len();
        called.push(format!("{others} others"));
    }
    let end = called.pop().unwrap_or_default();
    if called.is_empty() { end } else { format!("{}{last}{end}", called.join(", ")) }
}

/// What a person with a key in a role is called.
pub fn role_title(role: Role) -> &'static str {
    match role {
        Role::Artifact => "artifact signer",
        Role::Admin => "admin",
        Role::Master => "master",
        Role::Revocation => "revoker",
        Role::Builder => "builder",
    }
}

/// What a person with a key in these roles is, as in `artifact signer, admin and revoker`.
pub fn role_titles(roles: &[Role]) -> String {
    list_called(roles.iter().copied().map(role_title), " and ")
}

// What is wanted of builders (D259), in words.

/// Says the files that builders make, as in `"*.tar.gz", "*.zip"`.
pub fn rebuilt_files_text(files: &[FilePattern]) -> String {
    if files.is_empty() {
        return "all files of a release".to_owned();
    }
    files.iter().map(|pattern| quoted(pattern.as_str())).collect::<Vec<_>>().join(", ")
}

/// What a file wants of builders, and what their keys cannot do. Empty for a file without them.
pub fn describe_rebuilds(file: &SignersFile) -> Vec<String> {
    let Some(rebuilds) = file.rebuilds() else { return Vec::new() };
    let effect = match rebuilds.required {
        true => "clients refuse a release until enough builders have reproduced it",
        false => "clients show what builders got, and refuse nothing for it",
    };
    vec![
        "Builders state what they get from the source, and their keys can do nothing else:".to_owned(),
        format!("  they make {}", rebuilt_files_text(&rebuilds.files)),
        format!("  {effect}"),
        "  a thief can state something false, and with enough keys call a false file reproduced; only signers can sign it"
            .to_owned(),
    ]
}

// What a rotation delay is good for (D130), in words.

pub fn shown_hours(hours: u64) -> String {
    match hours {
        1 => "1 hour".to_owned(),
        hours if hours > 48 && hours.is_multiple_of(24) => format!("{hours} hours ({} days)", hours / 24),
        hours => format!("{hours} hours"),
    }
}

/// What the delay of a file protects against, and what it does not. Empty for a file without one.
pub fn describe_delay(file: &SignersFile) -> Vec<String> {
    let Some(hours) = file.rotation_delay_hours() else { return Vec::new() };
    let hours = shown_hours(hours);
    let mut lines = vec![format!("Rotations by admins wait {hours} once all have signed:")];
    if file.master_groups().is_empty() {
        lines.push(
            "  everyone is told meanwhile, but there are no master keys, so no one can veto".to_owned(),
        );
        lines.push(
            "  each admin can replace what waits: one stolen admin key can hold up every rotation".to_owned(),
        );
    } else {
        lines.push(
            "  against stolen admin keys: everyone is told, and the masters can veto meanwhile \
             (`countersign veto`)"
                .to_owned(),
        );
        lines.push("  a rotation that the masters sign as well does not wait".to_owned());
        lines.push(
            "  each admin can replace what waits, until one master signs it: one stolen admin key holds up the others"
                .to_owned(),
        );
    }
    lines.push("  a shorter delay, none, or other masters wait just as long".to_owned());
    lines.push(
        "  not against a server that lies about times: for that, name a log with witnesses, and run \
         `countersign monitor`"
            .to_owned(),
    );
    lines
}

// Logs and witnesses in words, as messages and pages name them (D91).

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
    format!("any {} of {}", group.threshold, shown_witness_count(group.witnesses()))
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
    if count == 1 { "1 witness".to_owned() } else { format!("{count} witnesses") }
}

/// Says a count, as in `2 witnesses that replay the rules`.
pub fn shown_replaying_count(count: usize) -> String {
    let verb = if count == 1 { "replays" } else { "replay" };
    format!("{} that {verb} the rules", shown_witness_count(count))
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

/// What speaks against a release that is not revoked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubts {
    /// How far a revocation has come that waits for more signatures, and its reason.
    pub begun: Option<(Tally, String)>,
    /// What builders got that is something else, in words (D262).
    pub different: Option<String>,
    /// What signers hold against it, the oldest first.
    pub objections: Vec<String>,
}

impl Doubts {
    /// Says the gravest doubt, as in `1 of 2 revokers want it revoked: "wrong build"`.
    pub fn text(&self) -> Option<String> {
        if let Some((tally, reason)) = &self.begun {
            let Tally { collected, needed } = tally;
            return Some(format!("{collected} of {needed} revokers want it revoked: {}", quoted(reason)));
        }
        if let Some(different) = &self.different {
            return Some(different.clone());
        }
        Some(format!("{}: {}", count_objections(self.objections.len())?, quoted(self.objections.first()?)))
    }
}

/// Says how many signers object, as in `1 signer objects`; `None` if none does.
pub fn count_objections(signers: usize) -> Option<String> {
    match signers {
        0 => None,
        1 => Some("1 signer objects".to_owned()),
        many => Some(format!("{many} signers object")),
    }
}

/// A path as an address, as in `https://github.com/acme/app`. Letters that can look like others are marked.
pub fn shown_url(path: &RepoPath) -> String {
    let Some((server, rest)) = path.split_server() else { return marked_name(path.as_str()) };
    marked_name(&if rest.is_empty() { server } else { format!("{server}/{rest}") })
}

/// A release by its name and its project, as in `v1.1 of https://github.com/acme/app`.
pub fn shown_release(index: &RepoPath, project: &RepoPath) -> String {
    format!("{} of {}", marked_name(&layout::release_name(index, project)), shown_url(project))
}
