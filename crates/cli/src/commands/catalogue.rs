//! `countersign releases` and `countersign search`: what servers list, by their word.

use std::collections::BTreeSet;

use countersign_api::catalogue::{
    ListedRebuilds, ListedRelease, ProjectsResponse, ReleaseState, ReleaseVersion, ReleasesResponse,
    compare_versions, find_newest,
};
use countersign_core::documents::layout;
use countersign_core::values::shown::{marked_name, plural, shown_text};
use countersign_core::values::{json::ParseError, path::RepoPath};
use countersign_explain::{reproduction::count_different, words::count_objections, words::shown_url};
use serde_json::json;

use crate::args::{ReleasesArgs, SearchArgs};
use crate::client::{ServerClient, now, session::Reader, session::Session, targets::ReleaseName};
use crate::words::table::{Table, age_text};
use crate::words::{error::CliError, output::Output, output::Several};

/// The most releases that are asked for: a server could say for ever that there are more.
const MOST_RELEASES: usize = 10_000;

pub(crate) async fn list_releases(session: &Session, args: &ReleasesArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_project(&args.project)?;
    let (target, _) = session.find_named(&name, Reader::Signer).await?;
    if target.shown.answer.commit.is_empty() {
        return Err(CliError::other(
            format!("{} has nothing at {}", target.client.address(), target.path),
            "check the name; `countersign search WORD` finds projects",
        ));
    }
    let project = target.shown.project();
    let listed = ReleaseListing::find(&target.client, project).await?;
    let value = json!({
        "project_id": project.as_str(),
        "server": target.client.address(),
        "newest": listed.newest().map(|release| release.index_path.as_str()),
        "releases": listed.releases,
        "more": listed.more,
    });
    let name = session.name_of(project, Some(project));
    if listed.releases.is_empty() {
        return session.output.result(&format!("{name} has no releases."), &value);
    }
    if listed.more {
        session.output.note(&format!("{name} has more releases than these."));
    }
    let text = match session.output.is_terse() {
        true => listed.releases.iter().map(|release| format!("{}\n", release.index_path)).collect(),
        false => listed.to_table(project, session.output)?,
    };
    session.output.answer(&text, &value)
}

/// The releases of a project, the highest version first, as on the project's page.
pub(super) struct ReleaseListing {
    pub(super) releases: Vec<ListedRelease>,
    pub(super) more: bool,
}

impl ReleaseListing {
    pub(super) async fn find(client: &ServerClient, project: &RepoPath) -> Result<Self, CliError> {
        let mut listed = Self { releases: Vec::new(), more: true };
        while listed.more && listed.releases.len() < MOST_RELEASES {
            let mut query = vec![("project", project.as_str())];
            query.extend(listed.releases.last().map(|last| ("after", last.index_path.as_str())));
            let ReleasesResponse { releases, more } = client.releases(&query).await?;
            if releases.iter().any(|release| !release.index_path.is_inside(project)) {
                let error = ParseError::new("releases", "it is about another project");
                return Err(client.unusable_content(project, error));
            }
            listed.more = more && !releases.is_empty();
            listed.releases.extend(releases);
        }
        listed.releases.sort_by(|a, b| compare_versions(b.dir(), a.dir()));
        Ok(listed)
    }

    /// The newest release (D77).
    pub(super) fn newest(&self) -> Option<&ListedRelease> {
        find_newest(&self.releases, |release| version_of(release))
    }

    /// The newest release in this directory that clients do not refuse because builders have yet to reproduce it.
    pub(super) fn newest_usable(&self, within: &RepoPath) -> Option<&ListedRelease> {
        let is_usable = |release: &&ListedRelease| {
            release.index_path.is_inside(within)
                && !release.rebuilds.as_ref().is_some_and(ListedRebuilds::is_lacking)
        };
        find_newest(self.releases.iter().filter(is_usable), |release| version_of(release))
    }

    fn to_table(&self, project: &RepoPath, output: Output) -> Result<String, CliError> {
        let (newest, now) = (self.newest(), now()?);
        let mut table = Table::new(vec!["RELEASE", "STATE", "SIGNED", "AGE"]);
        for release in &self.releases {
            let is_newest = newest.is_some_and(|newest| newest.index_path == release.index_path);
            let signatures = release.signatures;
            table.push(vec![
                marked_name(&layout::release_name(&release.index_path, project)),
                describe_state(release, is_newest, output),
                format!("{} of {}", signatures.collected, signatures.needed),
                age_text(release.registered_at, now),
            ]);
        }
        Ok(table.to_string())
    }
}

fn version_of(release: &ListedRelease) -> ReleaseVersion<'_> {
    ReleaseVersion {
        dir: release.dir(),
        state: release.state,
        is_revoking: release.revocation_begun.is_some(),
    }
}

fn describe_state(release: &ListedRelease, is_newest: bool, output: Output) -> String {
    let state = match (release.state, release.revocation_begun) {
        (ReleaseState::Revoked, _) => output.bad("revoked"),
        (ReleaseState::Complete | ReleaseState::Collecting, Some(begun)) => {
            output.bad(&format!("revocation begun, {} of {}", begun.collected, begun.needed))
        }
        (ReleaseState::Complete, None) if is_newest => output.good("complete, newest"),
        (ReleaseState::Complete, None) => output.good("complete"),
        (ReleaseState::Collecting, None) => output.strong("collecting"),
    };
    match describe_gravest(release, output) {
        Some(gravest) if release.state != ReleaseState::Revoked => format!("{state}, {gravest}"),
        Some(_) | None => state,
    }
}

/// The gravest that can be said of a release besides, in few words: `status` says all.
fn describe_gravest(release: &ListedRelease, output: Output) -> Option<String> {
    let rebuilds = release.rebuilds.as_ref();
    if rebuilds.is_some_and(|rebuilds| rebuilds.different > 0) {
        return Some(output.bad("DIFFERENT"));
    }
    if rebuilds.is_some_and(ListedRebuilds::is_lacking) {
        return Some(output.bad("not reproduced"));
    }
    match release.objections {
        0 => rebuilds.filter(|rebuilds| rebuilds.reproduced).map(|_| output.good("reproduced")),
        count => Some(output.bad(&format!("{count} objection{}", plural(count)))),
    }
}

/// What speaks against a release, the gravest first.
pub(super) fn list_doubts(release: &ListedRelease) -> Vec<String> {
    let different = release.rebuilds.as_ref().and_then(|rebuilds| count_different(rebuilds.different));
    different.into_iter().chain(count_objections(release.objections)).collect()
}

pub(crate) async fn search(session: &Session, args: &SearchArgs) -> Result<(), CliError> {
    let words = args.words.join(" ");
    let mut found: Vec<(RepoPath, String)> = Vec::new();
    let (mut several, mut answering) = (Several::reading(session.output), Vec::new());
    let mut is_cut = false;
    for client in session.clients(Reader::Signer)? {
        let server = client.address();
        let answer = several.keep(&server, client.projects(&[("q", &words)]).await);
        let Some(ProjectsResponse { projects, more }) = answer else { continue };
        if more {
            session.output.note(&format!("{server} has more than it lists: add a word to find fewer."));
        }
        is_cut |= more;
        answering.push(server.clone());
        found.extend(projects.into_iter().map(|project| (project, server.clone())));
    }
    let listed =
        found.iter().map(|(project, server)| json!({"project_id": project.as_str(), "server": server}));
    let value = json!({"projects": listed.collect::<Vec<_>>(), "more": is_cut});
    let text = match (found.is_empty(), session.output.is_terse()) {
        (true, _) if answering.is_empty() => String::new(),
        (true, _) => {
            let there = match several.has_failed() {
                true => format!(" on {}", answering.join(" and ")),
                false => String::new(),
            };
            format!("No project{there} has \"{}\" in its address.", shown_text(&words))
        }
        (false, true) => found.iter().map(|(project, _)| format!("{project}\n")).collect(),
        (false, false) => to_table(&found),
    };
    match several.has_failed() {
        true => several.finish(&text, value),
        false => session.output.answer(&text, &value),
    }
}

fn to_table(found: &[(RepoPath, String)]) -> String {
    let servers: BTreeSet<&str> = found.iter().map(|(_, server)| server.as_str()).collect();
    let mut table = Table::new(if servers.len() > 1 { vec!["PROJECT", "SERVER"] } else { vec!["PROJECT"] });
    for (project, server) in found {
        let server = (servers.len() > 1).then(|| server.clone());
        table.push([shown_url(project)].into_iter().chain(server).collect());
    }
    table.to_string()
}
