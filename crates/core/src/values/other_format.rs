//! Signatures that other programs verify (D100, D101): over the `SHA256SUMS` of a release, as OpenSSH and minisign write
//! them. A text has one form only: it is read, written again, and compared.

use std::fmt;

use thiserror::Error;

use crate::json_words;
use crate::values::key::{PublicKey, Signature};
use crate::values::path::RepoPath;

mod message;
pub mod minisign;
pub mod ssh;

pub use self::message::FormatMessage;

/// A format besides our own. Sorted by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(rename_all = "lowercase"))]
pub enum OtherFormat {
    Minisign,
    Ssh,
}

/// The `SHA256SUMS` of a release, and the index that it was made from.
#[derive(Debug, Clone, Copy)]
pub struct ReleaseSums<'a> {
    pub index: &'a RepoPath,
    pub text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FormatError {
    #[error("it is not in the one form that we accept for a signature of this key")]
    Form,
    #[error("it does not verify for the SHA256SUMS of the release")]
    Signature,
}

json_words!(OtherFormat { Minisign = "minisign", Ssh = "ssh" } "must be \"ssh\" or \"minisign\"");

impl OtherFormat {
    /// How many signatures of the key it takes. An agent that asks, asks so often.
    pub fn signature_count(self) -> usize {
        match self {
            Self::Minisign => 2,
            Self::Ssh => 1,
        }
    }

    /// The text that the other program reads; `sign` is the key's own operation.
    pub fn sign<E>(
        self,
        key: &PublicKey,
        sums: &ReleaseSums<'_>,
        sign: impl Fn(&FormatMessage) -> Result<Signature, E>,
    ) -> Result<String, E> {
        match self {
            Self::Ssh => Ok(ssh::write(key, &sign(&ssh::message(sums.text))?)),
            Self::Minisign => {
                let signature = sign(&minisign::message(sums.text))?;
                let comment = minisign::trusted_comment(sums.index);
                let global = sign(&minisign::global_message(&signature, &comment))?;
                Ok(minisign::write(key, &comment, &minisign::Pair { signature, global }))
            }
        }
    }

    /// Whether `text` is the signature of `key`, in the one form that it can have.
    pub fn verify(self, text: &str, key: &PublicKey, sums: &ReleaseSums<'_>) -> Result<(), FormatError> {
        let check = |message: &FormatMessage, signature: &Signature| {
            key.verify_text(message.as_bytes(), signature).map_err(|_| FormatError::Signature)
        };
        match self {
            Self::Ssh => {
                let signature = ssh::parse(text, key).ok_or(FormatError::Form)?;
                check(&ssh::message(sums.text), &signature)
            }
            Self::Minisign => {
                let comment = minisign::trusted_comment(sums.index);
                let pair = minisign::parse(text, key, &comment).ok_or(FormatError::Form)?;
                check(&minisign::message(sums.text), &pair.signature)?;
                check(&minisign::global_message(&pair.signature, &comment), &pair.global)
            }
        }
    }
}

impl fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
