//! Offline verification of a release: from evidence that a server or bundle shows to what it proves.

use std::{collections::BTreeMap, collections::BTreeSet, fmt};

use serde::Serialize;
use thiserror::Error;

use crate::documents::index::{PublishedFile, ReleaseIndex};
use crate::documents::said::RebuildsFile;
use crate::documents::signers::{Group, SignersFile, keys_of};
use crate::documents::statement::{Revocation, SignedStatement, StatementKind};
use crate::documents::{
    fields::parse_path, history::History, signatures::SignatureSet, signed_request::SignedRequest,
};
use crate::json_fields;
use crate::rules::chain::{ChainError, VerifiedChain, VerifiedLink};
use crate::rules::reproduction::Reproduction;
use crate::rules::{chain, place::PlaceError, place::check_place, quorum};
use crate::values::shown::{plural, quoted};
use crate::values::{digest::Sha512, json::ParseError, key::PublicKey, path::RepoPath, time::Timestamp};

/// What a server or a bundle shows for the index at `path`. Nothing of it is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    #[serde(rename = "index_path")]
    pub path: RepoPath,
    /// The exact text that was signed.
    pub index: String,
    pub signatures: SignatureSet,
    /// Which signers file of the history the index was signed under.
    #[serde(rename = "signers_file_digest")]
    pub governed_by: Sha512,
    /// The whole history of the project's signers.
    #[serde(rename = "signers_history")]
    pub history: History,
    pub revocation: Option<RevocationEvidence>,
    /// What builders state. One that does not verify, or is about something else, says nothing.
    #[serde(flatten, skip_serializing_if = "RebuildsFile::is_empty")]
    pub rebuilds: RebuildsFile,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RevocationEvidence {
    /// The exact text that was signed.
    pub document: String,
    pub signatures: SignatureSet,
    /// The signers file of the history that allowed it.
    #[serde(rename = "signers_file_digest")]
    pub governed_by: Sha512,
    /// The signed request, if the document does not say itself which file is meant (D20).
    pub request: Option<SignedRequest>,
}

// Its fields stand among those of a bundle, which refuses others.
json_fields!(part Evidence {
    path as "index_path": with(parse_path), index, signatures, governed_by as "signers_file_digest",
    history as "signers_history", revocation, rebuilds: or_default_with(RebuildsFile::parse_entries),
});
json_fields!(object RevocationEvidence {
    document, signatures, governed_by as "signers_file_digest", request,
});

/// An index that enough of the right people have signed. No revocation of it was shown.
#[derive(Debug, Clone)]
pub struct VerifiedArtifact {
    pub path: RepoPath,
    pub index: ReleaseIndex,
    pub index_digest: Sha512,
    pub chain: VerifiedChain,
    /// The link of the chain that the index was signed under.
    governing: usize,
    /// The artifact signers who signed, with the time at which the server says that it got their signatures.
    pub signed_by: BTreeMap<PublicKey, Timestamp>,
    /// How far builders have reproduced it; `None` if no signers file that counts names builders.
    pub reproduction: Option<Reproduction>,
}

#[derive(Debug, Clone)]
pub struct VerifiedRevocation {
    pub document: Revocation,
    pub revoked_by: BTreeSet<PublicKey>,
}

/// An index that was signed as it must be, and revoked as it must be.
#[derive(Debug, Clone)]
pub struct RevokedArtifact {
    pub artifact: VerifiedArtifact,
    pub revocation: VerifiedRevocation,
}

#[derive(Debug, Clone, Error)]
pub enum VerifyError {
    #[error("the index is invalid: {0}")]
    Index(ParseError),
    #[error("the index does not belong to its path: {0}")]
    Place(#[from] PlaceError),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("the signers file that the index was signed under is not in the project's history")]
    UnknownGovernor,
    #[error("the signature of {0} on the index does not verify")]
    BadSignature(PublicKey),
    #[error("not enough of the right people have signed: {}", shown_groups(.groups))]
    TooFew { groups: Vec<GroupCount> },
    #[error("the revocation is not valid: {0}")]
    Revocation(#[from] RevocationFault),
    #[error("the release is not reproduced, and its project wants no one to use it before that: {}", shown_lack(.0))]
    NotReproduced(Box<VerifiedArtifact>),
    #[error("the release is revoked: {}", quoted(&.0.revocation.document.reason))]
    Revoked(Box<RevokedArtifact>),
}

/// How far a group of signers has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupCount {
    pub threshold: usize,
    pub size: usize,
    pub signed: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RevocationFault {
    #[error("its document is invalid: {0}")]
    Document(ParseError),
    #[error("it is about another file")]
    OtherFile,
    #[error(
        "it has no `subject_digest`, and the signed request that would name the file is missing or invalid"
    )]
    NoRequest,
    #[error("the signers file that allowed it is not in the project's history, or older than the release's")]
    UnknownGovernor,
    #[error("the signature of {0} does not verify")]
    BadSignature(PublicKey),
    #[error("not enough of the keys that can revoke have signed it")]
    NotAllowed,
    #[error("the key in `initiator` has not signed it")]
    NoInitiator,
}

impl VerifiedArtifact {
    /// The signers file that the index was signed under.
    pub fn governing(&self) -> &VerifiedLink {
        &self.chain.links[self.governing]
    }

    /// The signers file that has replaced the governing one since, if one has.
    pub fn replaced_by(&self) -> Option<&VerifiedLink> {
        self.chain.links.get(self.governing + 1)
    }

    pub fn file(&self, name: &str) -> Option<&PublishedFile> {
        self.index.published_files.iter().find(|file| file.file_name.as_str() == name)
    }

    /// How many of each group of the artifact signers have signed.
    pub fn groups(&self) -> Vec<GroupCount> {
        count_groups(&self.governing().signers, &self.signed_by.keys().copied().collect())
    }
}

/// Checks everything that can be checked without asking anyone. Whether the root of the chain is the right one, and
/// whether this is the newest state, only the caller can find out.
pub fn verify(evidence: &Evidence) -> Result<VerifiedArtifact, VerifyError> {
    let index = ReleaseIndex::parse(evidence.index.as_bytes()).map_err(VerifyError::Index)?;
    check_place(&index, &evidence.path)?;
    let chain = chain::verify(&evidence.history, &index.project_id)?;
    let governing = chain.position(&evidence.governed_by).ok_or(VerifyError::UnknownGovernor)?;
    let signed = evidence.signatures.verify(evidence.index.as_bytes());
    let signed = signed.map_err(|(key, _)| VerifyError::BadSignature(key))?;
    let link = &chain.links[governing];
    let groups = link.signers.artifact_groups();
    if !quorum::is_met(groups, &signed) {
        return Err(VerifyError::TooFew { groups: count_groups(&link.signers, &signed) });
    }
    let members: BTreeSet<PublicKey> = keys_of(groups).collect();
    let signatures = evidence.signatures.entries.iter().filter(|(key, _)| members.contains(key));
    let index_digest = Sha512::of(evidence.index.as_bytes());
    let stated = evidence.rebuilds.keep_verifying(&evidence.path, &index_digest);
    let artifact = VerifiedArtifact {
        reproduction: judge_rebuilds(&chain, governing, &index, &stated),
        path: evidence.path.clone(),
        index,
        index_digest,
        signed_by: signatures.map(|(key, collected)| (*key, collected.collected_at)).collect(),
        governing,
        chain,
    };
    match &evidence.revocation {
        None if artifact.reproduction.as_ref().is_some_and(Reproduction::is_lacking) => {
            Err(VerifyError::NotReproduced(Box::new(artifact)))
        }
        None => Ok(artifact),
        Some(shown) => {
            let revocation = verify_revocation(shown, &artifact)?;
            Err(VerifyError::Revoked(Box::new(RevokedArtifact { artifact, revocation })))
        }
    }
}

/// How far the release is reproduced, by all signers files that may refuse it.
fn judge_rebuilds(
    chain: &VerifiedChain,
    governing: usize,
    index: &ReleaseIndex,
    stated: &RebuildsFile,
) -> Option<Reproduction> {
    let made = chain.newest_proposed_until(index.mirrored_on);
    let between = chain.links[made.min(governing)..=made.max(governing)].iter().map(|link| &link.signers);
    let judged = Reproduction::judge_by_all(index, &chain.links[governing].signers, between, stated);
    judged.map(|judged| judged.asked_under(&chain.last().signers))
}

fn verify_revocation(
    shown: &RevocationEvidence,
    artifact: &VerifiedArtifact,
) -> Result<VerifiedRevocation, RevocationFault> {
    let text = shown.document.as_bytes();
    let document = Revocation::parse(text).map_err(RevocationFault::Document)?;
    let allowed_by = artifact.chain.position(&shown.governed_by);
    let allowed_by = allowed_by.filter(|link| *link >= artifact.governing);
    let allowed_by = &artifact.chain.links[allowed_by.ok_or(RevocationFault::UnknownGovernor)?];
    let signed = shown.signatures.verify(text).map_err(|(key, _)| RevocationFault::BadSignature(key))?;
    let groups = allowed_by.signers.revocation_groups();
    if !quorum::is_met(&groups, &signed) {
        return Err(RevocationFault::NotAllowed);
    }
    if document.initiator.is_some_and(|initiator| !signed.contains(&initiator)) {
        return Err(RevocationFault::NoInitiator);
    }
    match document.subject_digest {
        Some(subject) if subject == artifact.index_digest => {}
        Some(_) => return Err(RevocationFault::OtherFile),
        None => check_request(shown, artifact, &groups)?,
    }
    let revoked_by = keys_of(&groups).filter(|key| signed.contains(key)).collect();
    Ok(VerifiedRevocation { document, revoked_by })
}

/// The revoker's own request names the file where the document does not. It speaks for no other key, so this one
/// must be enough (D20).
fn check_request(
    shown: &RevocationEvidence,
    artifact: &VerifiedArtifact,
    groups: &[Group],
) -> Result<(), RevocationFault> {
    let request = shown.request.as_ref().ok_or(RevocationFault::NoRequest)?;
    request.verify().map_err(|_| RevocationFault::NoRequest)?;
    let body = SignedStatement::parse(StatementKind::Revocation, request.payload.as_bytes());
    let body = body.map_err(|_| RevocationFault::NoRequest)?;
    let revoker = request.public_key;
    let is_by_revoker = body.public_key == revoker && shown.signatures.entries.contains_key(&revoker);
    if !is_by_revoker || body.text != shown.document {
        return Err(RevocationFault::NoRequest);
    }
    if !quorum::is_met(groups, &BTreeSet::from([revoker])) {
        return Err(RevocationFault::NotAllowed);
    }
    if body.file_path == artifact.path { Ok(()) } else { Err(RevocationFault::OtherFile) }
}

fn shown_lack(artifact: &VerifiedArtifact) -> String {
    artifact.reproduction.as_ref().map(|reproduction| reproduction.tally.to_string()).unwrap_or_default()
}

/// How far each group of the artifact signers has come.
pub fn count_groups(signers: &SignersFile, signed: &BTreeSet<PublicKey>) -> Vec<GroupCount> {
    let groups = signers.artifact_groups().iter();
    groups
        .map(|group| GroupCount {
            threshold: group.threshold,
            size: group.signers.len(),
            signed: quorum::count(group, signed),
        })
        .collect()
}

impl fmt::Display for GroupCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threshold, size, signed } = self;
        let signed = signed.min(threshold);
        write!(f, "{signed} of {threshold} signature{}", plural(*threshold))?;
        write!(f, " (any {threshold} of {size} key{})", plural(*size))
    }
}

fn shown_groups(groups: &[GroupCount]) -> String {
    groups.iter().map(GroupCount::to_string).collect::<Vec<_>>().join("; ")
}
