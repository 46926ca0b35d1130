//! What a revoker may be asked to sign (D34): a revocation of one release, and nothing else.

use std::collections::BTreeSet;

use serde::Serialize;
use thiserror::Error;

use crate::{
    documents::{
        fields::parse_path,
        history::History,
        index::ReleaseIndex,
        layout::{self, Signable},
        revocation::{Revocation, RevokeBody},
        signatures::SignatureSet,
        signers::{SignersFile, keys_of},
    },
    proof::shown_release::{ReadRelease, ShownReleaseError},
    rules::chain::{VerifiedChain, VerifiedLink},
    values::{
        digest::Sha512,
        json::{Field, FromField as _, ParseError},
        key::{PublicKey, Signature},
        path::RepoPath,
        shown::shown_text,
    },
};

/// A release and the document that revokes it, as a server or a file of `revoke --export` shows them. Nothing of it is
/// believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RevocationRequest {
    #[serde(rename = "file_path")]
    pub path: RepoPath,
    /// The text of the index.
    pub index: String,
    /// The text of the revocation document, which is what is signed.
    pub revocation: String,
    /// The history of the project's signers.
    #[serde(rename = "signers_history")]
    pub history: History,
    /// Who has signed the document so far; empty for one that is new.
    pub collected: SignatureSet,
}

/// A request that core has read as a revocation of the release that its path names.
#[derive(Debug, Clone)]
pub struct ToRevoke {
    path: RepoPath,
    text: String,
    pub index: ReleaseIndex,
    pub index_digest: Sha512,
    pub document: Revocation,
    pub chain: VerifiedChain,
    /// Those whose signature on the document was shown and verifies.
    pub signed: BTreeSet<PublicKey>,
}

#[derive(Debug, Clone, Error)]
pub enum ToRevokeError {
    #[error("{} cannot be revoked: it must be the index of a release", shown_text(.0.as_str()))]
    NotRevocable(RepoPath),
    #[error(transparent)]
    Release(#[from] ShownReleaseError),
    #[error("what is shown as the revocation is not a revocation of this file: {0}")]
    Document(ParseError),
    #[error("what is shown as the revocation is not a revocation of this file, {}", shown_text(.0.as_str()))]
    OtherFile(RepoPath),
    #[error("it is shown as a revocation that others began, but no key that can revoke has signed it")]
    NotBegun,
}

impl RevocationRequest {
    pub fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.object(&["file_path", "index", "revocation", "signers_history", "collected"])?;
        Ok(Self {
            path: parse_path(&object.required("file_path")?)?,
            index: object.required("index")?.string()?.to_owned(),
            revocation: object.required("revocation")?.string()?.to_owned(),
            history: History::parse_field(&object.required("signers_history")?)?,
            collected: SignatureSet::parse_field(&object.required("collected")?)?,
        })
    }

    pub fn check(&self) -> Result<ToRevoke, ToRevokeError> {
        let path = || self.path.clone();
        if layout::signable(&self.path) != Some(Signable::Index) {
            return Err(ToRevokeError::NotRevocable(path()));
        }
        let ReadRelease { index, index_digest, chain } =
            ReadRelease::read(&self.path, &self.index, &self.history)?;
        let document = Revocation::parse(self.revocation.as_bytes()).map_err(ToRevokeError::Document)?;
        if document.subject_digest != Some(index_digest) {
            return Err(ToRevokeError::OtherFile(path()));
        }
        let signed = self.collected.verifying_signers(self.revocation.as_bytes());
        // Who co-signs takes over the words of others: they must be those of someone who may revoke, or once might.
        let began = |link: &VerifiedLink| !revokers(&link.signers).is_disjoint(&signed);
        if !self.collected.entries.is_empty() && !chain.links.iter().any(began) {
            return Err(ToRevokeError::NotBegun);
        }
        let text = self.revocation.clone();
        Ok(ToRevoke { path: path(), text, index, index_digest, document, chain, signed })
    }
}

impl ToRevoke {
    pub fn path(&self) -> &RepoPath {
        &self.path
    }

    /// Who may revoke now.
    pub fn accepted_signers(&self) -> BTreeSet<PublicKey> {
        revokers(&self.chain.last().signers)
    }

    /// `sign` is the key's own operation, over a digest (D3).
    pub fn sign<E>(
        &self,
        public_key: PublicKey,
        sign: impl FnOnce(&Sha512) -> Result<Signature, E>,
    ) -> Result<RevokeBody, E> {
        Ok(RevokeBody {
            file_path: self.path.clone(),
            signature: sign(&Sha512::of(self.text.as_bytes()))?,
            revocation_json: self.text.clone(),
            public_key,
        })
    }
}

fn revokers(signers: &SignersFile) -> BTreeSet<PublicKey> {
    keys_of(&signers.revocation_groups()).collect()
}
