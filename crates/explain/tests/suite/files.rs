//! Signers files in a few words.

use countersign_core::{documents::signers::SignersFile, values::key::PublicKey};
use countersign_testing::key;

/// A threshold, and people by number.
pub(crate) type Groups = Vec<(usize, Vec<u8>)>;

/// Groups of people as [`file`] reads them.
pub(crate) fn spell(groups: &Groups, member: impl Fn(&u8) -> String) -> String {
    let group = |(threshold, members): &(usize, Vec<u8>)| {
        format!("{threshold}: {}", members.iter().map(&member).collect::<Vec<_>>().join(", "))
    };
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

/// Roles, groups, and people by number with an optional name: `artifact 2: alice 1, bob 2; 1: carol 3 / master 1: 4`.
/// Builders follow what they make: `rebuilds *.zip by 1: carol 3`, or `required *.zip by 1: carol 3`. `delay 72` has
/// rotations wait.
pub(crate) fn file(text: &str) -> SignersFile {
    file_at("2026-01-31T10:00:00Z", text)
}

/// The text of such a file.
pub(crate) fn text_at(time: &str, text: &str) -> String {
    let roles: Vec<String> = text.split(" / ").map(role_text).collect();
    format!(r#"{{"version": 1, "timestamp": "{time}", {}}}"#, roles.join(", "))
}

pub(crate) fn file_at(time: &str, text: &str) -> SignersFile {
    let text = text_at(time, text);
    SignersFile::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(crate) fn role_text(role: &str) -> String {
    let (role, groups) = role.split_once(' ').expect("a role");
    if role == "delay" {
        return format!(r#""rotation_delay_hours": {groups}"#);
    }
    if role == "registrars" {
        let members: Vec<String> = groups.split(", ").map(member_text).collect();
        return format!(r#""registrars": [{}]"#, members.join(", "));
    }
    if role == "rebuilds" || role == "required" {
        let (files, groups) = groups.split_once(" by ").expect("patterns and builders");
        let files: Vec<String> = files.split(", ").map(|pattern| format!("{pattern:?}")).collect();
        let groups: Vec<String> = groups.split("; ").map(group_text).collect();
        return format!(
            r#""rebuilds": {{"builders": [{}], "files": [{}], "required": {}}}"#,
            groups.join(", "),
            files.join(", "),
            role == "required"
        );
    }
    let field = if role == "artifact" { "artifact_signers".to_owned() } else { format!("{role}_keys") };
    format!(r#""{field}": [{}]"#, groups.split("; ").map(group_text).collect::<Vec<_>>().join(", "))
}

fn group_text(group: &str) -> String {
    let (threshold, members) = group.split_once(": ").expect("a threshold");
    let members: Vec<String> = members.split(", ").map(member_text).collect();
    format!(r#"{{"threshold": {threshold}, "signers": [{}]}}"#, members.join(", "))
}

fn member_text(member: &str) -> String {
    let (name, number) = member.rsplit_once(' ').unwrap_or(("", member));
    let key = public(number.parse().expect("a person's number"));
    let name = if name.is_empty() { String::new() } else { format!(r#", "name": {name:?}"#) };
    format!(r#"{{"kind": "key", "data": {{"pubkey": "{key}"}}{name}}}"#)
}

pub(crate) fn public(n: u8) -> PublicKey {
    key(n).public_key()
}
