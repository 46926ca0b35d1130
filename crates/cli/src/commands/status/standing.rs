//! Where a file stands, as the server shows it to everyone: explain's description of it, in words and for programs. The
//! server's word, except that signatures which do not verify are not counted.

use std::collections::{BTreeMap, BTreeSet};

use countersign_api::state::DroppedReleases;
use countersign_core::values::shown::quoted;
use countersign_core::values::{key::PublicKey, other_format::OtherFormat, path::RepoPath, time::Timestamp};
use countersign_core::{documents::layout, rules::quorum::Tally, rules::stored::ReleaseState};
use countersign_explain::describe::{Description, describe, proposal::ProposalDescription};
use countersign_explain::progress::{
    ConditionProgress, GroupProgress, Member, WayProgress, condition_text, way_name,
};
use countersign_explain::reproduction::reproduction_text;
use serde_json::{Value, json};

use crate::client::{now, state::Shown, state::dropped_text, state::due_text};
use crate::evidence::release::{
    describe_different, describe_earlier_objections, describe_objections, earlier_objections_json,
    objections_json, reproduction_json,
};
use crate::words::table::{People, listed_lines, when_text};
use crate::words::{error::CliError, output::Output};

/// A state, for programs, and what is said of it to people and to programs.
pub(super) type Said = (&'static str, String, Value);

/// The standing of a file that collects signatures, or did.
pub(super) struct Status {
    pub(super) description: Description,
    drops: DroppedReleases,
}

/// A revocation or veto that waits for more signatures.
struct Begun<'a> {
    reason: &'a str,
    signed: BTreeSet<PublicKey>,
    tally: Tally,
    title: &'static str,
    /// What joins it.
    command: &'static str,
}

impl Status {
    /// The release at a path, or the signers that are proposed there. `None` where there are none.
    pub(super) fn find(shown: &Shown, path: &RepoPath) -> Result<Option<Self>, CliError> {
        let Some(description) = shown.read(|files| describe(files, path))? else {
            return Ok(None);
        };
        if let Description::Release(release) = &description
            && release.state == ReleaseState::Complete
            && !release.groups.iter().all(GroupProgress::is_met)
        {
            return Err(CliError::unverified(
                format!("the server shows {path} as complete, but the signatures are not enough"),
                "check --server: it lies or is broken",
            ));
        }
        Ok(Some(Self { description, drops: shown.drops() }))
    }

    pub(super) fn is_revoked(&self) -> bool {
        self.description.state() == ReleaseState::Revoked
    }

    /// The state, for programs.
    pub(super) fn state_name(&self) -> &'static str {
        match self.description.state() {
            ReleaseState::Collecting => "waiting",
            ReleaseState::Complete => "complete",
            ReleaseState::Revoked => "revoked",
        }
    }

    /// `name`: what can be typed for the file.
    pub(super) fn text(&self, name: &str, you: Option<PublicKey>, output: Output) -> String {
        let people = People { names: self.description.names(), you };
        let mut lines = vec![format!("{name}: {}", self.state_text(output))];
        let progress = format!("  signatures  {}", self.description.progress());
        match &self.description {
            Description::Release(release) => {
                let mut shown = describe_different(release.reproduction.as_ref(), &release.names, output);
                shown.extend(describe_objections(&release.objections, you, output));
                shown.extend(describe_earlier_objections(&release.earlier_objections, you));
                lines.extend(shown.iter().map(|line| format!("  {line}")));
                if let Some(revocation) = &release.revocation {
                    let by = revocation.signed.iter().map(|member| people.name(member.signer.key));
                    lines.push(format!("  revoked     {}", when_text(revocation.timestamp)));
                    lines.extend(listed_lines("by", &by.map(|name| output.list(&name)).collect::<Vec<_>>()));
                    lines.push(format!("  reason      {}", quoted(&revocation.reason)));
                }
                lines.push(progress);
                if let Some(reproduction) = &release.reproduction {
                    let wish = if reproduction.is_lacking() { "; the project requires it" } else { "" };
                    let text = reproduction_text(reproduction, &release.names);
                    lines.push(format!("  rebuilds    {text}{wish}"));
                }
            }
            Description::Proposal(proposal) => {
                lines.extend(proposal.waits_until.map(|until| describe_wait(proposal, until, name)));
                lines.push(progress);
                let conditions = proposal.conditions.iter();
                lines.extend(conditions.flat_map(|condition| describe_condition(condition, output)));
            }
        }
        let list = |keys, none: &str| -> Vec<String> {
            let listed = people.names.in_order(keys).into_iter();
            let listed: Vec<String> = listed.map(|signer| output.list(&people.name(signer.key))).collect();
            if listed.is_empty() { vec![none.to_owned()] } else { listed }
        };
        lines.extend(listed_lines("signed", &list(self.description.signed(), "no one")));
        if self.description.state() == ReleaseState::Collecting {
            let missing = list(self.description.missing(), "no one who is needed");
            lines.extend(listed_lines("not signed", &missing));
        }
        match &self.description {
            Description::Release(release) => lines.extend(describe_formats(&release.formats)),
            Description::Proposal(_) => {
                let dropped = dropped_text(&self.drops);
                lines.extend(dropped.map(|dropped| format!("  drops       the signatures on {dropped}")));
            }
        }
        if let (Some(begun), Some(progress)) = (self.begun(), self.description.begun_progress()) {
            let Begun { reason, signed, title, command, .. } = begun;
            let (signed, reason) = (people.list(signed), quoted(reason));
            lines.push(format!(
                "  {title:<11} {progress}: begun by {signed}, for the reason {reason}; join it with `countersign {command} {name}`"
            ));
        }
        lines.join("\n")
    }

    fn begun(&self) -> Option<Begun<'_>> {
        match &self.description {
            Description::Release(release) => release.begun_revocation.as_ref().map(|begun| Begun {
                reason: &begun.reason,
                signed: begun.signatures.signers(),
                tally: begun.tally,
                title: "revocation",
                command: "revoke",
            }),
            Description::Proposal(proposal) => proposal.veto.as_ref().map(|veto| Begun {
                reason: &veto.reason,
                signed: veto.signed.iter().map(|member| member.signer.key).collect(),
                tally: veto.tally,
                title: "veto",
                command: "veto",
            }),
        }
    }

    /// The state, with what speaks against a release (D238).
    pub(super) fn state_text(&self, output: Output) -> String {
        let doubt = match &self.description {
            Description::Release(release) => release.doubts().text(),
            Description::Proposal(_) => None,
        };
        let doubted = |state: &str| doubt.as_ref().map(|doubt| output.bad(&format!("{state}, but {doubt}")));
        match (&self.description, self.description.state()) {
            (Description::Proposal(proposal), _) if proposal.waits_until.is_some() => {
                output.strong("all signatures are there; waiting")
            }
            (_, ReleaseState::Collecting) => {
                doubted("collecting signatures").unwrap_or_else(|| output.strong("collecting signatures"))
            }
            (_, ReleaseState::Complete) => doubted("complete").unwrap_or_else(|| output.good("complete")),
            (_, ReleaseState::Revoked) => output.bad("REVOKED"),
        }
    }

    pub(super) fn json(&self, path: &RepoPath) -> Value {
        let mut counts: BTreeMap<&str, usize> = OtherFormat::ALL.map(|format| (format.name(), 0)).into();
        let (state, tally) = (self.description.state(), self.description.tally());
        let begun = self.begun().map(|Begun { reason, signed, tally, .. }| {
            json!({"reason": reason, "signed_by": signed, "collected": tally.collected, "needed": tally.needed})
        });
        let mut value = json!({
            "file_path": path,
            "is_complete": state == ReleaseState::Complete,
            "revoked": state == ReleaseState::Revoked,
            "reason": null,
            "collected": tally.collected,
            "needed": tally.needed,
            "signed_by": self.description.signed(),
            "missing": self.description.missing(),
            "objections": [],
            "earlier_objections": [],
            "waits_until": null,
            "pending_veto": null,
            "pending_revocation": null,
            "reproduction": null,
        });
        match &self.description {
            Description::Release(release) => {
                counts.extend(release.formats.iter().map(|(format, count)| (format.name(), *count)));
                value["reason"] = json!(release.revocation.as_ref().map(|revocation| &revocation.reason));
                value["objections"] = objections_json(&release.objections);
                value["earlier_objections"] = earlier_objections_json(&release.earlier_objections);
                value["pending_revocation"] = json!(begun);
                value["groups"] = release.groups.iter().map(group_json).collect();
                value["reproduction"] = reproduction_json(release.reproduction.as_ref());
            }
            Description::Proposal(proposal) => {
                value["waits_until"] = json!(proposal.waits_until);
                value["pending_veto"] = json!(begun);
                value["conditions"] = proposal.conditions.iter().map(condition_json).collect();
            }
        }
        value["formats"] = json!(counts);
        value
    }
}

fn describe_wait(proposal: &ProposalDescription, until: Timestamp, name: &str) -> String {
    if now().is_ok_and(|now| until <= now) {
        return format!("  in force    it {}", due_text(until));
    }
    let masters = match proposal.has_masters {
        true => {
            format!(", unless the masters veto it (`countersign veto {name}`), or at once if they sign it")
        }
        false => "; there are no masters who could veto it, but an admin can replace it".to_owned(),
    };
    format!("  in force    on {}{masters}", when_text(until))
}

fn describe_formats(counts: &[(OtherFormat, usize)]) -> Option<String> {
    let counts: Vec<String> = counts.iter().map(|(format, count)| format!("{count} for {format}")).collect();
    (!counts.is_empty()).then(|| format!("  also        {}", counts.join(", ")))
}

/// Describes the ways to meet a condition. One is enough, and the others are left out once it is taken.
fn describe_condition(condition: &ConditionProgress, output: Output) -> Vec<String> {
    let mark = if condition.is_met { output.good("met ") } else { output.strong("open") };
    let mut lines = vec![format!("    {mark} {}", condition_text(condition.kind))];
    let shown = |way: &&WayProgress| !condition.is_met || way.is_met;
    for (i, way) in condition.ways.iter().filter(shown).enumerate() {
        let or = if i > 0 { "or instead " } else { "" };
        let role = way.role.filter(|_| condition.ways.len() > 1).map(|role| format!("{}: ", way_name(role)));
        for group in &way.groups {
            lines.push(format!("           {or}{}{group}", role.as_deref().unwrap_or_default()));
        }
    }
    lines
}

fn condition_json(condition: &ConditionProgress) -> Value {
    let way = |way: &WayProgress| {
        let groups: Value = way.groups.iter().map(group_json).collect();
        json!({"role": way.role.map(|role| role.to_string()), "is_met": way.is_met, "groups": groups})
    };
    json!({
        "condition": condition_text(condition.kind),
        "is_met": condition.is_met,
        "collected": condition.tally.collected,
        "needed": condition.tally.needed,
        "ways": condition.ways.iter().map(way).collect::<Vec<_>>(),
    })
}

fn group_json(group: &GroupProgress) -> Value {
    let member = |Member { signer, signed_at, .. }: &Member| json!({"key": signer.key, "name": signer.name, "signed_at": signed_at});
    let signers: Value = group.members.iter().map(member).collect();
    json!({"threshold": group.threshold, "collected": group.tally().collected, "signers": signers})
}

pub(super) fn not_pending(path: &RepoPath) -> CliError {
    let mut hint = "it may be in force already".to_owned();
    if let Some(project) = layout::project_with_signers_at(path) {
        hint += &format!(": `countersign signers history {project}` shows the history");
    }
    CliError::other(format!("no signers file is pending at {path}"), hint)
}

pub(super) fn not_found(path: &RepoPath) -> CliError {
    CliError::other(
        format!("the server has no {path}"),
        "check the path: `countersign pending` lists what waits for you",
    )
}
