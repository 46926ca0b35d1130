//! Collecting a signature (spec §4.3; D15–D17), and what its completion sets off.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use thiserror::Error;

use crate::documents::fields::{parse_by_any_path, parse_key, parse_signature};
use crate::documents::index::{NotInSha256Sums, ReleaseIndex, render_sha256sums};
use crate::documents::signatures::{Collected, FormatTexts, SignatureSet, parse_texts};
use crate::documents::{history::Agreement, layout, layout::Signable, signers::has_member};
use crate::json_fields;
use crate::rules::decide::activate::{Activation, activate};
use crate::rules::snapshot::{Change, ReadError, Snapshot, StoredSigners};
use crate::rules::{quorum, quorum::Consent, snapshot, stored, stored::ReleaseState, stored::StoredProposal};
use crate::values::key::{PublicKey, Signature};
use crate::values::other_format::{FormatError, OtherFormat, ReleaseSums};
use crate::values::{bounds::OTHER_FORMATS_BYTES, digest::Sha512, path::RepoPath, time::Timestamp};

/// One signer's signatures on one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignaturesBody {
    /// The file that is signed.
    pub file_path: RepoPath,
    /// The signer, who may be another than the caller.
    #[serde(serialize_with = "PublicKey::serialize_base64")]
    pub public_key: PublicKey,
    /// By path: the file itself and, for a signers file, its metadata.
    pub signatures: BTreeMap<RepoPath, Signature>,
    /// By format, `minisign`, `openpgp` or `ssh`: the signer's signatures on the `SHA256SUMS` of a release, as those programs write
    /// them. `openpgp` can go on with signatures on files by themselves. Optional. They count for nothing here.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, String>, nullable = false))]
    #[serde(skip_serializing_if = "FormatTexts::is_empty")]
    pub other_formats: FormatTexts,
}

json_fields!(body SignaturesBody {
    signatures: with(|field| parse_by_any_path(field, parse_signature)), file_path, public_key: with(parse_key),
    other_formats: or_default_with(parse_texts),
});

/// A submission, and which of its signatures are known to verify. Verifying takes longer than the rest of the decision, and
/// may be done before its turn comes.
#[derive(Debug, Clone)]
pub struct Prepared {
    submission: SignaturesBody,
    /// What was signed, by path.
    verified: BTreeMap<RepoPath, Sha512>,
    /// The index whose `SHA256SUMS` the other formats sign.
    verified_formats: Option<Sha512>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed {
    /// Whether all signatures are there that are needed.
    pub is_complete: bool,
    /// The time at which a signers file takes effect that has all signatures and waits (D130).
    pub waits_until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SignRefusal {
    #[error("No signature provided for the primary file: {0}")]
    MissingPrimary(RepoPath),
    #[error("No signature provided for the metadata file: {0}")]
    MissingMetadata(RepoPath),
    #[error("A signature was given for {0}, which is not part of this submission")]
    UnexpectedPath(RepoPath),
    #[error("File not found: {0}")]
    NotFound(RepoPath),
    #[error("{0} does not collect signatures; only release indexes and proposed signers files do")]
    NotSignable(RepoPath),
    #[error("{0} is complete already")]
    AlreadyComplete(RepoPath),
    #[error("{0} is revoked")]
    Revoked(RepoPath),
    #[error("the key {key} may not sign {path}")]
    NotAllowed { key: PublicKey, path: RepoPath },
    #[error("Signature already collected for the key {0}")]
    AlreadySigned(PublicKey),
    #[error("Invalid signature: it does not verify for {0}")]
    BadSignature(RepoPath),
    #[error("Only releases are signed in other formats, and {0} is a signers file")]
    FormatsOfSigners(RepoPath),
    #[error("{path} cannot be signed in other formats: {reason}")]
    NoSums { path: RepoPath, reason: NotInSha256Sums },
    #[error("The {format} signature for {path} is refused: {error}")]
    BadFormat { format: OtherFormat, path: RepoPath, error: FormatError },
    #[error(
        "The signatures on {0} in other formats would have more than {OTHER_FORMATS_BYTES} bytes: sign no file \
         by itself, or sign without them"
    )]
    FormatsTooLarge(RepoPath),
    #[error(transparent)]
    Stored(#[from] ReadError),
}

pub fn sign(
    snapshot: &impl Snapshot,
    submission: &SignaturesBody,
    now: Timestamp,
) -> Result<(Change, Signed), SignRefusal> {
    let submission = submission.clone();
    let prepared = Prepared { submission, verified: BTreeMap::new(), verified_formats: None };
    sign_prepared(snapshot, &prepared, now)
}

/// Decides as [`sign`] does. What is known of the signatures counts only if the same content is signed.
pub fn sign_prepared(
    snapshot: &impl Snapshot,
    prepared: &Prepared,
    now: Timestamp,
) -> Result<(Change, Signed), SignRefusal> {
    let submission = &prepared.submission;
    let signable = layout::signable(&submission.file_path);
    submission.check_paths(signable.as_ref())?;
    match signable {
        Some(Signable::Index) => sign_index(snapshot, prepared, now),
        Some(Signable::PendingSigners { project }) => sign_proposal(snapshot, prepared, &project, now),
        None if stored::is_served(snapshot, &submission.file_path) => {
            Err(SignRefusal::NotSignable(submission.file_path.clone()))
        }
        None => Err(SignRefusal::NotFound(submission.file_path.clone())),
    }
}

impl SignaturesBody {
    /// Verifies the signatures on what `snapshot` has, of at most two files. Whatever is wrong is left to the decision: who
    /// may sign is checked there.
    pub fn prepare(self, snapshot: &impl Snapshot) -> Prepared {
        let (mut verified, mut verified_formats) = (BTreeMap::new(), None);
        if self.check_paths(layout::signable(&self.file_path).as_ref()).is_ok() {
            for (path, signature) in &self.signatures {
                let Ok(Some(bytes)) = snapshot.read(path) else { continue };
                let digest = Sha512::of(&bytes);
                if self.public_key.verify(&digest, signature).is_ok() {
                    verified.insert(path.clone(), digest);
                    let signs_formats = *path == self.file_path && self.verify_formats(&bytes).is_ok();
                    verified_formats = verified_formats.or(signs_formats.then_some(digest));
                }
            }
        }
        Prepared { submission: self, verified, verified_formats }
    }

    fn verify_formats(&self, index: &[u8]) -> Result<(), SignRefusal> {
        if self.other_formats.is_empty() {
            return Ok(());
        }
        let index = stored::parse_stored(&self.file_path, ReleaseIndex::parse(index))?;
        let text = render_sha256sums(&index)
            .map_err(|reason| SignRefusal::NoSums { path: self.file_path.clone(), reason })?;
        let sums = ReleaseSums { index: &self.file_path, mirrored_on: index.mirrored_on, text: &text };
        for (&format, text) in &self.other_formats {
            format.verify(text, &self.public_key, &sums).map_err(|error| SignRefusal::BadFormat {
                format,
                path: self.file_path.clone(),
                error,
            })?;
        }
        Ok(())
    }

    fn check_paths(&self, signable: Option<&Signable>) -> Result<(), SignRefusal> {
        if !self.signatures.contains_key(&self.file_path) {
            return Err(SignRefusal::MissingPrimary(self.file_path.clone()));
        }
        let metadata = match signable {
            Some(Signable::PendingSigners { .. }) => Some(layout::metadata_of(&self.file_path)),
            Some(Signable::Index) | None => None,
        };
        if let Some(path) = metadata.as_ref().filter(|path| !self.signatures.contains_key(*path)) {
            return Err(SignRefusal::MissingMetadata(path.clone()));
        }
        if metadata.is_some() && !self.other_formats.is_empty() {
            return Err(SignRefusal::FormatsOfSigners(self.file_path.clone()));
        }
        let is_expected = |path: &&RepoPath| **path == self.file_path || metadata.as_ref() == Some(*path);
        match self.signatures.keys().find(|path| !is_expected(path)) {
            Some(path) => Err(SignRefusal::UnexpectedPath(path.clone())),
            None => Ok(()),
        }
    }

    fn check_new(&self, set: &SignatureSet, is_accepted: bool) -> Result<(), SignRefusal> {
        if !is_accepted {
            return Err(SignRefusal::NotAllowed { key: self.public_key, path: self.file_path.clone() });
        }
        if set.entries.contains_key(&self.public_key) {
            return Err(SignRefusal::AlreadySigned(self.public_key));
        }
        Ok(())
    }

    fn commit_message(&self, title: &str, subject: &RepoPath) -> String {
        snapshot::message(title, subject, &self.public_key)
    }
}

impl Prepared {
    /// Adds the submission's signature on `path` to `set`, if it verifies.
    fn collect(
        &self,
        path: &RepoPath,
        bytes: &[u8],
        set: &mut SignatureSet,
        now: Timestamp,
    ) -> Result<(), SignRefusal> {
        let SignaturesBody { public_key: signer, signatures, .. } = &self.submission;
        let signature = signatures.get(path).ok_or_else(|| SignRefusal::MissingPrimary(path.clone()))?;
        let digest = Sha512::of(bytes);
        if self.verified.get(path) != Some(&digest) {
            signer.verify(&digest, signature).map_err(|_| SignRefusal::BadSignature(path.clone()))?;
        }
        set.add(*signer, Collected { signature: *signature, collected_at: now.to_whole_seconds() });
        Ok(())
    }

    /// The file beside the index with the submission's other formats in it, if they verify; `None` if it has none.
    fn collect_formats(
        &self,
        snapshot: &impl Snapshot,
        index: &[u8],
    ) -> Result<Option<Vec<u8>>, SignRefusal> {
        let SignaturesBody { file_path: file, public_key: signer, other_formats, .. } = &self.submission;
        if other_formats.is_empty() {
            return Ok(None);
        }
        if self.verified_formats != Some(Sha512::of(index)) {
            self.submission.verify_formats(index)?;
        }
        let mut formats = stored::other_formats(snapshot, file)?;
        formats.entries.insert(*signer, other_formats.clone());
        let bytes = formats.write();
        if bytes.len() > OTHER_FORMATS_BYTES {
            return Err(SignRefusal::FormatsTooLarge(file.clone()));
        }
        Ok(Some(bytes))
    }
}

fn sign_index(
    snapshot: &impl Snapshot,
    prepared: &Prepared,
    now: Timestamp,
) -> Result<(Change, Signed), SignRefusal> {
    let submission = &prepared.submission;
    let file = &submission.file_path;
    match stored::index_state(snapshot, file)? {
        None => return Err(SignRefusal::NotFound(file.clone())),
        Some(ReleaseState::Complete) => return Err(SignRefusal::AlreadyComplete(file.clone())),
        Some(ReleaseState::Revoked) => return Err(SignRefusal::Revoked(file.clone())),
        Some(ReleaseState::Collecting) => {}
    }
    let mut set = stored::collected_signatures(snapshot, file)?;
    let StoredSigners { bytes: copy, file: governing, .. } = stored::signers_copy(snapshot, file)?;
    // Nothing becomes complete except under the configuration in force (D16).
    let active = stored::signers_in_force(snapshot, file)?;
    if active.is_none_or(|active| active.bytes != copy) {
        return Err(stored::corrupt(file, "its governing signers file is not the current one").into());
    }
    let is_accepted = has_member(governing.artifact_groups(), &submission.public_key);
    submission.check_new(&set, is_accepted)?;
    let index = stored::require(snapshot, file)?;
    prepared.collect(file, &index, &mut set, now)?;
    let formats = prepared.collect_formats(snapshot, &index)?;
    let is_complete = quorum::is_met(governing.artifact_groups(), &set.signers());
    let mut change;
    if is_complete {
        change = Change::new(submission.commit_message(snapshot::COMPLETE, file));
        change.write(layout::signatures_of(file), set.write());
        change.delete(layout::pending_signatures_of(file));
        stored::delete_present(snapshot, &mut change, layout::registrant_of(file));
    } else {
        change = Change::new(submission.commit_message(snapshot::SIGN, file));
        change.write(layout::pending_signatures_of(file), set.write());
    }
    if let Some(formats) = formats {
        change.write(layout::other_formats_of(file), formats);
    }
    Ok((change, Signed { is_complete, waits_until: None }))
}

fn sign_proposal(
    snapshot: &impl Snapshot,
    prepared: &Prepared,
    project: &RepoPath,
    now: Timestamp,
) -> Result<(Change, Signed), SignRefusal> {
    let submission = &prepared.submission;
    let (file, metadata_file) = (&submission.file_path, layout::metadata_of(&submission.file_path));
    let proposal = StoredProposal::load(snapshot, file)?;
    let mut proposal = proposal.ok_or_else(|| SignRefusal::NotFound(file.clone()))?;
    let current = stored::active_signers(snapshot, project)?.map(|active| active.file);
    let proposed = Arc::clone(&proposal.signers);
    let consent = Consent { current: current.as_deref(), proposed: &proposed };
    let is_accepted = consent.accepted_signers().contains(&submission.public_key);
    submission.check_new(&proposal.signatures, is_accepted)?;
    prepared.collect(file, &proposal.signers_bytes, &mut proposal.signatures, now)?;
    prepared.collect(&metadata_file, &proposal.metadata_bytes, &mut proposal.metadata_signatures, now)?;
    let signed = proposal.signed();
    let is_complete = signed.iter().all(|signed| consent.is_complete(signed));
    let delay = consent.delay(&signed);
    if is_complete && delay.is_none() {
        let change = Change::new(submission.commit_message(snapshot::ACTIVATE, project));
        let activation = Activation { project, now, agreement: None };
        let change = activate(snapshot, change, &proposal, &activation)?;
        return Ok((change, Signed { is_complete, waits_until: None }));
    }
    let mut agreement = stored::agreement(snapshot, file)?;
    let mut change = Change::new(submission.commit_message(snapshot::SIGN, file));
    if let Some(delay) = delay.filter(|_| is_complete && agreement.is_none()) {
        let agreed = Agreement::new(now, delay);
        change =
            Change::new(submission.commit_message(snapshot::AGREE, project) + &snapshot::due_line(&agreed));
        change.write(layout::agreement_of(file), agreed.write());
        agreement = Some(agreed);
    }
    change.write(layout::pending_signatures_of(file), proposal.signatures.write());
    change.write(layout::pending_signatures_of(&metadata_file), proposal.metadata_signatures.write());
    Ok((change, Signed { is_complete, waits_until: agreement.map(|agreement| agreement.due_at) }))
}
