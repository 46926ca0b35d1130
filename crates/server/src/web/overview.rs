//! What people see of projects: their signers, their releases, their history. These modules count; the pages lay out.
//! What is seen of one release or proposal, `countersign_explain::describe` says.

use std::{ops::Range, sync::Arc};

use countersign_api::catalogue::{ReleaseVersion, compare_versions, find_newest};
use countersign_core::documents::layout;
use countersign_core::documents::signers::{Metadata, SignersFile, SignersOrigin};
use countersign_core::rules::snapshot::{ReadError, Snapshot};
use countersign_core::rules::{quorum::Tally, stored, stored::ReleaseState};
use countersign_core::values::{digest::Sha512, path::RepoPath, time::Timestamp, wire};
use countersign_explain::describe::proposal::{
    ProposalDescription, VetoedProposal, describe_proposal, list_vetoed, tally_proposal,
};
use countersign_explain::difference::{SignersChange, list_changes};
use countersign_explain::progress::{Member, Names};

// One project, with its signers and what is proposed.

#[derive(Debug, Clone)]
pub struct ProjectOverview {
    pub id: RepoPath,
    /// The signers in force; `None` while the first registration waits for signatures.
    pub signers: Option<Arc<SignersFile>>,
    /// The signers in force, or else those that are proposed.
    pub shown: Arc<SignersFile>,
    /// The digest of the signers file in force.
    pub digest: Option<Sha512>,
    /// How many signers files have been in force.
    pub steps: usize,
    pub proposal: Option<ProposalDescription>,
    /// What the masters vetoed last, since the signers in force took effect.
    pub vetoed: Option<VetoedProposal>,
}

/// What a badge shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectState {
    /// The first signers file waits for signatures.
    Registering(Tally),
    Registered {
        signers: usize,
        is_changing: bool,
    },
}

/// Describes a project; `None` if there is no project at `id`.
pub fn describe_project(
    snapshot: &impl Snapshot,
    id: &RepoPath,
) -> Result<Option<ProjectOverview>, ReadError> {
    let active = stored::active_signers(snapshot, id)?;
    let (signers, digest) = active.map(|active| (active.file, Sha512::of(&active.bytes))).unzip();
    let shown = match &signers {
        Some(signers) => Some(Arc::clone(signers)),
        None => snapshot.read_signers(&layout::pending_signers(id))?.map(|proposed| proposed.file),
    };
    let Some(shown) = shown else { return Ok(None) };
    Ok(Some(ProjectOverview {
        id: id.clone(),
        signers,
        shown,
        digest,
        steps: stored::history_len(snapshot, id),
        proposal: describe_proposal(snapshot, id)?,
        vetoed: list_vetoed(snapshot, id)?.into_iter().next(),
    }))
}

/// The state of a project; `None` if there is no project at `id`.
pub fn project_state(snapshot: &impl Snapshot, id: &RepoPath) -> Result<Option<ProjectState>, ReadError> {
    Ok(match stored::active_signers(snapshot, id)? {
        Some(active) => {
            let is_changing = snapshot.contains(&layout::pending_signers(id));
            Some(ProjectState::Registered { signers: active.file.signers().len(), is_changing })
        }
        None => tally_proposal(snapshot, id)?.map(ProjectState::Registering),
    })
}

// The releases of a project. They are read from the names of its files alone, because there can be tens of thousands.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseEntry {
    pub dir: String,
    pub state: ReleaseState,
    /// A revocation waits for more signatures.
    pub is_revoking: bool,
}

/// The state as which lists of a project count and filter a release. A begun revocation takes the place of the stored
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedState {
    Revoking,
    In(ReleaseState),
}

impl ListedState {
    /// Its name in the address of a list.
    pub fn name(self) -> &'static str {
        match self {
            Self::Revoking => "revocation_begun",
            Self::In(state) => state.name(),
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        if name == Self::Revoking.name() {
            return Some(Self::Revoking);
        }
        ReleaseState::parse(name).ok().map(Self::In)
    }
}

impl ReleaseEntry {
    fn listed_state(&self) -> ListedState {
        if self.is_revoking { ListedState::Revoking } else { ListedState::In(self.state) }
    }

    /// The path of its index; `None` if an operator stored a name by hand that no path can spell.
    pub fn index(&self) -> Option<RepoPath> {
        Some(layout::index_in(&RepoPath::parse(&self.dir).ok()?))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReleaseCounts {
    pub collecting: usize,
    /// The complete releases without a begun revocation.
    pub complete: usize,
    pub revoked: usize,
    /// The complete releases with a begun revocation.
    pub revoking: usize,
}

#[derive(Debug, Clone)]
pub struct ReleaseList {
    dir: RepoPath,
    entries: Vec<ReleaseEntry>,
    /// The last directory with a begun revocation, whose file comes before that of the signatures.
    revoking: String,
}

impl ReleaseList {
    /// The list of the releases at or below `dir`.
    pub fn below(dir: &RepoPath) -> Self {
        Self { dir: dir.clone(), entries: Vec::new(), revoking: String::new() }
    }

    /// Notes a file. The files of one directory must come one after the other.
    pub fn see(&mut self, path: &str) {
        let Some((dir, name)) = path.rsplit_once('/') else { return };
        let Some(suffix) = name.strip_prefix(wire::INDEX_FILE) else { return };
        if suffix.strip_prefix(wire::REVOCATION_SUFFIX) == Some(wire::PENDING_SUFFIX) {
            dir.clone_into(&mut self.revoking);
        }
        // The state of an index is told by the ending that its signatures file adds to the index's name.
        let state = match suffix.strip_prefix(wire::SIGNATURES_SUFFIX) {
            Some("") => ReleaseState::Complete,
            Some(wire::PENDING_SUFFIX) => ReleaseState::Collecting,
            Some(wire::REVOKED_SUFFIX) => ReleaseState::Revoked,
            Some(_) | None => return,
        };
        // An index has one signatures file. If there were two, the first would count.
        let is_new = self.entries.last().is_none_or(|last| last.dir != dir);
        if is_new && dir.starts_with(self.dir.as_str()) {
            let is_revoking = state == ReleaseState::Complete && self.revoking == dir;
            self.entries.push(ReleaseEntry { dir: dir.to_owned(), state, is_revoking });
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn count(&self) -> ReleaseCounts {
        self.entries.iter().fold(ReleaseCounts::default(), |mut counts, entry| {
            match entry.listed_state() {
                ListedState::Revoking => counts.revoking += 1,
                ListedState::In(ReleaseState::Collecting) => counts.collecting += 1,
                ListedState::In(ReleaseState::Complete) => counts.complete += 1,
                ListedState::In(ReleaseState::Revoked) => counts.revoked += 1,
            }
            counts
        })
    }

    /// The one that is offered to visitors (D77).
    pub fn find_newest(&self) -> Option<&ReleaseEntry> {
        let at = self.dir.as_str().len();
        find_newest(&self.entries, |entry| {
            let ReleaseEntry { dir, state, is_revoking, .. } = *entry;
            ReleaseVersion { dir: &dir[at..], state: *state, is_revoking: *is_revoking }
        })
    }

    /// Keeps those in a state, whose directory below the project contains `words` in any letter case.
    pub fn filter(mut self, state: Option<ListedState>, words: &str) -> Self {
        let (at, words) = (self.dir.as_str().len(), words.to_lowercase());
        self.entries.retain(|entry| {
            state.is_none_or(|state| entry.listed_state() == state)
                && entry.dir[at..].to_lowercase().contains(&words)
        });
        self
    }

    /// The releases in this range: begun revocations first, then the highest version. Sorts only this range.
    pub fn newest(mut self, range: Range<usize>) -> Vec<ReleaseEntry> {
        // What all have in common need not be compared.
        let at = self.dir.as_str().len();
        let descending = |a: &ReleaseEntry, b: &ReleaseEntry| {
            let order = b.is_revoking.cmp(&a.is_revoking);
            order.then_with(|| compare_versions(&b.dir[at..], &a.dir[at..]))
        };
        let (from, to) = (range.start.min(self.len()), range.end.min(self.len()));
        if from >= to {
            return Vec::new();
        }
        if from > 0 {
            self.entries.select_nth_unstable_by(from, descending);
            self.entries.drain(..from);
        }
        if to - from < self.entries.len() {
            self.entries.select_nth_unstable_by(to - from, descending);
            self.entries.truncate(to - from);
        }
        self.entries.sort_by(descending);
        self.entries
    }
}

impl ReleaseCounts {
    pub fn total(&self) -> usize {
        self.collecting + self.complete + self.revoked + self.revoking
    }
}

// All signers files that were ever in force, with what each changed and who agreed.

#[derive(Debug, Clone)]
pub struct TimelineStep {
    /// The number of the step, counted from 1, the first signers file.
    pub number: usize,
    pub activated_at: Timestamp,
    /// The time in the signers file itself.
    pub dated: Timestamp,
    pub digest: Sha512,
    pub origin: SignersOrigin,
    pub changes: Vec<SignersChange>,
    pub agreed: Vec<Member>,
}

/// Lists these steps of a project's history, counted from 0 at the oldest. Reads only their entries and the one before.
pub fn list_steps(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    range: Range<usize>,
) -> Result<Vec<TimelineStep>, ReadError> {
    let len = stored::history_len(snapshot, project);
    let (from, to) = (range.start.min(len), range.end.min(len));
    let entries = stored::history(snapshot, project, from.max(1)..=to)?.entries;
    let mut before = None;
    let mut steps = Vec::new();
    for (number, entry) in (from.max(1)..).zip(&entries) {
        let path = layout::history_entry(project, number);
        let signers = stored::parse_stored(&path, SignersFile::parse(entry.signers_config.as_bytes()))?;
        if number > from {
            let names = Names::of(before.iter().chain([&signers]));
            let metadata = stored::parse_stored(&path, Metadata::parse(entry.metadata.as_bytes()))?;
            steps.push(TimelineStep {
                number,
                activated_at: entry.timestamp,
                dated: signers.timestamp(),
                digest: Sha512::of(entry.signers_config.as_bytes()),
                origin: metadata.origin,
                changes: list_changes(before.as_ref(), &signers),
                agreed: names.list_signed(&entry.signatures),
            });
        }
        before = Some(signers);
    }
    Ok(steps)
}
