//! What a signer may be asked to sign (D34). Signing goes through here alone: bytes that are not what their path names
//! get no signature, whatever a server says that they are.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use thiserror::Error;

use crate::documents::index::{NotInSha256Sums, ReleaseIndex, render_sha256sums};
use crate::documents::said::{EarlierObjections, ObjectionsFile, RebuildsFile};
use crate::documents::signatures::{FormatTexts, SignatureSet};
use crate::documents::signers::{Metadata, SignersFile, keys_of};
use crate::documents::{fields::parse_path, history::History, layout, layout::Signable};
use crate::rules::chain::{ChainError, VerifiedChain};
use crate::rules::place::{PlaceError, check_place};
use crate::rules::snapshot::{ReadError, Scratch};
use crate::rules::{chain, decide::sign::SignaturesBody, quorum::Consent};
use crate::values::key::{PublicKey, Signature};
use crate::values::other_format::{FormatMessage, OpenpgpFile, OtherFormat, ReleaseSums, openpgp_contents};
use crate::values::time::Timestamp;
use crate::values::{digest::Sha512, json::ParseError, path::RepoPath, shown::shown_text};
use crate::{json_fields, proof::state::State, proof::state::StateSubject};

/// What a signer is asked to sign, as a server or a file of `sign --export` shows it. Nothing of it is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SigningRequest {
    #[serde(rename = "file_path")]
    pub path: RepoPath,
    /// The files by path: an index alone, or a signers file and its metadata.
    pub files: BTreeMap<RepoPath, String>,
    /// The history of the project's signers; empty for a first registration.
    #[serde(rename = "signers_history")]
    pub history: History,
    /// The signatures so far.
    pub collected: SignatureSet,
    /// The objections of signers to a release.
    #[serde(flatten, skip_serializing_if = "ObjectionsFile::is_empty")]
    pub objections: ObjectionsFile,
    /// What builders got from the source of it.
    #[serde(flatten, skip_serializing_if = "RebuildsFile::is_empty")]
    pub rebuilds: RebuildsFile,
    /// What signers said against earlier contents of it.
    #[serde(flatten, skip_serializing_if = "EarlierObjections::is_empty")]
    pub earlier: EarlierObjections,
}

/// A request that core has read as the kind of file that its path names.
#[derive(Debug, Clone)]
pub struct ToSign {
    path: RepoPath,
    digests: BTreeMap<RepoPath, Sha512>,
    pub subject: Subject,
}

#[derive(Debug, Clone)]
pub enum Subject {
    Release {
        index: ReleaseIndex,
        /// The signers in force, whose artifact signers are asked.
        chain: VerifiedChain,
    },
    Proposal {
        project: RepoPath,
        signers: Box<SignersFile>,
        metadata: Box<Metadata>,
        /// What it would replace; `None` for a first registration.
        current: Option<VerifiedChain>,
    },
}

/// The `SHA256SUMS` of a release that was read from its index.
#[derive(Debug, Clone)]
pub struct FormatsToSign<'a> {
    index: &'a RepoPath,
    mirrored_on: Timestamp,
    sums: String,
}

/// Why something cannot be signed in other formats.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoFormats {
    #[error("it is a signers file, and only releases are signed in other formats")]
    Signers,
    #[error(transparent)]
    Sums(#[from] NotInSha256Sums),
}

#[derive(Debug, Clone, Error)]
pub enum ToSignError {
    #[error(
        "{} cannot be signed: it must be the index of a release or a pending signers file",
        shown_text(.0.as_str())
    )]
    NotSignable(RepoPath),
    #[error("the files to sign are not those that belong to {}", shown_text(.0.as_str()))]
    OtherFiles(RepoPath),
    #[error("what is shown as {} is not an index: {error}", shown_text(.path.as_str()))]
    Index { path: RepoPath, error: ParseError },
    #[error("what is shown as {} does not belong there: {error}", shown_text(.path.as_str()))]
    Place { path: RepoPath, error: PlaceError },
    #[error("what is shown as {} is not a signers file: {error}", shown_text(.path.as_str()))]
    Signers { path: RepoPath, error: ParseError },
    #[error("what is shown as {} is not the metadata of a signers file: {error}", shown_text(.path.as_str()))]
    Metadata { path: RepoPath, error: ParseError },
    #[error("the metadata shown with {} belongs to another signers file or project", shown_text(.0.as_str()))]
    OtherMetadata(RepoPath),
    #[error(transparent)]
    History(#[from] ShownHistoryError),
    #[error(
        "{} is shown as a first registration, but its metadata names a signers file that it replaces",
        shown_text(.0.as_str())
    )]
    NotFirst(RepoPath),
    #[error("{} does not replace the signers file that is shown as the current one", shown_text(.0.as_str()))]
    NotNext(RepoPath),
    #[error(
        "the time inside {} is not later than that of the signers file that it replaces",
        shown_text(.0.as_str())
    )]
    NotLater(RepoPath),
    #[error(
        "{} was made before {since}, when its project began to require rebuilds, and could be shown as one from before",
        shown_text(.path.as_str())
    )]
    BeforeRebuilds { path: RepoPath, since: Timestamp },
}

json_fields!(object SigningRequest {
    earlier as "earlier_objections": or_default_with(EarlierObjections::parse_entries),
    objections: or_default_with(ObjectionsFile::parse_entries),
    rebuilds: or_default_with(RebuildsFile::parse_entries),
    path as "file_path": with(parse_path), files, history as "signers_history", collected,
});

impl SigningRequest {
    /// An index that no one has signed, with the history of its project's signers.
    pub fn of_index(path: RepoPath, index: String, history: History) -> Self {
        Self {
            files: BTreeMap::from([(path.clone(), index)]),
            path,
            history,
            collected: SignatureSet::default(),
            objections: ObjectionsFile::default(),
            rebuilds: RebuildsFile::default(),
            earlier: EarlierObjections::default(),
        }
    }

    /// Whether it is a project's first signers file.
    pub fn is_first(&self) -> bool {
        self.history.entries.is_empty()
    }

    /// Reads every byte that is to be signed as what it must be.
    pub fn check(&self) -> Result<ToSign, ToSignError> {
        let subject = match layout::signable(&self.path) {
            Some(Signable::Index) => self.check_index()?,
            Some(Signable::PendingSigners { project }) => self.check_proposal(project)?,
            None => return Err(ToSignError::NotSignable(self.path.clone())),
        };
        let digests: BTreeMap<_, _> =
            self.files.iter().map(|(path, text)| (path.clone(), Sha512::of(text.as_bytes()))).collect();
        Ok(ToSign { path: self.path.clone(), digests, subject })
    }

    /// What the signer is shown, as a repository in which nothing is that does not verify. `beside`: stored files that are
    /// not signed, but say more about what is.
    pub fn to_files(
        &self,
        project: &RepoPath,
        beside: &BTreeMap<RepoPath, String>,
    ) -> Result<Scratch, ReadError> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("documents are written as UTF-8");
        let mut files = beside.clone();
        files.extend(self.files.clone());
        files.insert(layout::pending_signatures_of(&self.path), text(self.collected.write()));
        let subject = match layout::signable(&self.path) {
            Some(Signable::PendingSigners { project }) => StateSubject::Project(project),
            Some(Signable::Index) | None => {
                files.insert(layout::objections_of(&self.path), text(self.objections.write()));
                files.insert(layout::earlier_objections_of(&self.path), text(self.earlier.write()));
                files.insert(layout::rebuilds_of(&self.path), text(self.rebuilds.write()));
                // The server's copy could be of another file than the one in force.
                let current = self.history.entries.last().map(|entry| entry.signers_config.clone());
                files.insert(layout::signers_copy_of(&self.path), current.unwrap_or_default());
                StateSubject::Release(self.path.clone())
            }
        };
        let history = Some(self.history.clone());
        State { subject, project: project.clone(), evidence: None, history, files }.to_files()
    }

    fn check_index(&self) -> Result<Subject, ToSignError> {
        let text = self.files.get(&self.path).filter(|_| self.files.len() == 1);
        let text = text.ok_or_else(|| ToSignError::OtherFiles(self.path.clone()))?;
        let path = || self.path.clone();
        let index = ReleaseIndex::parse(text.as_bytes())
            .map_err(|error| ToSignError::Index { path: path(), error })?;
        check_place(&index, &self.path).map_err(|error| ToSignError::Place { path: path(), error })?;
        let chain = verify_history(&self.history, &index.project_id)?;
        // Clients that verify the release go by the time in it (D261).
        if let Some(since) = chain.rebuilds_required_from()
            && chain.newest_proposed_until(index.mirrored_on) < since
        {
            let since = chain.links[since].metadata.origin.retrieved_at;
            return Err(ToSignError::BeforeRebuilds { path: path(), since });
        }
        Ok(Subject::Release { index, chain })
    }

    fn check_proposal(&self, project: RepoPath) -> Result<Subject, ToSignError> {
        let path = || self.path.clone();
        let metadata_path = layout::metadata_of(&self.path);
        let (text, metadata_text) = match (self.files.get(&self.path), self.files.get(&metadata_path)) {
            (Some(text), Some(metadata)) if self.files.len() == 2 => (text, metadata),
            _ => return Err(ToSignError::OtherFiles(path())),
        };
        let signers = SignersFile::parse(text.as_bytes())
            .map_err(|error| ToSignError::Signers { path: path(), error })?;
        let metadata = Metadata::parse(metadata_text.as_bytes())
            .map_err(|error| ToSignError::Metadata { path: metadata_path, error })?;
        if metadata.project_id != project || metadata.signers_file_digest != Sha512::of(text.as_bytes()) {
            return Err(ToSignError::OtherMetadata(path()));
        }
        let current = match (metadata.previous, self.history.entries.is_empty()) {
            (None, true) => None,
            (Some(_), true) => return Err(ToSignError::NotFirst(path())),
            (None, false) => return Err(ToSignError::NotNext(path())),
            (Some(previous), false) => {
                let chain = verify_history(&self.history, &project)?;
                if chain.last().digest != previous {
                    return Err(ToSignError::NotNext(path()));
                }
                if chain.last().signers.timestamp() >= signers.timestamp() {
                    return Err(ToSignError::NotLater(path()));
                }
                Some(chain)
            }
        };
        let (signers, metadata) = (Box::new(signers), Box::new(metadata));
        Ok(Subject::Proposal { project, signers, metadata, current })
    }
}

impl ToSign {
    pub fn path(&self) -> &RepoPath {
        &self.path
    }

    pub fn project(&self) -> &RepoPath {
        match &self.subject {
            Subject::Release { index, .. } => &index.project_id,
            Subject::Proposal { project, .. } => project,
        }
    }

    /// The history that the signer is shown; `None` for a first registration.
    pub fn chain(&self) -> Option<&VerifiedChain> {
        match &self.subject {
            Subject::Release { chain, .. } => Some(chain),
            Subject::Proposal { current, .. } => current.as_ref(),
        }
    }

    /// The digest of the file that the path names.
    pub fn digest(&self) -> &Sha512 {
        &self.digests[&self.path]
    }

    /// The keys whose signature is accepted.
    pub fn accepted_signers(&self) -> BTreeSet<PublicKey> {
        match &self.subject {
            Subject::Release { chain, .. } => keys_of(chain.last().signers.artifact_groups()).collect(),
            Subject::Proposal { signers, current, .. } => {
                let current = current.as_ref().map(|chain| &chain.last().signers);
                Consent { current, proposed: signers }.accepted_signers()
            }
        }
    }

    /// How often [`ToSign::sign`] asks the key.
    pub fn signature_count(&self) -> usize {
        self.digests.len()
    }

    /// Signs every file of the request; `sign` is the key's own operation, over a digest (D3).
    pub fn sign<E>(
        &self,
        public_key: PublicKey,
        sign: impl Fn(&Sha512) -> Result<Signature, E>,
    ) -> Result<SignaturesBody, E> {
        let signatures = self.digests.iter().map(|(path, digest)| Ok((path.clone(), sign(digest)?)));
        let signatures = signatures.collect::<Result<_, E>>()?;
        Ok(SignaturesBody {
            file_path: self.path.clone(),
            public_key,
            signatures,
            other_formats: FormatTexts::new(),
        })
    }

    /// The formats besides our own that the signers in force ask for (D100); none for a signers file.
    pub fn asked_formats(&self) -> &[OtherFormat] {
        match &self.subject {
            Subject::Release { chain, .. } => chain.last().signers.formats(),
            Subject::Proposal { .. } => &[],
        }
    }

    /// What is signed in other formats: the `SHA256SUMS` of this release, and nothing else.
    pub fn formats(&self) -> Result<FormatsToSign<'_>, NoFormats> {
        match &self.subject {
            Subject::Release { index, .. } => Ok(FormatsToSign {
                index: &self.path,
                mirrored_on: index.mirrored_on,
                sums: render_sha256sums(index)?,
            }),
            Subject::Proposal { .. } => Err(NoFormats::Signers),
        }
    }
}

impl FormatsToSign<'_> {
    pub fn sign<E>(
        &self,
        format: OtherFormat,
        signer: &PublicKey,
        files: &[OpenpgpFile],
        sign: impl Fn(&FormatMessage) -> Result<Signature, E>,
    ) -> Result<String, E> {
        format.sign(signer, &self.sums(), files, sign)
    }

    /// How many contents the release has that are signed by themselves for OpenPGP programs (D254); `None` if there are
    /// more than can be.
    pub fn openpgp_count(&self) -> Option<usize> {
        openpgp_contents(&self.sums()).map(|contents| contents.len())
    }

    fn sums(&self) -> ReleaseSums<'_> {
        let Self { index, mirrored_on, sums } = self;
        ReleaseSums { index, mirrored_on: *mirrored_on, text: sums }
    }
}

#[derive(Debug, Clone, Error)]
#[error("the history shown for {} is not valid: {error}", shown_text(.project.as_str()))]
pub struct ShownHistoryError {
    pub project: RepoPath,
    pub error: ChainError,
}

fn verify_history(history: &History, project: &RepoPath) -> Result<VerifiedChain, ShownHistoryError> {
    chain::verify(history, project).map_err(|error| ShownHistoryError { project: project.clone(), error })
}
