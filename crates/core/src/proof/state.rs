//! Everything that a repository has about one release or one project, as of one commit (D232). A server gathers it; a
//! client, which believes nothing of it, reads it as a small repository of its own.

use std::collections::BTreeMap;

use crate::documents::history::{History, HistoryEntry};
use crate::documents::index::{ReleaseIndex, render_sha256sums};
use crate::documents::said::{EarlierObjections, ObjectionsFile, RebuildsFile};
use crate::documents::signatures::{OtherFormatsFile, SignatureSet};
use crate::documents::{layout, layout::Signable, signed_request::SignedRequest, signed_request::Withdrawal};
use crate::proof::verify::{Evidence, RevocationEvidence};
use crate::rules::snapshot::{ReadError, Scratch, Snapshot, corrupt, parse_stored};
use crate::rules::{decide::statement::list_records, stored, stored::ReleaseState};
use crate::values::{digest::Sha512, json::ParseError, other_format::ReleaseSums, path::RepoPath};

/// What a state is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateSubject {
    /// A release, by the path of its index. It is there, or was withdrawn.
    Release(RepoPath),
    /// A project: its signers in force, those that are proposed, and those that were vetoed.
    Project(RepoPath),
}

/// The state of a release or a project, with the exact stored text of everything that someone signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub subject: StateSubject,
    pub project: RepoPath,
    /// The evidence of a complete or revoked release. It has the history.
    pub evidence: Option<Evidence>,
    /// The history of the project's signers, where no evidence has it.
    pub history: Option<History>,
    /// All other stored files that belong to the subject.
    pub files: BTreeMap<RepoPath, String>,
}

impl StateSubject {
    /// The path that names the subject: that of an index, or of a project.
    pub fn path(&self) -> &RepoPath {
        match self {
            Self::Release(path) | Self::Project(path) => path,
        }
    }

    /// What is at `path`: an index, a signers file, a release's directory, or a project. In a directory that is both, a release
    /// that is there comes first, then signers that are proposed, then a release that was withdrawn. `None` if there is
    /// nothing of these.
    pub fn find(snapshot: &impl Snapshot, path: &RepoPath) -> Option<Self> {
        let has = |file: &RepoPath| snapshot.contains(file);
        let is_project = |project: &RepoPath| {
            has(&layout::active_signers(project)) || has(&layout::pending_signers(project))
        };
        let project = match layout::signable(path) {
            Some(Signable::Index) => {
                let is_known = has(path) || has(&layout::withdrawal_of(path));
                return is_known.then(|| Self::Release(path.clone()));
            }
            Some(Signable::PendingSigners { project }) => Some(project),
            None => layout::project_of_active_signers(path),
        };
        if let Some(project) = project {
            return is_project(&project).then_some(Self::Project(project));
        }
        let index = layout::index_in(path);
        let is_proposed = has(&layout::pending_signers(path));
        if has(&index) || !is_proposed && has(&layout::withdrawal_of(&index)) {
            return Some(Self::Release(index));
        }
        is_project(path).then(|| Self::Project(path.clone()))
    }

    /// The release of a project that has this tag, or this directory. One that is there comes before one that was withdrawn.
    pub fn find_tag(snapshot: &impl Snapshot, project: &RepoPath, tag: &str) -> Option<Self> {
        let indexes = Self::indexes_of_tag(project, tag);
        let is_there = |index: &&RepoPath| snapshot.contains(index);
        let was_there = |index: &&RepoPath| snapshot.contains(&layout::withdrawal_of(index));
        let found = indexes.iter().find(is_there).or_else(|| indexes.iter().find(was_there));
        found.map(|index| Self::Release(index.clone()))
    }

    /// The paths at which the release of a project with this tag can be: releases of a forge have a place of their own,
    /// those of a file server are directories.
    pub fn indexes_of_tag(project: &RepoPath, tag: &str) -> Vec<RepoPath> {
        let dirs = [layout::release_dir(project, tag), RepoPath::parse(&format!("{project}/{tag}"))];
        dirs.iter().flatten().map(layout::index_in).collect()
    }

    /// Whether a file at this path can belong to the subject.
    fn has_file(&self, path: &RepoPath) -> bool {
        match self {
            Self::Release(index) => files_of_release(index).contains(path),
            Self::Project(project) => {
                path.is_inside(&layout::vetoed_dir(project))
                    || files_of_proposal(&layout::pending_signers(project)).contains(path)
            }
        }
    }
}

impl State {
    /// Reads everything about a subject that [`StateSubject::find`] found in the same snapshot.
    pub fn gather(snapshot: &impl Snapshot, subject: StateSubject) -> Result<Self, ReadError> {
        match &subject {
            StateSubject::Release(index) => {
                let project = snapshot.governing_project(index).ok_or_else(|| stored::ungoverned(index))?;
                let history = read_history(snapshot, &project)?;
                let mut files = files_of_release(index);
                let (evidence, history) = match stored::index_state(snapshot, index)? {
                    Some(ReleaseState::Complete | ReleaseState::Revoked) => {
                        let of_evidence = files_of_evidence(index);
                        files.retain(|path| !of_evidence.contains(path));
                        (Some(gather_evidence(snapshot, index, history)?), None)
                    }
                    Some(ReleaseState::Collecting) | None => (None, Some(history)),
                };
                let files = read_files(snapshot, files)?;
                Ok(Self { project, evidence, history, files, subject })
            }
            StateSubject::Project(project) => {
                let mut files = files_of_proposal(&layout::pending_signers(project));
                if let Some(newest) = list_records(snapshot, project)?.pop() {
                    files.extend([layout::signatures_of(&newest.path), newest.path]);
                }
                let files = read_files(snapshot, files)?;
                let history = Some(read_history(snapshot, project)?);
                Ok(Self { project: project.clone(), evidence: None, history, files, subject })
            }
        }
    }

    /// Leaves out the entries of the history up to that of the signers file with this digest, if there is one. Returns
    /// whether there is.
    pub fn leave_out(&mut self, known: &Sha512) -> bool {
        let history = match (&mut self.evidence, &mut self.history) {
            (Some(evidence), _) => &mut evidence.history,
            (None, Some(history)) => history,
            (None, None) => return false,
        };
        let is_known = |entry: &HistoryEntry| Sha512::of(entry.signers_config.as_bytes()) == *known;
        let position = history.entries.iter().rposition(is_known);
        if let Some(position) = position {
            history.entries.drain(..=position);
        }
        position.is_some()
    }

    /// Puts entries before those of the history, which were left out.
    pub fn put_before(&mut self, known: History) {
        let history = match &mut self.evidence {
            Some(evidence) => &mut evidence.history,
            None => self.history.get_or_insert_default(),
        };
        history.entries.splice(..0, known.entries);
    }

    /// The history of the project's signers.
    pub fn history(&self) -> &History {
        static NONE: History = History { entries: Vec::new() };
        let of_evidence = self.evidence.as_ref().map(|evidence| &evidence.history);
        of_evidence.or(self.history.as_ref()).unwrap_or(&NONE)
    }

    /// The files as a repository. Nothing is in it that its author did not sign: signatures, objections and a withdrawal
    /// that do not verify are left out. Whether the signers are the right ones, and enough, others find out.
    pub fn to_files(&self) -> Result<Scratch, ReadError> {
        let mut scratch = Scratch::default();
        for (path, text) in self.files.iter().filter(|(path, _)| self.subject.has_file(path)) {
            scratch.put(path.clone(), text.as_bytes());
        }
        let history = self.history();
        for (number, entry) in (1..).zip(&history.entries) {
            scratch.put(layout::history_entry(&self.project, number), entry.write());
        }
        if let Some(last) = history.entries.last() {
            scratch.put(layout::active_signers(&self.project), last.signers_config.as_bytes());
        }
        if let Some(evidence) = &self.evidence {
            put_evidence(&mut scratch, evidence);
        }
        match &self.subject {
            StateSubject::Release(index) => keep_verifying_release(&mut scratch, index)?,
            StateSubject::Project(project) => keep_verifying_proposal(&mut scratch, project)?,
        }
        Ok(scratch)
    }
}

/// All files that can be stored about a release.
fn files_of_release(index: &RepoPath) -> Vec<RepoPath> {
    let mut files = files_of_evidence(index);
    files.extend(
        [
            layout::pending_signatures_of,
            layout::registrant_of,
            layout::other_formats_of,
            layout::objections_of,
            layout::earlier_objections_of,
            layout::withdrawal_of,
            layout::pending_revocation_of,
            layout::pending_revocation_signatures_of,
        ]
        .map(|name| name(index)),
    );
    files
}

/// The files that evidence has.
fn files_of_evidence(index: &RepoPath) -> Vec<RepoPath> {
    let revocation = layout::revocation_of(index);
    vec![
        index.clone(),
        layout::signatures_of(index),
        layout::revoked_signatures_of(index),
        layout::signers_copy_of(index),
        layout::signatures_of(&revocation),
        layout::signers_copy_of(&revocation),
        layout::request_of(&revocation),
        revocation,
        layout::rebuilds_of(index),
    ]
}

/// All files that can be stored about proposed signers.
fn files_of_proposal(pending: &RepoPath) -> Vec<RepoPath> {
    let metadata = layout::metadata_of(pending);
    vec![
        pending.clone(),
        layout::pending_signatures_of(pending),
        layout::pending_signatures_of(&metadata),
        metadata,
        layout::registration_of(pending),
        layout::agreement_of(pending),
        layout::pending_veto_of(pending),
        layout::pending_signatures_of(&layout::veto_of(pending)),
    ]
}

fn read_files(
    snapshot: &impl Snapshot,
    paths: Vec<RepoPath>,
) -> Result<BTreeMap<RepoPath, String>, ReadError> {
    let mut files = BTreeMap::new();
    for path in paths {
        if let Some(text) = read_text(snapshot, &path)? {
            files.insert(path, text);
        }
    }
    Ok(files)
}

fn read_text(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<String>, ReadError> {
    let Some(bytes) = snapshot.read(path)? else { return Ok(None) };
    let text = String::from_utf8(bytes.to_vec());
    text.map(Some).map_err(|_| corrupt(path, "it is not UTF-8"))
}

fn read_history(snapshot: &impl Snapshot, project: &RepoPath) -> Result<History, ReadError> {
    stored::history(snapshot, project, 1..=stored::history_len(snapshot, project))
}

fn gather_evidence(
    snapshot: &impl Snapshot,
    index: &RepoPath,
    history: History,
) -> Result<Evidence, ReadError> {
    let require = |path: RepoPath| read_text(snapshot, &path)?.ok_or_else(|| corrupt(&path, "it is missing"));
    let document = layout::revocation_of(index);
    let revocation = match read_text(snapshot, &document)? {
        Some(text) => Some(RevocationEvidence {
            document: text,
            signatures: snapshot.read_signatures(&layout::signatures_of(&document))?.unwrap_or_default(),
            governed_by: stored::signers_copy(snapshot, &document)?.digest,
            request: snapshot.read_document(&layout::request_of(&document), SignedRequest::parse)?,
        }),
        None => None,
    };
    let signatures = match revocation {
        Some(_) => layout::revoked_signatures_of(index),
        None => layout::signatures_of(index),
    };
    Ok(Evidence {
        path: index.clone(),
        index: require(index.clone())?,
        signatures: snapshot.read_signatures(&signatures)?.unwrap_or_default(),
        governed_by: stored::signers_copy(snapshot, index)?.digest,
        history,
        revocation,
        rebuilds: stored::rebuilds(snapshot, index)?,
    })
}

/// Files that say what evidence says.
fn put_evidence(scratch: &mut Scratch, evidence: &Evidence) {
    let Evidence { path, index, signatures, governed_by, history, revocation, rebuilds } = evidence;
    let put_copy = |scratch: &mut Scratch, of: &RepoPath, digest: &Sha512| {
        let mut entries = history.entries.iter();
        if let Some(entry) = entries.find(|entry| Sha512::of(entry.signers_config.as_bytes()) == *digest) {
            scratch.put(layout::signers_copy_of(of), entry.signers_config.as_bytes());
        }
    };
    scratch.put(path.clone(), index.as_bytes());
    put_copy(scratch, path, governed_by);
    if !rebuilds.is_empty() {
        scratch.put(layout::rebuilds_of(path), rebuilds.write());
    }
    let Some(revocation) = revocation else {
        scratch.put(layout::signatures_of(path), signatures.write());
        return;
    };
    scratch.put(layout::revoked_signatures_of(path), signatures.write());
    let document = layout::revocation_of(path);
    scratch.put(document.clone(), revocation.document.as_bytes());
    scratch.put(layout::signatures_of(&document), revocation.signatures.write());
    put_copy(scratch, &document, &revocation.governed_by);
    if let Some(request) = &revocation.request {
        scratch.put(layout::request_of(&document), request.write());
    }
}

fn keep_verifying_release(scratch: &mut Scratch, index: &RepoPath) -> Result<(), ReadError> {
    for signatures in [layout::signatures_of, layout::revoked_signatures_of, layout::pending_signatures_of] {
        keep_verifying(scratch, index, &signatures(index))?;
    }
    let revocation = layout::revocation_of(index);
    keep_verifying(scratch, &revocation, &layout::signatures_of(&revocation))?;
    let begun = layout::pending_revocation_of(index);
    keep_verifying(scratch, &begun, &layout::pending_revocation_signatures_of(index))?;
    let text = scratch.read(index)?;
    let digest = text.as_deref().map(Sha512::of);
    // These block nothing, so that nonsense in their place does not either.
    rewrite(scratch, &layout::objections_of(index), |bytes| {
        let file = ObjectionsFile::parse(bytes).ok().zip(digest);
        let kept = file.map(|(file, digest)| file.keep_verifying(&digest));
        Ok(kept.filter(|kept| !kept.entries.is_empty()).map(|kept| kept.write()))
    })?;
    rewrite(scratch, &layout::rebuilds_of(index), |bytes| {
        let file = RebuildsFile::parse(bytes).ok().zip(digest);
        let kept = file.map(|(file, digest)| file.keep_verifying(index, &digest));
        Ok(kept.filter(|kept| !kept.is_empty()).map(|kept| kept.write()))
    })?;
    rewrite(scratch, &layout::earlier_objections_of(index), |bytes| {
        // Also those to the content that is there now, if it was there before.
        let kept = EarlierObjections::parse(bytes).ok().map(|file| file.keep_verifying());
        Ok(kept.filter(|kept| !kept.is_empty()).map(|kept| kept.write()))
    })?;
    let sums = text.and_then(|text| {
        let index = ReleaseIndex::parse(&text).ok()?;
        Some((index.mirrored_on, render_sha256sums(&index).ok()?))
    });
    rewrite(scratch, &layout::other_formats_of(index), |bytes| {
        let file = OtherFormatsFile::parse(bytes).ok().zip(sums);
        let kept = file.map(|(file, (mirrored_on, text))| {
            file.keep_verifying(&ReleaseSums { index, mirrored_on, text: &text })
        });
        Ok(kept.filter(|kept| !kept.entries.is_empty()).map(|kept| kept.write()))
    })?;
    rewrite(scratch, &layout::withdrawal_of(index), |bytes| {
        let Withdrawal { request, body } = Withdrawal::parse(bytes)?;
        let is_its_own = body.file_path == *index && request.verify().is_ok();
        Ok(is_its_own.then(|| bytes.to_vec()))
    })
}

fn keep_verifying_proposal(scratch: &mut Scratch, project: &RepoPath) -> Result<(), ReadError> {
    let pending = layout::pending_signers(project);
    let metadata = layout::metadata_of(&pending);
    for file in [&pending, &metadata] {
        keep_verifying(scratch, file, &layout::pending_signatures_of(file))?;
    }
    let signatures = layout::pending_signatures_of(&layout::veto_of(&pending));
    keep_verifying(scratch, &layout::pending_veto_of(&pending), &signatures)?;
    for record in list_records(scratch, project)? {
        keep_verifying(scratch, &record.path, &layout::signatures_of(&record.path))?;
    }
    Ok(())
}

/// Leaves only those signatures that verify on a document.
fn keep_verifying(
    scratch: &mut Scratch,
    document: &RepoPath,
    signatures: &RepoPath,
) -> Result<(), ReadError> {
    let text = scratch.read(document)?;
    rewrite(scratch, signatures, |bytes| {
        let set = SignatureSet::parse(bytes)?;
        Ok(text.map(|text| set.keep_verifying(&text).write()))
    })
}

/// Replaces a file that is there; `None` removes it.
fn rewrite(
    scratch: &mut Scratch,
    path: &RepoPath,
    change: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, ParseError>,
) -> Result<(), ReadError> {
    let Some(bytes) = scratch.read(path)? else { return Ok(()) };
    match parse_stored(path, change(&bytes))? {
        Some(bytes) => scratch.put(path.clone(), bytes),
        None => scratch.remove(path),
    }
    Ok(())
}
