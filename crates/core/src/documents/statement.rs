//! Statements: what a key says about a release or about proposed signers, in a text of its own that it signs. A revocation
//! (spec §2.5, D20), a veto (D135), an objection (D123) and a rebuild (D260) have documents of their own; they are handed
//! in, signed and collected in one way.

use serde::{Serialize, ser::SerializeMap as _, ser::Serializer};

use crate::documents::fields::{parse_key, parse_path, parse_reason, parse_signature};
use crate::documents::index::{AssetName, Digests, parse_digests};
use crate::documents::{layout, layout::Signable};
use crate::json_fields;
use crate::values::bounds::{OBJECTION_BYTES, REBUILD_BYTES, REVOCATION_BYTES, VETO_BYTES};
use crate::values::json::{Field, FromField, Json, ParseError};
use crate::values::key::{PublicKey, Signature};
use crate::values::{digest::Sha512, path::RepoPath, time::Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatementKind {
    Revocation,
    Veto,
    Objection,
    Rebuild,
}

/// The document of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    Revocation(Revocation),
    Veto(Veto),
    Objection(Objection),
    Rebuild(Rebuild),
}

/// Says why and since when a release is revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Revocation {
    pub reason: String,
    pub timestamp: Timestamp,
    /// The file that is meant. Without it the document alone does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_digest: Option<Sha512>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<PublicKey>,
}

/// Says that the masters do not want proposed signers in force, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Veto {
    /// The reason.
    pub veto: String,
    pub project_id: RepoPath,
    /// The proposed signers file.
    pub signers_file_digest: Sha512,
    /// The signers file in force, whose masters speak: under another one the same words say nothing.
    pub previous: Sha512,
    pub timestamp: Timestamp,
}

/// Says what a signer holds against a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Objection {
    /// `None` takes back what the same key said before.
    #[serde(rename = "objection")]
    pub text: Option<String>,
    /// The index that is meant.
    pub subject_digest: Sha512,
    pub timestamp: Timestamp,
}

/// Says what a builder got from the source of a release, and of those files only that it built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rebuild {
    /// The path of the index that is meant.
    pub rebuild_of: RepoPath,
    pub subject_digest: Sha512,
    /// The whole id of the commit that was built, in Git's hexadecimal.
    pub source_commit: String,
    /// The files, sorted by name.
    pub files: Vec<RebuiltFile>,
    pub timestamp: Timestamp,
}

/// A file as a builder got it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RebuiltFile {
    pub file_name: AssetName,
    pub digests: Digests,
}

/// One signature on a statement, as it is handed in and as it travels to a computer with a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedStatement {
    pub kind: StatementKind,
    /// The index or the pending signers file that the statement is about.
    pub file_path: RepoPath,
    /// The exact text of the document.
    pub text: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// Whose signature it is. The caller may be another one.
    pub public_key: PublicKey,
}

impl StatementKind {
    /// The name of a statement in documents and messages.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Revocation => "revocation",
            Self::Veto => "veto",
            Self::Objection => "objection",
            Self::Rebuild => "rebuild",
        }
    }

    /// The name with its article.
    pub fn title(self) -> &'static str {
        match self {
            Self::Revocation => "a revocation",
            Self::Veto => "a veto",
            Self::Objection => "an objection",
            Self::Rebuild => "a rebuild",
        }
    }

    /// The field of a request that holds the text.
    fn text_field(self) -> String {
        format!("{}_json", self.noun())
    }

    /// Whether a statement of this kind can be about what has this path.
    pub fn is_about(self, path: &RepoPath) -> bool {
        match layout::signable(path) {
            Some(Signable::Index) => self != Self::Veto,
            Some(Signable::PendingSigners { .. }) => self == Self::Veto,
            None => false,
        }
    }

    /// The file beside `file` that keeps statements of this kind. The names of those that wait for more signatures are made
    /// from it.
    pub fn path_of(self, file: &RepoPath) -> RepoPath {
        match self {
            Self::Revocation => layout::revocation_of(file),
            Self::Veto => layout::veto_of(file),
            Self::Objection => layout::objections_of(file),
            Self::Rebuild => layout::rebuilds_of(file),
        }
    }
}

impl Statement {
    pub fn parse(kind: StatementKind, bytes: &[u8]) -> Result<Self, ParseError> {
        match kind {
            StatementKind::Revocation => Revocation::parse(bytes).map(Self::Revocation),
            StatementKind::Veto => Veto::parse(bytes).map(Self::Veto),
            StatementKind::Objection => Objection::parse(bytes).map(Self::Objection),
            StatementKind::Rebuild => Rebuild::parse(bytes).map(Self::Rebuild),
        }
    }

    /// What its author says in words. `None` takes an objection back, and a rebuild has none.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Revocation(document) => Some(&document.reason),
            Self::Veto(document) => Some(&document.veto),
            Self::Objection(document) => document.text.as_deref(),
            Self::Rebuild(_) => None,
        }
    }
}

json_fields!(document Revocation within REVOCATION_BYTES "a revocation document has" {
    reason: text(parse_reason), timestamp: with(parse_time), subject_digest: maybe, initiator: maybe,
});
json_fields!(document Veto within VETO_BYTES "a veto has" {
    veto: text(parse_reason), project_id: with(parse_path), signers_file_digest, previous, timestamp,
});
json_fields!(document Objection within OBJECTION_BYTES "an objection has" {
    text as "objection": with(|field| field.nullable(|text| text.parsed(parse_reason))), subject_digest, timestamp,
});

json_fields!(document Rebuild within REBUILD_BYTES "a rebuild has" {
    rebuild_of: with(parse_path), subject_digest, source_commit: text(parse_commit), files: with(parse_files), timestamp,
});
json_fields!(object RebuiltFile { file_name, digests: with(parse_digests) });

/// The whole id of a commit: of Git's 20 bytes, or its newer 32.
fn parse_commit(text: &str) -> Result<String, &'static str> {
    let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_whole = is_hex && matches!(text.len(), 40 | 64);
    is_whole
        .then(|| text.to_owned())
        .ok_or("must be the whole id of a commit: 40 or 64 digits of a to f and 0 to 9")
}

fn parse_files(list: &Field<'_>) -> Result<Vec<RebuiltFile>, ParseError> {
    let files = Vec::<RebuiltFile>::parse_field(list)?;
    if files.is_empty() {
        return Err(list.error("must name at least one file"));
    }
    if !files.is_sorted_by(|a, b| a.file_name < b.file_name) {
        return Err(list.error("must be sorted by file_name, one entry a file"));
    }
    Ok(files)
}

impl Rebuild {
    /// Whether it says all that an earlier one says, of the same source, and names more files.
    pub fn adds_to(&self, earlier: &Self) -> bool {
        let is_repeated = |file| self.files.contains(file);
        self.source_commit == earlier.source_commit
            && self.files.len() > earlier.files.len()
            && earlier.files.iter().all(is_repeated)
    }
}

impl SignedStatement {
    /// Unknown fields are ignored, as in all bodies of requests (D5).
    pub fn parse(kind: StatementKind, bytes: &[u8]) -> Result<Self, ParseError> {
        Self::parse_field(kind, &Json::parse(bytes)?.root())
    }

    pub fn parse_field(kind: StatementKind, field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.open_object()?;
        Ok(Self {
            kind,
            file_path: object.get("file_path")?,
            text: object.get(&kind.text_field())?,
            signature: object.with("signature", parse_signature)?,
            public_key: object.with("public_key", parse_key)?,
        })
    }
}

impl Serialize for SignedStatement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_map(Some(4))?;
        body.serialize_entry("file_path", &self.file_path)?;
        body.serialize_entry(&self.kind.text_field(), &self.text)?;
        body.serialize_entry("signature", &self.signature)?;
        body.serialize_entry("public_key", &self.public_key.to_base64())?;
        body.end()
    }
}

/// RFC 3339, or whole seconds since 1970.
fn parse_time(field: &Field<'_>) -> Result<Timestamp, ParseError> {
    if !field.is_integer() {
        return field.parsed(Timestamp::parse);
    }
    let seconds = i64::try_from(field.integer()?).map_err(|error| field.error(error))?;
    Timestamp::from_unix_seconds(seconds).map_err(|error| field.error(error))
}
