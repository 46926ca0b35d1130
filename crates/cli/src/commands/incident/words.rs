//! The findings, for people and for programs.

use countersign_core::values::{key::PublicKey, path::RepoPath, shown::quoted, time::Timestamp};
use countersign_core::{documents::signers::Signer, rules::quorum::ConditionKind};
use countersign_explain::incident::{
    IncidentListing, ListingStanding, OpenKind, OpenMatter, ProjectIncident, SigningTimes, TouchedRebuild,
    TouchedRelease, TouchedRevocation, TouchedRotation,
};
use countersign_explain::{strength::Act, words::role_title, words::shown_signer};
use serde_json::{Value, json};

use crate::{commands::incident::fetched::Findings, words::output::Output, words::table::when_text};

pub(super) fn describe(findings: &Findings, output: Output) -> Vec<String> {
    let mut lines = Vec::new();
    for key in &findings.question.keys {
        lines.push(format!("Key {key}"));
    }
    if let Some(since) = findings.question.since {
        lines.push(format!("Signed at {} or later", when_text(since)));
    }
    if findings.projects.is_empty() {
        lines.push(match findings.faults.is_empty() && findings.unread.is_empty() {
            true => "No signers file here lists or listed these keys, so they signed nothing.".to_owned(),
            false => "No signers file that could be read lists or listed these keys.".to_owned(),
        });
    }
    let (strangers, own): (Vec<&ProjectIncident>, Vec<&ProjectIncident>) =
        findings.projects.iter().partition(|project| findings.is_strangers(project));
    for project in own {
        lines.push(String::new());
        lines.extend(describe_project(project, output));
    }
    lines.extend(describe_strangers(&strangers));
    if findings.is_cut {
        lines.push(String::new());
        lines.push(format!(
            "{} the server has more than this command asks for. A copy answers in full: `countersign fsck URL --keep DIR`, \
             then `countersign incident … --repository DIR`.",
            output.bad("warning:")
        ));
    }
    lines
}

/// How many projects of strangers are named.
const MOST_STRANGERS: usize = 20;

/// Anyone can list a key in a project of their own, so such projects get a line each, and only so many of them.
fn describe_strangers(projects: &[&ProjectIncident]) -> Vec<String> {
    if projects.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        String::new(),
        "Other projects list these keys, which signed and registered nothing there. Name one to see all of it:"
            .to_owned(),
    ];
    let projects = first_of(projects.iter().map(|incident| describe_stranger(incident)), MOST_STRANGERS);
    lines.extend(projects.iter().map(|project| format!("  {project}")));
    lines
}

/// The first of these, and how many more there are.
pub(super) fn first_of(all: impl Iterator<Item = String>, most: usize) -> Vec<String> {
    let mut shown: Vec<String> = all.collect();
    let more = shown.len().saturating_sub(most);
    shown.truncate(most);
    shown.extend((more > 0).then(|| format!("and {more} more")));
    shown
}

fn describe_stranger(incident: &ProjectIncident) -> String {
    let is_proposed = incident.listings.iter().all(|listing| listing.standing == ListingStanding::Proposed);
    let what = match is_proposed {
        true => "Do not sign the proposed signers file: it lists a named key",
        false => "a registrar",
    };
    format!("{}: {what}", incident.project)
}

fn describe_project(incident: &ProjectIncident, output: Output) -> Vec<String> {
    let project = &incident.project;
    let mut lines = vec![output.strong(project.as_str())];
    lines.extend(incident.listings.iter().map(describe_listing));
    lines.push(describe_powers(incident, output));
    let name = |path| name_below(project, path);
    let list = |what: &str, touched| list_touched(what, THRESHOLDS, touched, output);
    let releases = incident.releases.iter().map(|TouchedRelease { path, state, signed, is_decisive }| {
        (*is_decisive, format!("{}, {}: {}", name(path), state.name(), describe_times(signed, incident)))
    });
    lines.extend(list("signed releases", releases.collect()));
    let rotations = incident.rotations.iter().map(|rotation| describe_rotation(rotation, incident));
    lines.extend(list("signed signers files", rotations.collect()));
    let revocations =
        incident.revocations.iter().map(|TouchedRevocation { path, reason, signed, is_decisive }| {
            (
                *is_decisive,
                format!("of {}, {}: {}", name(path), quoted(reason), describe_times(signed, incident)),
            )
        });
    lines.extend(list("signed revocations", revocations.collect()));
    // Nothing is said of projects without builders.
    if incident.can_state_rebuilds || !incident.rebuilds.is_empty() {
        let rebuilds = incident.rebuilds.iter().map(|TouchedRebuild { path, stated, is_decisive }| {
            (*is_decisive, format!("{}: {}", name(path), describe_times(stated, incident)))
        });
        lines.extend(list_touched("stated rebuilds", REPRODUCED, rebuilds.collect(), output));
    }
    if !incident.open.is_empty() {
        lines.push("  still open:".to_owned());
        lines.extend(incident.open.iter().map(|matter| describe_open(project, matter, output)));
    }
    lines
        .extend(incident.unreadable.iter().map(|reason| format!("  {} {reason}", output.bad("unreadable:"))));
    lines
}

fn describe_listing(listing: &IncidentListing) -> String {
    let mut roles: Vec<&str> = listing.roles.iter().copied().map(role_title).collect();
    if listing.is_registrar {
        roles.push("registrar");
    }
    let (who, roles) = (shown_signer(&listing.signer), roles.join(", "));
    match listing.standing {
        ListingStanding::InForce => format!("  {who} is {roles}"),
        ListingStanding::Until(at) => {
            format!("  {who} was {roles}; a rotation removed the key on {}", when_text(at))
        }
        ListingStanding::Proposed => {
            format!("  {who} would be {roles}; a signers file that lists the key waits for signatures")
        }
    }
}

fn describe_powers(incident: &ProjectIncident, output: Output) -> String {
    let mut powers: Vec<String> = incident.powers.iter().map(Act::to_string).collect();
    let is_harmless = powers.is_empty();
    if is_harmless && incident.can_register {
        powers.push("register releases".to_owned());
    }
    if incident.can_state_rebuilds && !incident.powers.contains(&Act::Reproduce) {
        powers.push("state something false about what the source gives".to_owned());
    }
    let powers = if powers.is_empty() { "do nothing".to_owned() } else { powers.join(", ") };
    match is_harmless {
        true => format!("  alone they can {powers}"),
        false => format!("  {} {powers}", output.bad("alone they can")),
    }
}

/// What is said of signatures, none of which needed the keys, and of as many as did.
const THRESHOLDS: [&str; 2] = [
    "all of them met their thresholds without these keys as well",
    "of them met their thresholds only with these keys",
];
const REPRODUCED: [&str; 2] = [
    "the same releases are reproduced without these keys as well",
    "of the releases reproduced only with these keys",
];

/// What the keys signed or stated of one kind, each with whether it needed them.
fn list_touched(
    what: &str,
    [without, only_with]: [&str; 2],
    touched: Vec<(bool, String)>,
    output: Output,
) -> Vec<String> {
    let needed = match touched.iter().filter(|(is_decisive, _)| *is_decisive).count() {
        0 => without.to_owned(),
        decisive => output.bad(&format!("{decisive} {only_with}")),
    };
    let head = match touched.len() {
        0 => format!("  {what}: none"),
        count => format!("  {what}: {count}; {needed}"),
    };
    let mark = |is_decisive| if is_decisive { output.bad("needed") } else { "      ".to_owned() };
    let lines = touched.into_iter().map(|(is_decisive, what)| format!("    {}  {what}", mark(is_decisive)));
    std::iter::once(head).chain(lines).collect()
}

fn describe_rotation(rotation: &TouchedRotation, incident: &ProjectIncident) -> (bool, String) {
    let conditions: Vec<&str> = rotation.unmet.iter().map(|kind| condition_title(*kind)).collect();
    let needed = match conditions.as_slice() {
        [] => String::new(),
        conditions => format!("; needed as {}", conditions.join(" and ")),
    };
    let (since, times) = (when_text(rotation.activated_at), describe_times(&rotation.signed, incident));
    let what = format!("number {}, in force since {since}: {times}{needed}", rotation.number);
    (!rotation.unmet.is_empty(), what)
}

fn condition_title(kind: ConditionKind) -> &'static str {
    match kind {
        ConditionKind::Everyone => "a key of the first file",
        ConditionKind::Current => "admins or masters of the file before",
        ConditionKind::Proposed => "admins or masters of the new file",
        ConditionKind::Added => "a key that the file added",
    }
}

fn describe_open(project: &RepoPath, matter: &OpenMatter, output: Output) -> String {
    let what = match matter.kind {
        OpenKind::Rotation => "the proposed signers file".to_owned(),
        OpenKind::Release => format!("release {}", name_below(project, &matter.path)),
        OpenKind::Revocation => format!("the revocation of {}", name_below(project, &matter.path)),
    };
    let end = match (matter.waits_until, matter.is_completable, matter.signed.is_empty()) {
        (Some(until), _, _) => {
            output.bad(&format!("all signatures are there; it takes effect on {}", when_text(until)))
        }
        (None, true, _) => output.bad("these keys can complete it"),
        (None, false, true) => "these keys cannot complete it".to_owned(),
        (None, false, false) => "signed by these keys, who cannot complete it".to_owned(),
    };
    let registered = if matter.is_registered { "; registered by these keys" } else { "" };
    format!("    {what}: {}; {end}{registered}", matter.tally)
}

fn describe_times(signed: &SigningTimes, incident: &ProjectIncident) -> String {
    let one = |(key, at): (&PublicKey, &Timestamp)| {
        let listing = incident.listings.iter().find(|listing| listing.signer.key == *key);
        let signer = listing.map_or(Signer::nameless(*key), |listing| listing.signer.clone());
        format!("{} on {}", shown_signer(&signer), when_text(*at))
    };
    signed.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `releases/tag/v1` for the index of that release.
fn name_below(project: &RepoPath, index: &RepoPath) -> String {
    let dir = index.parent().unwrap_or_else(|| index.clone());
    dir.as_str().strip_prefix(project.as_str()).unwrap_or(dir.as_str()).trim_start_matches('/').to_owned()
}

pub(super) fn to_json(findings: &Findings) -> Value {
    json!({
        "keys": findings.question.keys,
        "since": findings.question.since,
        "projects": findings.projects.iter().map(|one| project_to_json(findings, one)).collect::<Vec<_>>(),
        "faults": findings.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "unready": findings.unread,
        "complete": !findings.is_cut && findings.faults.is_empty() && findings.unread.is_empty(),
    })
}

fn project_to_json(findings: &Findings, incident: &ProjectIncident) -> Value {
    let rotations = incident.rotations.iter().map(|rotation| {
        let needed_as = rotation.unmet.iter().map(|kind| condition_title(*kind));
        json!({
            "number": rotation.number,
            "activated_at": rotation.activated_at,
            "signed": rotation.signed,
            "decisive": !rotation.unmet.is_empty(),
            "needed_as": needed_as.collect::<Vec<_>>(),
        })
    });
    json!({
        "project_id": incident.project,
        "strangers": findings.is_strangers(incident),
        "listed": incident.listings.iter().map(listing_to_json).collect::<Vec<_>>(),
        "alone": incident.powers.iter().map(Act::to_string).collect::<Vec<_>>(),
        "can_register": incident.can_register,
        "can_state_rebuilds": incident.can_state_rebuilds,
        "releases": incident.releases,
        "rotations": rotations.collect::<Vec<_>>(),
        "revocations": incident.revocations,
        "rebuilds": incident.rebuilds,
        "open": incident.open,
        "unreadable": incident.unreadable,
    })
}

fn listing_to_json(listing: &IncidentListing) -> Value {
    let (standing, removed_at) = match listing.standing {
        ListingStanding::InForce => ("in force", None),
        ListingStanding::Until(at) => ("removed", Some(at)),
        ListingStanding::Proposed => ("proposed", None),
    };
    json!({
        "public_key": listing.signer.key,
        "name": listing.signer.name,
        "roles": listing.roles,
        "registrar": listing.is_registrar,
        "standing": standing,
        "removed_at": removed_at,
    })
}
