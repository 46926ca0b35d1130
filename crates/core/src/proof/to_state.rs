//! What a key may be asked to state (D34, D138): a revocation of one release, a veto of one pending signers file, an
//! objection to one release or a rebuild of one, and nothing else.

use std::collections::BTreeSet;

use serde::{Serialize, ser::SerializeStruct as _, ser::Serializer};
use thiserror::Error;

use crate::documents::signers::{SignersFile, keys_of};
use crate::documents::statement::{SignedStatement, Statement, StatementKind};
use crate::documents::{fields::parse_path, history::History, signatures::SignatureSet};
use crate::proof::to_sign::{SigningRequest, Subject, ToSign, ToSignError};
use crate::rules::chain::{VerifiedChain, VerifiedLink};
use crate::values::json::{Field, ParseError};
use crate::values::key::{PublicKey, Signature};
use crate::values::{digest::Sha512, path::RepoPath, shown::shown_text, time::Timestamp};

/// A statement and what it is about, as a server or an exported file (D176) shows them. Nothing of it is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementRequest {
    pub kind: StatementKind,
    /// The release or the proposed signers.
    pub subject: SigningRequest,
    /// The text of the document, which is what is signed.
    pub text: String,
    /// Who has signed the text so far; empty for one that is new.
    pub collected: SignatureSet,
    /// When proposed signers take effect, if they had all signatures: the server's word, of which nothing depends.
    pub waits_until: Option<Timestamp>,
}

/// A request that core has read as a statement about what its path names.
#[derive(Debug, Clone)]
pub struct ToState {
    pub subject: ToSign,
    text: String,
    pub document: Statement,
    /// The keys whose signature on the text was shown and verifies.
    pub signed: BTreeSet<PublicKey>,
    kind: StatementKind,
}

#[derive(Debug, Clone, Error)]
pub enum ToStateError {
    #[error("{} cannot be revoked: it must be the index of a release", shown_text(.0.as_str()))]
    NotRevocable(RepoPath),
    #[error("{} is not the index of a release", shown_text(.0.as_str()))]
    NotARelease(RepoPath),
    #[error("only a proposal of new signers can be vetoed; this is a release or a first registration")]
    NotAnUpdate,
    #[error("the signers file in force has no master keys, and only masters can veto")]
    NoMasters,
    #[error(transparent)]
    Subject(#[from] ToSignError),
    #[error("{}: {error}", not_a_document(*.kind))]
    Document { kind: StatementKind, error: ParseError },
    #[error(
        "what is shown as the {} is not {} of this file, {}",
        .kind.noun(), .kind.title(), shown_text(.path.as_str())
    )]
    OtherFile { kind: StatementKind, path: RepoPath },
    #[error("the veto is about another project or signers file")]
    OtherProposal,
    #[error("it is shown as a revocation that others began, but no key that can revoke has signed it")]
    NotBegun,
}

fn not_a_document(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Revocation => "what is shown as the revocation is not a revocation of this file",
        StatementKind::Veto => "it is not a veto",
        StatementKind::Objection => "this is not an objection",
        StatementKind::Rebuild => "this is not a rebuild",
    }
}

impl StatementRequest {
    /// A new statement about a release, by the text of its index and the history of its project's signers.
    pub fn of_release(
        kind: StatementKind,
        path: RepoPath,
        index: String,
        history: History,
        text: String,
    ) -> Self {
        let subject = SigningRequest::of_index(path, index, history);
        Self { kind, subject, text, collected: SignatureSet::default(), waits_until: None }
    }

    pub fn parse_field(kind: StatementKind, field: &Field<'_>) -> Result<Self, ParseError> {
        let noun = kind.noun();
        if kind == StatementKind::Veto {
            let object = field.object(&["proposal", noun, "collected", "waits_until"])?;
            return Ok(Self {
                kind,
                subject: object.get("proposal")?,
                text: object.get(noun)?,
                collected: object.get("collected")?,
                waits_until: object.maybe("waits_until")?,
            });
        }
        let object = field.object(&["file_path", "index", noun, "signers_history", "collected"])?;
        let path = object.with("file_path", parse_path)?;
        let (index, text, history) =
            (object.get("index")?, object.get(noun)?, object.get("signers_history")?);
        Ok(Self { collected: object.get("collected")?, ..Self::of_release(kind, path, index, history, text) })
    }

    pub fn path(&self) -> &RepoPath {
        &self.subject.path
    }

    /// What the text says, if it is a document of its kind at all.
    pub fn reason(&self) -> Option<String> {
        let document = Statement::parse(self.kind, self.text.as_bytes()).ok()?;
        document.reason().map(str::to_owned)
    }

    /// Reads the text as a statement about what the path names.
    pub fn check(&self) -> Result<ToState, ToStateError> {
        if !self.kind.is_about(self.path()) {
            let path = self.path().clone();
            return Err(match self.kind {
                StatementKind::Revocation => ToStateError::NotRevocable(path),
                StatementKind::Veto => ToStateError::NotAnUpdate,
                StatementKind::Objection | StatementKind::Rebuild => ToStateError::NotARelease(path),
            });
        }
        self.check_text(self.subject.check()?)
    }

    /// Reads the text as a statement about a subject that was checked already.
    pub fn check_text(&self, subject: ToSign) -> Result<ToState, ToStateError> {
        let Self { kind, text, collected, .. } = self;
        let previous = match kind {
            StatementKind::Veto => Some(update_of(&subject)?.last().digest),
            StatementKind::Revocation | StatementKind::Objection | StatementKind::Rebuild => None,
        };
        let document = Statement::parse(*kind, text.as_bytes())
            .map_err(|error| ToStateError::Document { kind: *kind, error })?;
        let is_this = match &document {
            Statement::Revocation(document) => document.subject_digest == Some(*subject.digest()),
            Statement::Objection(document) => document.subject_digest == *subject.digest(),
            Statement::Rebuild(document) => {
                document.rebuild_of == *subject.path() && document.subject_digest == *subject.digest()
            }
            Statement::Veto(document) => {
                document.project_id == *subject.project()
                    && document.signers_file_digest == *subject.digest()
                    && Some(document.previous) == previous
            }
        };
        if !is_this {
            return Err(match kind {
                StatementKind::Veto => ToStateError::OtherProposal,
                StatementKind::Revocation | StatementKind::Objection | StatementKind::Rebuild => {
                    ToStateError::OtherFile { kind: *kind, path: subject.path().clone() }
                }
            });
        }
        let signed = collected.verifying_signers(text.as_bytes());
        let to_state = ToState { subject, text: text.clone(), document, signed, kind: *kind };
        // Who co-signs takes over the words of others: they must be those of someone who may revoke, or once might.
        let began = |link: &VerifiedLink| !to_state.accepted_by(&link.signers).is_disjoint(&to_state.signed);
        let must_be_begun = *kind == StatementKind::Revocation && !collected.entries.is_empty();
        if must_be_begun && !to_state.chain().links.iter().any(began) {
            return Err(ToStateError::NotBegun);
        }
        Ok(to_state)
    }
}

impl Serialize for StatementRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { kind, subject, text, collected, waits_until } = self;
        let mut request = serializer.serialize_struct("StatementRequest", 5)?;
        if *kind == StatementKind::Veto {
            request.serialize_field("proposal", subject)?;
            request.serialize_field(kind.noun(), text)?;
            request.serialize_field("collected", collected)?;
            if let Some(time) = waits_until {
                request.serialize_field("waits_until", time)?;
            }
            return request.end();
        }
        request.serialize_field("file_path", &subject.path)?;
        request.serialize_field("index", &subject.files.get(&subject.path))?;
        request.serialize_field(kind.noun(), text)?;
        request.serialize_field("signers_history", &subject.history)?;
        request.serialize_field("collected", collected)?;
        request.end()
    }
}

impl ToState {
    pub fn path(&self) -> &RepoPath {
        self.subject.path()
    }

    /// The history up to the signers in force, who decide.
    pub fn chain(&self) -> &VerifiedChain {
        self.subject.chain().expect("a release or an update of signers: checked")
    }

    /// The signers in force.
    pub fn signers(&self) -> &SignersFile {
        &self.chain().last().signers
    }

    /// Whose signature is accepted now.
    pub fn accepted_signers(&self) -> BTreeSet<PublicKey> {
        self.accepted_by(self.signers())
    }

    fn accepted_by(&self, signers: &SignersFile) -> BTreeSet<PublicKey> {
        match self.kind {
            StatementKind::Revocation => keys_of(&signers.revocation_groups()).collect(),
            StatementKind::Veto => keys_of(signers.master_groups()).collect(),
            StatementKind::Objection => signers.signers(),
            StatementKind::Rebuild => keys_of(signers.builder_groups()).collect(),
        }
    }

    /// Signs the text; `sign` is the key's own operation, over a digest (D3).
    pub fn sign<E>(
        &self,
        public_key: PublicKey,
        sign: impl FnOnce(&Sha512) -> Result<Signature, E>,
    ) -> Result<SignedStatement, E> {
        let (kind, file_path, text) = (self.kind, self.path().clone(), self.text.clone());
        let signature = sign(&Sha512::of(text.as_bytes()))?;
        Ok(SignedStatement { kind, file_path, text, signature, public_key })
    }
}

/// The signers in force that a proposal would replace, if they have masters.
pub fn update_of(to_sign: &ToSign) -> Result<&VerifiedChain, ToStateError> {
    match &to_sign.subject {
        Subject::Proposal { current: Some(chain), .. } => {
            let has_masters = !chain.last().signers.master_groups().is_empty();
            if has_masters { Ok(chain) } else { Err(ToStateError::NoMasters) }
        }
        Subject::Proposal { current: None, .. } | Subject::Release { .. } => Err(ToStateError::NotAnUpdate),
    }
}
