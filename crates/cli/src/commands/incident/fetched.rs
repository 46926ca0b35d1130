//! What a server shows of the projects that list or listed the keys. A client cannot fetch everything that a server
//! has, so it asks for what concerns the keys, within a bound.

use std::collections::{BTreeMap, BTreeSet};

use countersign_api::catalogue::{ReleaseState, ReleasesResponse, SignedRelease, WaitingKind};
use countersign_core::documents::{history::History, layout, signers::SignersFile, signers::keys_of};
use countersign_core::rules::{snapshot::Scratch, snapshot::Snapshot};
use countersign_core::values::bounds::{KEY_ENTRIES, LIST_ENTRIES};
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_explain::incident::{
    IncidentFault, IncidentQuestion, ListingAgreement, ProjectIncident, examine_project,
};

use crate::client::session::{Reader, Session};
use crate::client::{ServerClient, state::StateQuestion, targets::ReleaseName, targets::ServerPath};
use crate::{args::IncidentArgs, keys::resolve_keys, words::error::CliError};

/// The most releases to ask a server for, because each takes some requests. A clone answers without a bound.
const MAX_RELEASES: usize = 1_000;
/// The most releases of a project in which the keys signed nothing. It may be a stranger's.
const MAX_STRANGERS_RELEASES: usize = 10;

pub(super) struct Fetched {
    scratch: Scratch,
    scope: BTreeMap<RepoPath, FetchedProject>,
    /// What is to be found, and what could not be read.
    findings: Findings,
}

/// What an incident needs of a project beside its files. The histories of strangers can be long, so none is kept.
struct FetchedProject {
    /// The people who agreed to the listing of the keys.
    agreement: ListingAgreement,
    /// Whether one of the keys is or was a builder's.
    are_builders: bool,
    releases: BTreeSet<RepoPath>,
}

impl Fetched {
    /// Gives what was fetched, and what is found in it.
    pub(super) async fn examine(
        session: &Session,
        args: &IncidentArgs,
        since: Option<Timestamp>,
    ) -> Result<(Scratch, Findings), CliError> {
        let question = IncidentQuestion { since, ..IncidentQuestion::default() };
        let mut fetched = Self {
            scratch: Scratch::default(),
            scope: BTreeMap::new(),
            findings: Findings::new(question, session.known_projects()),
        };
        let mut clients: Vec<ServerClient> = Vec::new();
        let mut histories = Vec::new();
        for name in &args.projects {
            let name = ReleaseName::parse_project(name)?;
            let ServerPath { client, path, .. } = session.find_path(&name, Reader::Signer).await?;
            histories.push((path.clone(), fetched.fetch_project(&client, &path).await?));
            fetched.findings.known.insert(path);
            if clients.iter().all(|known| known.address() != client.address()) {
                clients.push(client);
            }
        }
        let files: Vec<SignersFile> = histories.iter().flat_map(|(_, history)| list_files(history)).collect();
        fetched.findings.question.keys = resolve_keys(&args.keys.all(), &files)?;
        for (project, history) in histories {
            fetched.add_project(project, &history);
        }
        if args.projects.is_empty() {
            clients = session.clients(Reader::Signer)?;
        }
        let mut failed = Vec::new();
        for client in &clients {
            if let Err(error) = fetched.ask(client, args.projects.is_empty()).await {
                failed.push((client.address(), error));
            }
        }
        // Where no server answers, there is nothing to report.
        if failed.len() == clients.len()
            && fetched.scope.is_empty()
            && let Some((_, error)) = failed.pop()
        {
            return Err(error);
        }
        let describe = |(address, error): &(String, CliError)| format!("{address}: {}", error.describe());
        let Self { scratch, scope, mut findings } = fetched;
        findings.unread.extend(failed.iter().map(describe));
        findings.examine(&scratch, scope.keys(), |project| scope[project].releases.iter().cloned().collect());
        Ok((scratch, findings))
    }

    /// What one server has. `anywhere`: in whichever project. What cannot be read of a project or release does not keep
    /// the others from being read.
    async fn ask(&mut self, client: &ServerClient, anywhere: bool) -> Result<(), CliError> {
        // A mirror that does not have everything yet would say that the keys signed nothing.
        if let Err(error) = client.check_ready().await {
            self.findings.unread.push(error.to_string());
        }
        let mut releases = BTreeSet::new();
        let mut projects = BTreeSet::new();
        for key in self.findings.question.keys.clone() {
            let known = client.key(&key).await?;
            self.findings.is_cut |= anywhere && (known.listed_more || known.formerly.len() >= LIST_ENTRIES);
            self.findings.is_cut |= known.begun.len() >= KEY_ENTRIES;
            projects.extend(known.listed.into_iter().map(|listing| listing.project_id));
            projects.extend(known.formerly);
            releases.extend(known.begun.into_iter().map(|file| file.file_path));
            let pending = client.pending_of(&key).await?;
            self.findings.is_cut |= pending.more;
            for file in pending.pending {
                projects.insert(file.project_id);
                if file.kind == WaitingKind::Revocation {
                    releases.insert(file.file_path);
                }
            }
            for signed in self.list_signed(client, &key).await? {
                projects.insert(signed.project_id);
                releases.insert(signed.index_path);
            }
        }
        for project in projects {
            if anywhere && !self.scope.contains_key(&project) {
                match self.fetch_project(client, &project).await {
                    Ok(history) => self.add_project(project, &history),
                    Err(error) => self.note_unread(&project, &error),
                }
            }
        }
        for project in self.in_order() {
            if let Err(error) = self.fetch_releases(client, &project, &releases).await {
                self.note_unread(&project, &error);
            }
        }
        Ok(())
    }

    fn note_unread(&mut self, what: &RepoPath, error: &CliError) {
        self.findings.unread.push(format!("{what}: {}", error.describe()));
    }

    /// The user's own projects first: others must not use up the bound on releases (D219).
    fn in_order(&self) -> Vec<RepoPath> {
        let mut projects: Vec<RepoPath> = self.scope.keys().cloned().collect();
        projects.sort_by_cached_key(|project| {
            (!self.findings.known.contains(project), self.scope[project].agreement, project.clone())
        });
        projects
    }

    /// The releases of one project: those that the keys signed or whose revocation they began or can join, those that
    /// collect, and those that are revoked. No list of a server says which releases builders rebuilt, so for their keys
    /// it is all.
    async fn fetch_releases(
        &mut self,
        client: &ServerClient,
        project: &RepoPath,
        touched: &BTreeSet<RepoPath>,
    ) -> Result<(), CliError> {
        let mut releases: Vec<RepoPath> =
            touched.iter().filter(|path| path.is_inside(project)).cloned().collect();
        let is_strangers = releases.is_empty()
            && !self.findings.known.contains(project)
            && self.scope[project].agreement == ListingAgreement::None;
        let complete = self.scope[project].are_builders.then_some(ReleaseState::Complete);
        for state in [ReleaseState::Collecting, ReleaseState::Revoked].into_iter().chain(complete) {
            let found = self.list_releases(client, project, state).await?;
            releases.extend(found.into_iter().filter(|path| !touched.contains(path)));
        }
        if is_strangers && releases.len() > MAX_STRANGERS_RELEASES {
            self.findings.is_cut = true;
            releases.truncate(MAX_STRANGERS_RELEASES);
        }
        for path in releases {
            if self.scope.values().map(|project| project.releases.len()).sum::<usize>() >= MAX_RELEASES {
                self.findings.is_cut = true;
                break;
            }
            match client.state_at(&path).await {
                Ok(shown) => {
                    // The signers of the project stay as they were fetched with it.
                    let is_of_release = |file: &RepoPath| file.as_str().starts_with(path.as_str());
                    self.scratch.absorb(&shown.files, is_of_release);
                    if let Some(project) = self.scope.get_mut(project) {
                        project.releases.insert(path);
                    }
                }
                Err(error) => self.note_unread(&path, &error),
            }
        }
        Ok(())
    }

    fn add_project(&mut self, project: RepoPath, history: &History) {
        let question = &self.findings.question;
        let agreement = ListingAgreement::of(history, question);
        let files = list_files(history);
        let mut builders = files.iter().flat_map(|file| keys_of(file.builder_groups()));
        let are_builders = builders.any(|key| question.keys.contains(&key));
        self.scope.insert(project, FetchedProject { agreement, are_builders, releases: BTreeSet::new() });
    }

    async fn list_signed(
        &mut self,
        client: &ServerClient,
        key: &PublicKey,
    ) -> Result<Vec<SignedRelease>, CliError> {
        // Servers remember whole seconds.
        let since = self.findings.question.since.map(|since| since.to_whole_seconds().to_string());
        self.read_pages(async |after| {
            let query = [("since", since.as_deref()), ("after", after)];
            let query: Vec<_> = query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            let answer = client.signed_by(key, &query).await?;
            let last = answer.signed.last().map(|signed| signed.index_path.to_string());
            Ok((answer.signed, last, answer.more))
        })
        .await
    }

    /// Releases of a project in this state, which the keys need not have signed.
    async fn list_releases(
        &mut self,
        client: &ServerClient,
        project: &RepoPath,
        state: ReleaseState,
    ) -> Result<Vec<RepoPath>, CliError> {
        let since = self.findings.question.since;
        self.read_pages(async |after| {
            let mut query = vec![("project", project.as_str()), ("state", state.name())];
            query.extend(after.map(|after| ("after", after)));
            let ReleasesResponse { mut releases, more } = client.releases(&query).await?;
            let last = releases.last().map(|release| release.index_path.to_string());
            releases.retain(|release| release.revoked_at.zip(since).is_none_or(|(at, since)| at >= since));
            Ok((releases.into_iter().map(|release| release.index_path).collect(), last, more))
        })
        .await
    }

    /// What is on the pages of a list, until there is no more, or enough was found. `ask` gives what is on the page
    /// after a path, the last path on it, and whether there are more pages.
    async fn read_pages<T>(
        &mut self,
        ask: impl AsyncFn(Option<&str>) -> Result<(Vec<T>, Option<String>, bool), CliError>,
    ) -> Result<Vec<T>, CliError> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let (page, last, more) = ask(after.as_deref()).await?;
            found.extend(page);
            after = last.filter(|_| more && found.len() < MAX_RELEASES);
            if after.is_none() {
                self.findings.is_cut |= more;
                return Ok(found);
            }
        }
    }

    /// Gives the history of its signers.
    async fn fetch_project(
        &mut self,
        client: &ServerClient,
        project: &RepoPath,
    ) -> Result<History, CliError> {
        let Some(shown) = client.state(&layout::active_signers(project), &StateQuestion::Path).await? else {
            return Err(CliError::other(
                format!("the server {} has no project {project}", client.address()),
                "check its name, and --server: `countersign config` shows the servers and projects that are known here",
            ));
        };
        self.scratch.absorb(&shown.files, |_| true);
        Ok(shown.history().clone())
    }
}

/// Every signers file of a history, the newest first.
pub(super) fn list_files(history: &History) -> Vec<SignersFile> {
    let files = history.entries.iter().rev();
    files.filter_map(|entry| SignersFile::parse(entry.signers_config.as_bytes()).ok()).collect()
}

/// What was found, and whether all of it could be looked at.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) question: IncidentQuestion,
    /// The user's own first, those of strangers last (D219).
    pub(super) projects: Vec<ProjectIncident>,
    pub(super) faults: Vec<IncidentFault>,
    /// The server has more than was asked for.
    pub(super) is_cut: bool,
    /// Servers that say themselves that they are not ready, such as mirrors that do not have everything, and what could
    /// not be fetched.
    pub(super) unread: Vec<String>,
    /// The projects that this computer knows or the user named.
    known: BTreeSet<RepoPath>,
}

impl Findings {
    pub(super) fn new(question: IncidentQuestion, known: impl IntoIterator<Item = RepoPath>) -> Self {
        Self { question, known: known.into_iter().collect(), ..Self::default() }
    }

    /// Looks at these projects and their releases.
    pub(super) fn examine<'a>(
        &mut self,
        snapshot: &impl Snapshot,
        projects: impl IntoIterator<Item = &'a RepoPath>,
        releases: impl Fn(&RepoPath) -> Vec<RepoPath>,
    ) {
        for project in projects {
            match examine_project(snapshot, project, || releases(project), &self.question) {
                Ok(found) => self.projects.extend(found),
                Err(fault) => self.faults.push(fault),
            }
        }
        self.projects.sort_by_cached_key(|one| {
            let is_known = self.known.contains(&one.project);
            (!is_known, one.is_untouched(), one.agreement, one.project.clone())
        });
    }

    /// Whether a project is neither known here nor touched by the keys: strangers can list any key.
    pub(super) fn is_strangers(&self, incident: &ProjectIncident) -> bool {
        incident.is_untouched() && !self.known.contains(&incident.project)
    }
}

pub(super) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> CliError {
    CliError::other("the signers files cannot be read", "`countersign fsck` says what is damaged")
        .because(error)
}
