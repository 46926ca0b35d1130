//! What a master may be asked to sign (D34, D138): a veto of one pending signers file, and nothing else.

use std::collections::BTreeSet;

use serde::Serialize;
use thiserror::Error;

use crate::{
    documents::{
        signatures::SignatureSet,
        signers::{Group, keys_of},
        veto::{Veto, VetoBody},
    },
    proof::to_sign::{SigningRequest, Subject, ToSign},
    rules::chain::VerifiedChain,
    values::{
        digest::Sha512,
        json::{Field, FromField as _, ParseError},
        key::{PublicKey, Signature},
        path::RepoPath,
        time::Timestamp,
    },
};

/// A proposal and its veto, as a file of `veto --export` shows them (D176). Nothing of it is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CarriedVeto {
    pub proposal: SigningRequest,
    /// The text of the veto, which is what is signed.
    pub veto: String,
    /// Who has signed the veto so far; empty for one that is new.
    pub collected: SignatureSet,
    /// When the proposal takes effect, if it had all signatures: the server's word, of which nothing depends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
}

/// A text that core has read as a veto of what `to_sign` proposes.
#[derive(Debug, Clone)]
pub struct ToVeto<'a> {
    file: &'a RepoPath,
    text: String,
    pub document: Veto,
    /// The signers in force, whose masters decide.
    pub chain: &'a VerifiedChain,
    /// Those whose signature on the text was shown and verifies.
    pub signed: BTreeSet<PublicKey>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ToVetoError {
    #[error("only a proposal of new signers can be vetoed; this is a release or a first registration")]
    NotAnUpdate,
    #[error("the signers file in force has no master keys, and only masters can veto")]
    NoMasters,
    #[error("it is not a veto: {0}")]
    Document(ParseError),
    #[error("the veto is about another project or signers file")]
    OtherProposal,
}

impl CarriedVeto {
    pub fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.object(&["proposal", "veto", "collected", "waits_until"])?;
        let waits_until = object.optional("waits_until");
        Ok(Self {
            proposal: SigningRequest::parse_field(&object.required("proposal")?)?,
            veto: object.required("veto")?.string()?.to_owned(),
            collected: SignatureSet::parse_field(&object.required("collected")?)?,
            waits_until: waits_until.map(|time| time.parsed(Timestamp::parse)).transpose()?,
        })
    }
}

impl<'a> ToVeto<'a> {
    /// `collected` are the signatures on the text that were shown.
    pub fn check(to_sign: &'a ToSign, text: String, collected: &SignatureSet) -> Result<Self, ToVetoError> {
        let chain = update_of(to_sign)?;
        let document = Veto::parse(text.as_bytes()).map_err(ToVetoError::Document)?;
        let is_this = document.project_id == *to_sign.project()
            && document.signers_file_digest == *to_sign.digest()
            && document.previous == chain.last().digest;
        if !is_this {
            return Err(ToVetoError::OtherProposal);
        }
        let signed = collected.verifying_signers(text.as_bytes());
        Ok(Self { file: to_sign.path(), text, document, chain, signed })
    }

    pub fn master_groups(&self) -> &[Group] {
        self.chain.last().signers.master_groups()
    }

    pub fn masters(&self) -> impl Iterator<Item = PublicKey> {
        keys_of(self.master_groups())
    }

    /// `sign` is the key's own operation, over a digest (D3).
    pub fn sign<E>(
        &self,
        public_key: PublicKey,
        sign: impl FnOnce(&Sha512) -> Result<Signature, E>,
    ) -> Result<VetoBody, E> {
        Ok(VetoBody {
            file_path: self.file.clone(),
            signature: sign(&Sha512::of(self.text.as_bytes()))?,
            veto_json: self.text.clone(),
            public_key,
        })
    }
}

/// The signers in force that a proposal would replace, if they have masters.
pub fn update_of(to_sign: &ToSign) -> Result<&VerifiedChain, ToVetoError> {
    match &to_sign.subject {
        Subject::Proposal { current: Some(chain), .. } => {
            let has_masters = !chain.last().signers.master_groups().is_empty();
            if has_masters { Ok(chain) } else { Err(ToVetoError::NoMasters) }
        }
        Subject::Proposal { current: None, .. } | Subject::Release { .. } => Err(ToVetoError::NotAnUpdate),
    }
}
