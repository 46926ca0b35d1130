//! What an objector signs (D34): an objection to one release, and nothing else.

use thiserror::Error;

use crate::{
    documents::{
        history::History,
        index::ReleaseIndex,
        layout::{self, Signable},
        objections::{ObjectBody, Objection},
    },
    proof::shown_release::{ReadRelease, ShownReleaseError},
    rules::chain::VerifiedChain,
    values::{
        digest::Sha512,
        json::ParseError,
        key::{PublicKey, Signature},
        path::RepoPath,
        shown::shown_text,
        time::Timestamp,
    },
};

/// A release as a server shows it, and what the objector says of it. Nothing that is shown is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectionRequest {
    pub path: RepoPath,
    /// The text of the index.
    pub index: String,
    /// The history of the project's signers.
    pub history: History,
    /// `None` takes back what the objector said before.
    pub text: Option<String>,
    pub timestamp: Timestamp,
}

/// A request that core has read as an objection to the release that its path names.
#[derive(Debug, Clone)]
pub struct ToObject {
    path: RepoPath,
    document: String,
    pub index: ReleaseIndex,
    pub index_digest: Sha512,
    pub chain: VerifiedChain,
}

#[derive(Debug, Clone, Error)]
pub enum ToObjectError {
    #[error("{} is not the index of a release", shown_text(.0.as_str()))]
    NotARelease(RepoPath),
    #[error(transparent)]
    Release(#[from] ShownReleaseError),
    #[error("this is not an objection: {0}")]
    Objection(ParseError),
}

impl ObjectionRequest {
    pub fn check(&self) -> Result<ToObject, ToObjectError> {
        if layout::signable(&self.path) != Some(Signable::Index) {
            return Err(ToObjectError::NotARelease(self.path.clone()));
        }
        let ReadRelease { index, index_digest, chain } =
            ReadRelease::read(&self.path, &self.index, &self.history)?;
        let (text, timestamp) = (self.text.clone(), self.timestamp);
        let document = Objection { text, subject_digest: index_digest, timestamp }.write();
        // As everyone will read it.
        Objection::parse(&document).map_err(ToObjectError::Objection)?;
        let document = String::from_utf8_lossy(&document).into_owned();
        Ok(ToObject { path: self.path.clone(), document, index, index_digest, chain })
    }
}

impl ToObject {
    /// `sign` is the key's own operation, over a digest (D3).
    pub fn sign<E>(
        &self,
        public_key: PublicKey,
        sign: impl FnOnce(&Sha512) -> Result<Signature, E>,
    ) -> Result<ObjectBody, E> {
        Ok(ObjectBody {
            file_path: self.path.clone(),
            signature: sign(&Sha512::of(self.document.as_bytes()))?,
            objection_json: self.document.clone(),
            public_key,
        })
    }
}
