//! A whole project, as the server shows it to everyone: its signers, its newest release, and what is open (D242).

use countersign_api::catalogue::{ListedRebuilds, ListedRelease, ReleaseState};
use countersign_core::documents::layout;
use countersign_core::documents::signers::{Group, Role, Signer, SignersFile};
use countersign_core::values::{key::PublicKey, path::RepoPath, shown::marked_name};
use countersign_explain::words::{Doubts, rebuilt_files_text, rule_text, shown_url};
use countersign_explain::{describe::proposal::VetoedProposal, progress::Names};
use serde_json::{Value, json};

use crate::client::state::{Shown, find_vetoed, vetoed_json, vetoed_text};
use crate::client::{session::Session, targets::Target};
use crate::commands::catalogue::{ReleaseListing, list_doubts};
use crate::commands::signers::rebuilds_to_json;
use crate::commands::status::standing::{Said, Status};
use crate::words::{error::CliError, output::Output, table::People, table::when_text};

/// How many open releases are named.
const MOST_OPEN: usize = 10;

/// Finds the state of the signers, and what is said of the project.
pub(super) async fn find(
    session: &Session,
    Target { client, path, shown }: &Target,
) -> Result<Said, CliError> {
    let project = shown.project();
    let standing = ProjectStanding {
        shown,
        signers: shown.signers()?,
        listed: ReleaseListing::find(client, project).await?,
        proposal: Status::find(shown, path)?,
        vetoed: find_vetoed(shown)?,
    };
    let name = session.name_of(project, Some(project));
    let text = standing.text(&name, session.own_key(), session.output);
    Ok((standing.state_name(), text, standing.json(path)))
}

struct ProjectStanding<'a> {
    shown: &'a Shown,
    /// The signers in force; `None` while the project is being registered.
    signers: Option<SignersFile>,
    listed: ReleaseListing,
    /// The signers that are proposed.
    proposal: Option<Status>,
    /// The veto that the masters agreed to last.
    vetoed: Option<VetoedProposal>,
}

impl ProjectStanding<'_> {
    /// The state of the signers, for programs.
    fn state_name(&self) -> &'static str {
        match (&self.proposal, &self.vetoed) {
            (Some(proposal), _) => proposal.state_name(),
            (None, Some(_)) => "vetoed",
            (None, None) => "complete",
        }
    }

    fn revoking(&self) -> impl Iterator<Item = &ListedRelease> {
        self.listed.releases.iter().filter(|release| release.revocation_begun.is_some())
    }

    fn collecting(&self) -> impl Iterator<Item = &ListedRelease> {
        let is_open = |release: &&ListedRelease| release.state == ReleaseState::Collecting;
        self.listed.releases.iter().filter(is_open)
    }

    /// `name`: what can be typed for the project.
    fn text(&self, name: &str, you: Option<PublicKey>, output: Output) -> String {
        let project = self.shown.project();
        let names = Names::of(&self.signers);
        let people = People { names: &names, you };
        let state = match &self.signers {
            Some(_) => output.good("registered"),
            None => output.strong("being registered"),
        };
        let mut lines = vec![format!("{name}: {state}")];
        lines.push(format!("  address     {}", shown_url(project)));
        lines.push(format!("  server      {}", self.shown.client.address()));
        lines.extend(self.signers.iter().flat_map(|file| describe_signers(file, &people)));
        match self.listed.newest() {
            None => lines.push("  newest      none".to_owned()),
            Some(newest) => {
                let at = newest.completed_at.map(when_text).unwrap_or_default();
                lines.push(format!("  newest      {}, complete since {at}", shown_name(newest, project)));
                let doubts = list_doubts(newest);
                lines.extend(doubts.iter().map(|doubt| format!("              {}", output.bad(doubt))));
                if newest.rebuilds.as_ref().is_some_and(ListedRebuilds::is_lacking) {
                    let lacking = output.bad("not reproduced");
                    lines.push(format!("              {lacking}: clients refuse it"));
                }
            }
        }
        let open: Vec<String> = self
            .revoking()
            .map(|release| describe_revocation(release, project, output))
            .chain(self.collecting().map(|release| describe_collecting(release, project, output)))
            .collect();
        lines.extend(open.iter().take(MOST_OPEN).enumerate().map(|(i, line)| labelled(i, "open", line)));
        if open.len() > MOST_OPEN {
            let more = open.len() - MOST_OPEN;
            lines.push(format!("              and {more} more: `countersign releases {name}`"));
        }
        if open.is_empty() && self.proposal.is_none() {
            lines.push("  open        nothing".to_owned());
        }
        if let Some(vetoed) = &self.vetoed {
            let (is, by) = (output.bad("vetoed"), vetoed_text(vetoed));
            lines.push(format!("  last veto   the proposed signers were {is} {by}"));
        }
        if let Some(proposal) = &self.proposal {
            lines.push(format!("Proposed signers of {}", proposal.text(name, you, output)));
        }
        lines.join("\n")
    }

    fn json(&self, pending: &RepoPath) -> Value {
        let shown = self.shown;
        json!({
            "project_id": shown.project(),
            "server": shown.client.address(),
            "is_registered": self.signers.is_some(),
            "signers": self.signers.as_ref().map(signers_json),
            "newest": self.listed.newest(),
            "collecting": self.collecting().collect::<Vec<_>>(),
            "revoking": self.revoking().collect::<Vec<_>>(),
            "proposal": self.proposal.as_ref().map(|proposal| proposal.json(pending)),
            "last_veto": self.vetoed.as_ref().map(vetoed_json),
        })
    }
}

/// Puts a title before the first of several lines.
fn labelled(number: usize, title: &str, line: &str) -> String {
    let title = if number == 0 { title } else { "" };
    format!("  {title:<11} {line}")
}

fn shown_name(release: &ListedRelease, project: &RepoPath) -> String {
    marked_name(&layout::release_name(&release.index_path, project))
}

fn describe_revocation(release: &ListedRelease, project: &RepoPath, output: Output) -> String {
    let reason = release.revocation_reason.clone().unwrap_or_default();
    let begun = release.revocation_begun.map(|tally| (tally, reason));
    let doubt = Doubts { begun, ..Doubts::default() }.text().unwrap_or_default();
    format!("{}: {}", shown_name(release, project), output.bad(&doubt))
}

fn describe_collecting(release: &ListedRelease, project: &RepoPath, output: Output) -> String {
    let doubts: String =
        list_doubts(release).iter().map(|doubt| format!(", {}", output.bad(doubt))).collect();
    format!("{}: {}{doubts}", shown_name(release, project), release.signatures)
}

/// The people of a role, as the label of a line.
fn role_label(role: Role) -> &'static str {
    match role {
        Role::Artifact => "signers",
        Role::Admin => "admins",
        Role::Master => "masters",
        Role::Revocation => "revokers",
        Role::Builder => "builders",
    }
}

/// Lists the groups of each role that the file lists, and the registrars. A role that is not listed follows from the
/// others.
fn describe_signers(file: &SignersFile, people: &People<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let list = |signers: &[Signer]| -> Vec<String> {
        signers.iter().map(|signer| format!("                {}", people.name(signer.key))).collect()
    };
    for role in Role::ALL {
        for (i, group) in file.explicit_groups(role).into_iter().flatten().enumerate() {
            lines.push(labelled(i, role_label(role), &rule_text(group.threshold, group.signers.len())));
            lines.extend(list(&group.signers));
        }
    }
    if let Some(rebuilds) = file.rebuilds() {
        lines.push(format!("                they make {}", rebuilt_files_text(&rebuilds.files)));
        if rebuilds.required {
            lines.push("                clients refuse a release until they have reproduced it".to_owned());
        }
    }
    if !file.registrars().is_empty() {
        lines.push("  registrars  to register releases, and nothing else".to_owned());
        lines.extend(list(file.registrars()));
    }
    lines
}

fn signers_json(file: &SignersFile) -> Value {
    let group = |group: &Group| json!({"threshold": group.threshold, "signers": list_json(&group.signers)});
    let mut value = json!({"registrars": list_json(file.registrars()), "rebuilds": rebuilds_to_json(file)});
    for role in Role::ALL {
        let groups = file.explicit_groups(role).map(|groups| groups.iter().map(group).collect::<Vec<_>>());
        value[role.name()] = json!(groups);
    }
    value
}

/// Keys with their names, for programs.
pub(crate) fn list_json(signers: &[Signer]) -> Value {
    signers.iter().map(|signer| json!({"key": signer.key, "name": signer.name})).collect()
}
