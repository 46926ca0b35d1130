//! Says what a signers file changes, in sentences. No key stands twice in one, and none repeats what the others say.

use std::collections::BTreeSet;

use countersign_core::documents::signers::{Group, Role, Signer};
use countersign_core::values::key::PublicKey;
use countersign_explain::difference::{GroupChange, SignersChange, key_format_words};
use countersign_explain::words::{role_titles, shown_signer_name};
use maud::{Markup, html};

use crate::web::parts;

pub(super) fn change_list(changes: &[SignersChange]) -> Markup {
    // These have a line of their own, which says what roles they gain or lose.
    let told = changes.iter().filter_map(|change| match change {
        SignersChange::Joined { signer, .. }
        | SignersChange::Left { signer, .. }
        | SignersChange::RolesChanged { signer, .. } => Some(signer.key),
        _ => None,
    });
    let told = told.collect();
    let lines: Vec<_> =
        changes.iter().filter_map(|change| Some((change.is_alarming(), describe(change, &told)?))).collect();
    html! {
        ul.changes {
            @for (is_alarming, line) in &lines { li.wrap.alarm[*is_alarming] { (line) } }
            @if lines.is_empty() { li { "Only its date." } }
        }
    }
}

/// Describes a change; `None` if other lines say all of it.
fn describe(change: &SignersChange, told: &BTreeSet<PublicKey>) -> Option<Markup> {
    Some(match change {
        SignersChange::Founded { role, groups: Some(groups) } => {
            html! { (parts::role_name(*role)) ": " (group_list(groups)) }
        }
        SignersChange::Founded { role, groups: None } => html! { (left_to_default(*role)) },
        SignersChange::NameMoved { from, to } => html! {
            "WARNING: the name " (name(to)) " now stands for another key. It was " (parts::key(from.key))
            ", and is to be " (parts::key(to.key)) "."
        },
        SignersChange::Weakened { .. }
        | SignersChange::Delay { .. }
        | SignersChange::RebuiltFiles { .. }
        | SignersChange::RebuildsRequired(_)
        | SignersChange::Servers(_)
        | SignersChange::Log(_)
        | SignersChange::Formats(_) => html! { (change) },
        SignersChange::RegistrarJoined(signer) => {
            html! { (parts::who(signer)) " becomes a registrar: it can register new releases, and nothing else" }
        }
        SignersChange::RegistrarLeft(signer) => {
            html! { (parts::who(signer)) " is no longer a registrar" }
        }
        SignersChange::KeyFormat(signer) => {
            html! { (parts::who(signer)) " " (key_format_words(signer.format)) }
        }
        SignersChange::Joined { signer, roles } => {
            html! { (parts::who(signer)) " joins as " (role_titles(roles)) }
        }
        SignersChange::Left { signer, roles } => {
            html! { (parts::who(signer)) " leaves, and was " (role_titles(roles)) }
        }
        SignersChange::RolesChanged { signer, gained, lost } => html! {
            (parts::who(signer)) " stays"
            @if !gained.is_empty() { ", becomes " (role_titles(gained)) }
            @if !lost.is_empty() { ", is no longer " (role_titles(lost)) }
        },
        SignersChange::Renamed { before, after } => match (&before.name, &after.name) {
            (None, _) => html! { (parts::key(before.key)) " gets the name " (name(after)) },
            (Some(_), None) => html! { (parts::who(before)) " loses its name" },
            (Some(_), Some(_)) => html! { (parts::who(before)) " gets another name: " (name(after)) },
        },
        SignersChange::GroupChanged(change) => return describe_group_change(change, told),
        SignersChange::GroupAdded { role, group } => {
            html! { (parts::role_name(*role)) ": one more group must agree, " (one_group(group)) }
        }
        SignersChange::GroupRemoved { role, group } => {
            html! { (parts::role_name(*role)) ": a group need no longer agree, " (one_group(group)) }
        }
        SignersChange::RoleListed { role, groups } => {
            html! { (parts::role_name(*role)) " are listed now: " (group_list(groups)) }
        }
        SignersChange::RoleUnlisted { role, groups } => html! {
            (parts::role_name(*role)) " are no longer listed. " (left_to_default(*role)) " They were " (group_list(groups))
        },
    })
}

fn describe_group_change(change: &GroupChange, told: &BTreeSet<PublicKey>) -> Option<Markup> {
    let GroupChange { role, before, after, is_only } = change;
    let untold = |signers: Vec<Signer>| -> Vec<Signer> {
        signers.into_iter().filter(|signer| !told.contains(&signer.key)).collect()
    };
    let (came, went) = (untold(change.came()), untold(change.went()));
    let has_new_rule = (before.threshold, before.signers.len()) != (after.threshold, after.signers.len());
    if !has_new_rule && came.is_empty() && went.is_empty() {
        return None;
    }
    Some(html! {
        (parts::role_name(*role))
        @if !is_only { ", the group of " (parts::who_list(&change.stayed())) }
        ": "
        @if has_new_rule {
            (parts::rule_of(before)) " becomes " (parts::rule_of(after))
        } @else {
            (parts::rule_of(after))
        }
        @if !came.is_empty() { "; adds " (parts::who_list(&came)) }
        @if !went.is_empty() { "; removes " (parts::who_list(&went)) }
    })
}

/// A key can be in several groups, so each is a line of its own.
fn group_list(groups: &[Group]) -> Markup {
    html! {
        @match groups {
            [group] => (one_group(group)),
            _ => ul { @for group in groups { li { (one_group(group)) } } },
        }
    }
}

fn one_group(group: &Group) -> Markup {
    html! { (parts::rule_of(group)) ": " (parts::who_list(&group.signers)) }
}

/// The name of a signer whose key stands in the same sentence.
fn name(signer: &Signer) -> Markup {
    html! { bdi.name { (shown_signer_name(signer).unwrap_or_default()) } }
}

/// What holds where the file does not list a role (D8).
pub(super) fn left_to_default(role: Role) -> &'static str {
    match role {
        Role::Artifact => "No artifact signers: no one can release.",
        Role::Admin => "No admins of their own: the artifact signers change the signers.",
        Role::Master => "No masters: only the admins can change the signers.",
        Role::Revocation => "No revokers of their own: any one admin can revoke.",
        Role::Builder => "No builders: no one builds releases anew.",
    }
}
