//! Questions about releases and projects.

use std::{cmp::Reverse, collections::BTreeSet, fmt, ops::Bound, sync::Arc, sync::RwLockReadGuard};

use countersign_api::catalogue::{ListedRelease, ProjectsResponse, ReleaseState, ReleasesResponse};
use countersign_api::catalogue::{ReleaseVersion, compare_versions, find_newest};
use countersign_core::documents::{index::PublishedFile, index::ReleaseIndex, layout};
use countersign_core::rules::{place::path_of_url, snapshot::ReadError, stored};
use countersign_core::values::bounds::{LIST_ENTRIES, LIST_READ_BYTES};
use countersign_core::values::path::{PathError, RepoPath};
use thiserror::Error;

use crate::catalogue::describe::KnownRelease;
use crate::catalogue::facts::{DigestHasher, FileDigest, Reading, Seconds};
use crate::catalogue::tables::{ProjectId, ReleaseId, Tables, reversed_name};
use crate::snapshot::Head;

/// How many higher versions are named that are not offered as the newest.
const MOST_SKIPPED: usize = 10;

/// The catalogue with one head, from which every answer is read. The catalogue changes only when it is let go.
pub struct Look<'a> {
    pub(super) head: Arc<Head>,
    pub(super) tables: RwLockReadGuard<'a, Tables>,
    pub(super) hasher: &'a DigestHasher,
}

/// Which releases of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedReleases {
    /// The project, in any letter case.
    pub project: RepoPath,
    pub tag: Option<String>,
    pub state: Option<ReleaseState>,
}

/// The last names of a project's identifier, such as `acme/app`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectName(RepoPath);

impl ProjectName {
    pub fn parse(text: &str) -> Result<Self, PathError> {
        RepoPath::parse(text).map(Self)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no release has its index at {0}: give the index_path of an entry of the list before")]
pub struct UnknownAfter(pub RepoPath);

impl fmt::Debug for Look<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Look").field(&self.head.commit).finish()
    }
}

/// Entries until the list is full, or enough was read.
pub(super) struct List<'a, T> {
    pub(super) reading: Reading<'a>,
    pub(super) entries: Vec<T>,
}

impl<'a, T> List<'a, T> {
    pub(super) fn of(head: &'a Head) -> Self {
        Self { reading: Reading::of(head), entries: Vec::new() }
    }

    pub(super) fn is_full(&self) -> bool {
        let has_read_enough = self.reading.bytes() >= LIST_READ_BYTES && !self.entries.is_empty();
        self.entries.len() == LIST_ENTRIES || has_read_enough
    }

    /// Adds what `read` gives. One file that cannot be read must not hide the others.
    pub(super) fn add(&mut self, read: impl FnOnce(&Reading<'a>) -> Result<Option<T>, ReadError>) {
        match read(&self.reading) {
            Ok(entry) => self.entries.extend(entry),
            Err(error) => tracing::error!(%error, "an entry is left out of a list"),
        }
    }

    /// Adds what `read` gives of each item, until the list is full. Gives whether there are more items.
    pub(super) fn fill<I>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        read: impl Fn(&Reading<'a>, I) -> Result<Option<T>, ReadError>,
    ) -> bool {
        for item in items {
            if self.is_full() {
                return true;
            }
            self.add(|reading| read(reading, item));
        }
        false
    }
}

impl Look<'_> {
    pub fn head(&self) -> &Arc<Head> {
        &self.head
    }

    /// Complete and revoked releases that list a file with this digest. The oldest come first, so that no later one can
    /// hide them.
    pub fn releases_with(
        &self,
        digest: &FileDigest,
        after: Option<&RepoPath>,
    ) -> Result<ReleasesResponse, UnknownAfter> {
        let hash = self.hasher.hash(digest);
        let from = match after {
            None => Bound::Included((hash, 0, 0)),
            Some(after) => {
                let (id, registered_at) = self.find_after(after)?;
                Bound::Excluded((hash, registered_at, id))
            }
        };
        let range = (from, Bound::Included((hash, Seconds::MAX, ReleaseId::MAX)));
        let found = self.tables.digests.range(range).map(|(_, _, id)| *id);
        Ok(self.list(found, |reading, release| {
            let listed = release.describe(reading)?;
            let listed = listed.filter(|listed| listed.state != ReleaseState::Collecting);
            let Some(listed) = listed else { return Ok(None) };
            let bytes = stored::require(reading, &release.path)?;
            let index = stored::parse_stored(&release.path, ReleaseIndex::parse(&bytes))?;
            let file = index.published_files.into_iter().find(|file| has_digest(file, digest));
            Ok(file.map(|file| ListedRelease { file_name: Some(file.file_name.to_string()), ..listed }))
        }))
    }

    /// Releases of a project, the newest first.
    pub fn releases_of(
        &self,
        wanted: &WantedReleases,
        after: Option<&RepoPath>,
    ) -> Result<ReleasesResponse, UnknownAfter> {
        let after = after.map(|after| self.find_after(after)).transpose()?;
        let project = self.head.index.find_project(&wanted.project);
        let id = project.and_then(|project| Some((project, self.tables.project_id(project)?)));
        let Some((project, id)) = id else { return Ok(self.list([], describe)) };
        let found: Vec<ReleaseId> = match &wanted.tag {
            Some(tag) => {
                let dir = layout::release_dir(project, tag).ok();
                let found = dir.and_then(|dir| self.tables.find_release(&layout::index_in(&dir)));
                let is_wanted = |state| wanted.state.is_none_or(|wanted| Some(wanted) == state);
                let found = found.filter(|(_, row)| is_wanted(row.state) && after.is_none());
                found.map(|(id, _)| id).into_iter().collect()
            }
            None => {
                let states = wanted.state.map_or(ReleaseState::ALL.to_vec(), |state| vec![state]);
                self.newest_of(id, &states, after)
            }
        };
        Ok(self.list(found, describe))
    }

    /// The newest release of a project (D77), if it has one.
    pub fn newest_release_of(&self, project: &RepoPath) -> ReleasesResponse {
        let project = self.head.index.find_project(project);
        let complete = project.and_then(|project| self.tables.project_id(project)).map(|id| {
            let row = |seconds, release| (id, ReleaseState::Complete, Reverse(seconds), Reverse(release));
            self.tables.by_project.range(row(Seconds::MAX, ReleaseId::MAX)..=row(0, 0))
        });
        let complete = complete.into_iter().flatten().map(|(_, state, _, Reverse(id))| (*id, *state));
        let newest = find_newest(complete, |(id, state)| ReleaseVersion {
            dir: self.tables.release(*id).dir(),
            state: *state,
            is_revoking: self.tables.is_begun(*id),
        });
        self.list(newest.map(|(id, _)| id), describe)
    }

    /// Versions above the newest release that are not offered as such: they are revoked, or their revocation was begun.
    /// The highest come first.
    pub fn skipped_above(&self, project: &RepoPath, newest: Option<&ListedRelease>) -> Vec<ListedRelease> {
        let mut skipped = Vec::new();
        for state in [ReleaseState::Complete, ReleaseState::Revoked] {
            let wanted = WantedReleases { project: project.clone(), tag: None, state: Some(state) };
            let Ok(found) = self.releases_of(&wanted, None) else { continue };
            skipped.extend(found.releases.into_iter().filter(|release| {
                let is_refused = release.state == ReleaseState::Revoked || release.revocation_begun.is_some();
                let is_above = |newest: &ListedRelease| compare_versions(release.dir(), newest.dir()).is_gt();
                is_refused && newest.is_none_or(is_above)
            }));
        }
        skipped.sort_by(|a, b| compare_versions(b.dir(), a.dir()));
        skipped.truncate(MOST_SKIPPED);
        skipped
    }

    /// The newest releases, from each state in turn, one more than fits into a list.
    fn newest_of(
        &self,
        project: ProjectId,
        states: &[ReleaseState],
        after: Option<(ReleaseId, Seconds)>,
    ) -> Vec<ReleaseId> {
        let mut found = Vec::new();
        for state in states {
            let from = match after {
                None => Bound::Included((project, *state, Reverse(Seconds::MAX), Reverse(ReleaseId::MAX))),
                Some((id, at)) => Bound::Excluded((project, *state, Reverse(at), Reverse(id))),
            };
            let to = Bound::Included((project, *state, Reverse(0), Reverse(0)));
            let range = self.tables.by_project.range((from, to)).take(LIST_ENTRIES + 1);
            found.extend(range.map(|(_, _, at, id)| (*at, *id)));
        }
        found.sort_unstable();
        found.truncate(LIST_ENTRIES + 1);
        found.into_iter().map(|(_, Reverse(id))| id).collect()
    }

    /// Projects with this name and signers in force; if there are none, those that are being registered.
    pub fn projects_named(&self, ProjectName(name): &ProjectName) -> ProjectsResponse {
        let prefix = reversed_name(name.as_str());
        let tables = &*self.tables;
        let find = |names: &BTreeSet<(String, ProjectId)>| -> Vec<RepoPath> {
            let from = names.range((prefix.clone(), 0)..);
            let named = from.take_while(|(name, _)| name.starts_with(&prefix)).take(LIST_ENTRIES + 1);
            named.map(|(_, id)| tables.project(*id).clone()).collect()
        };
        let mut projects = find(&tables.active_names);
        if projects.is_empty() {
            projects = find(&tables.pending_names);
        }
        let more = projects.len() > LIST_ENTRIES;
        projects.truncate(LIST_ENTRIES);
        projects.sort_unstable();
        ProjectsResponse { projects, more }
    }

    /// Projects in whose identifiers all words of a search occur, with signers in force or not.
    pub fn projects_found(&self, search: &ProjectSearch) -> ProjectsResponse {
        let found = self.head.index.projects().filter(|(folded, _)| search.matches(folded));
        let mut projects: Vec<RepoPath> =
            found.map(|(_, project)| project.clone()).take(LIST_ENTRIES + 1).collect();
        let more = projects.len() > LIST_ENTRIES;
        projects.truncate(LIST_ENTRIES);
        ProjectsResponse { projects, more }
    }

    /// The projects in which a revocation waits for more signatures.
    pub fn revoking_projects(&self) -> BTreeSet<&RepoPath> {
        self.tables.begun.keys().map(|(project, _, _)| self.tables.project(*project)).collect()
    }

    fn find_after(&self, after: &RepoPath) -> Result<(ReleaseId, Seconds), UnknownAfter> {
        let found = self.tables.find_release(after).filter(|(_, row)| row.state.is_some());
        found.map(|(id, row)| (id, row.registered_at)).ok_or_else(|| UnknownAfter(after.clone()))
    }

    fn list(
        &self,
        found: impl IntoIterator<Item = ReleaseId>,
        describe: impl Fn(&Reading<'_>, KnownRelease<'_>) -> Result<Option<ListedRelease>, ReadError>,
    ) -> ReleasesResponse {
        let mut list = List::of(&self.head);
        let more = list.fill(found, |reading, id| describe(reading, self.known(id)));
        ReleasesResponse { releases: list.entries, more }
    }

    pub(super) fn known(&self, id: ReleaseId) -> KnownRelease<'_> {
        let row = self.tables.release(id);
        let project = self.tables.project(row.project);
        KnownRelease { path: self.tables.path_of(id), project, registered_at: row.registered_at }
    }
}

fn describe(reading: &Reading<'_>, release: KnownRelease<'_>) -> Result<Option<ListedRelease>, ReadError> {
    release.describe(reading)
}

fn has_digest(file: &PublishedFile, digest: &FileDigest) -> bool {
    match digest {
        FileDigest::Sha256(digest) => file.digests.sha256 == Some(*digest),
        FileDigest::Sha512(digest) => file.digests.sha512 == Some(*digest),
    }
}

// The search for a project by words, as people type or paste them.

/// Words that must all occur in a project's identifier, in any letter case.
#[derive(Debug, Clone, Default)]
pub struct ProjectSearch {
    words: Vec<Word>,
}

#[derive(Debug, Clone)]
enum Word {
    Part(String),
    /// A URL, as the path that it has on this server.
    Path(String),
}

impl ProjectSearch {
    pub fn parse(text: &str) -> Self {
        let words = text.split_whitespace().map(|word| match path_of_url(word) {
            Some(path) => Word::Path(path.as_str().to_ascii_lowercase()),
            None => Word::Part(word.to_ascii_lowercase()),
        });
        Self { words: words.collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether a project matches, by its identifier in lower case.
    pub fn matches(&self, folded: &str) -> bool {
        self.words.iter().all(|word| match word {
            Word::Part(part) => folded.contains(part.as_str()) || contains_across_port(folded, part),
            // The project itself, something in it, or a directory above it.
            Word::Path(path) => is_at_or_below(path, folded) || is_at_or_below(folded, path),
        })
    }
}

fn is_at_or_below(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the identifier contains what people write without the port, as in `example.org/acme`.
fn contains_across_port(folded: &str, part: &str) -> bool {
    let Some((host, rest)) = part.split_once('/') else { return false };
    let mut segments = folded.splitn(4, '/');
    let (Some(_), Some(own), Some(_), Some(below)) =
        (segments.next(), segments.next(), segments.next(), segments.next())
    else {
        return false;
    };
    own.ends_with(host) && below.starts_with(rest)
}
